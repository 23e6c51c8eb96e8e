"""A task of sums for inspect_ai whose "models" differ in how many answers they know.

``mockllm`` answers the same to everything, so the solver answers in its place: right for the share
of questions that the model's name tells, by a draw that depends on model and question alone.
"""

from __future__ import annotations

import random
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import choice
from inspect_ai.solver import Generate, TaskState, solver


def questions() -> list[Sample]:
    """Return 120 questions with four choices each."""
    dice = random.Random(1)
    samples = []
    for number in range(120):
        a, b = dice.randrange(10, 60), dice.randrange(10, 60)
        options = dice.sample([a + b + d for d in (-3, -2, -1, 1, 2, 3)], 3)
        place = dice.randrange(4)
        options.insert(place, a + b)
        samples.append(
            Sample(
                id=f"sum {number}",
                input=f"What is {a} + {b}?",
                choices=[str(one) for one in options],
                target="ABCD"[place],
            )
        )
    return samples


@solver
def know() -> Any:
    """Answer in the model's place."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        share = int(state.model.name.rpartition("-")[2]) / 100
        dice = random.Random(f"{state.model.name}/{state.sample_id}")
        hard = random.Random(str(state.sample_id)).random()
        right = state.target.text if hard < share or dice.random() < 0.2 else None
        letter = right or "ABCD"[dice.randrange(4)]
        state.choices.mark_choice("ABCD".index(letter), True)
        state.output = ModelOutput.from_content(state.model.name, f"ANSWER: {letter}")
        state.completed = True
        return state

    return solve


@task
def loop_sums() -> Task:
    """Return the task."""
    return Task(dataset=MemoryDataset(questions()), solver=know(), scorer=choice())
