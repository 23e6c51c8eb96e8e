"""Threads add in the order of models, and are let go when one of them fails."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from disco_cli.disagreement.turns import StoppedError, Turns


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_block_sees_the_models_in_order(threads: int) -> None:
    turns, seen = Turns(3, 10), [[], [], []]
    pauses = np.random.default_rng(0).random((20, 3)) / 500

    def work(model: int) -> None:
        for block in range(3):
            time.sleep(pauses[model - 10, block])
            with turns.turn(block, model):
                seen[block].append(model)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(10, 30)))
    assert seen == [list(range(10, 30))] * 3


def test_who_waits_is_told_that_the_turn_will_not_come() -> None:
    turns, told = Turns(1, 0), []

    def wait() -> None:
        with pytest.raises(StoppedError), turns.turn(0, 1):
            pass
        told.append(True)

    thread = threading.Thread(target=wait)
    thread.start()
    turns.stop()
    thread.join(10)
    assert told == [True]


def test_a_failure_inside_a_turn_leaves_it_to_nobody() -> None:
    turns = Turns(1, 0)
    with pytest.raises(ZeroDivisionError), turns.turn(0, 0):
        _ = 1 / 0
    turns.stop()
    with pytest.raises(StoppedError), turns.turn(0, 1):
        pass
