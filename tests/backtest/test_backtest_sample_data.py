"""The whole comparison on the sample data, on the real program."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from support import SAMPLE_DATA

from disco_cli.backtest.baselines.registry import METHODS


@pytest.mark.slow
def test_all_methods_on_the_sample_data_take_less_than_five_minutes(tmp_path):
    start = time.monotonic()
    references = sorted(SAMPLE_DATA.glob("*.npz"))
    command = [sys.executable, "-m", "disco_cli", "backtest", *map(str, references)]
    command += ["--k", "30,100", "--jobs", "2", "--json", "--dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 300
    lines = json.loads(done.stdout)["methods"]
    assert {line["method"] for line in lines} == set(METHODS)
    assert all(line["error"] is None for line in lines)
    relative = {line["method"]: line["relative"] for line in lines if line["k"] == 100}
    assert relative["auto"] < 1 < relative["mean"]
