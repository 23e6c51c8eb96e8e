"""What ``--json`` prints: strict JSON, the same whatever the machine does."""

import json

import numpy as np
from support import run_disco

from disco_cli.report.console import json_line


def test_numbers_that_json_does_not_have_become_null():
    data = {"a": float("nan"), "b": [float("inf"), 0.1, np.float64("nan")], "c": ({"d": 1},)}
    assert json_line(data) == '{"a": null, "b": [null, 0.1, null], "c": [{"d": 1}]}'


def refuse(constant):
    raise AssertionError(constant)


def test_threads_change_no_digit(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "models.npz"
    # So many samples that a sum over them would be shared among threads.
    np.savez(path, responses=rng.random((12, 30_001)), weights=rng.random(30_001))
    printed = []
    for threads in ("1", "2"):
        env = {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        at = ["--json", "--quiet", "--dir", tmp_path / "run"]
        commands = (
            ["score", path, *at],
            ["select", path, "--k", "20", *at],
            ["select", path, "--k", "20", "--method", "random", *at],
        )
        for command in commands:
            ran = run_disco(*command, env=env)
            assert ran.returncode == 0, ran.stderr
            json.loads(ran.stdout, parse_constant=refuse)
            printed.append(ran.stdout)
    assert printed[:3] == printed[3:]
