"""Names that no stream can show: nothing crashes, and what comes out is valid all the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from support import ROOT

ODD = ["é漢字", "esc\x1b[31m", os.fsdecode(b"byte\xff")]
ENCODINGS = ["utf-8", "ascii", "latin-1"]


@pytest.fixture
def odd(small, tmp_path):
    """Prediction files of three new models with such names."""
    paths = [tmp_path / f"{name}.npz" for name in ODD]
    try:
        for path in paths:
            shutil.copy(small[0], path)
    except OSError:
        pytest.skip("this file system takes no such names")
    return paths


def output(encoding, *arguments):
    """Run the program with streams of an encoding; returns the bytes of stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "disco_cli", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_rows_and_messages_spell_them_out(odd, small_artifacts, encoding):
    code, out, err = output(
        encoding, "predict", *odd, "--dir", small_artifacts, "--fail-under", "1"
    )
    assert code == 5
    names = [line.split("\t")[0] for line in out.decode(encoding).splitlines()[1:]]
    first = {"utf-8": "é漢字", "ascii": r"\xe9\u6f22\u5b57", "latin-1": r"é\u6f22\u5b57"}[encoding]
    assert names == [first, r"esc\x1b[31m", r"byte\udcff"]
    failures = [line for line in err.decode(encoding).splitlines() if " is under 1" in line]
    assert [line.split(": ")[1] for line in failures] == names


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("target", [None, "out.jsonl"])
def test_json_holds_the_names_themselves(odd, small_artifacts, tmp_path, encoding, target):
    where = [] if target is None else ["-o", tmp_path / target]
    code, out, _ = output(
        encoding, "predict", *odd, "--dir", small_artifacts, "--json", "-q", *where
    )
    assert code == 0
    text = (out if target is None else (tmp_path / target).read_bytes()).decode()
    assert [json.loads(line)["model"] for line in text.splitlines()] == ODD


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_selection_on_stdout_stays_valid(tmp_path, encoding):
    rng = np.random.default_rng(0)
    for number in range(5):
        np.savez(
            tmp_path / f"{number}.npz",
            predictions=rng.dirichlet(np.ones(3), 9),
            labels=np.arange(9) % 3,
            sample_ids=np.array([f"é漢字{i}" for i in range(9)]),
        )
    paths = [tmp_path / f"{number}.npz" for number in range(5)]
    code, out, err = output(
        encoding, "select", "--k", "3", "--method", "pds", *paths, "-o", "-", "-q"
    )
    assert code == 0, err
    (tmp_path / "selection.json").write_bytes(out)
    code, out, _ = output(encoding, "export", tmp_path / "selection.json", "--to", "jsonl", "-q")
    assert code == 0
    assert {json.loads(line)["sample_id"][:3] for line in out.splitlines()} == {"é漢字"}


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_odd_reference_models_do_no_harm(small, odd, tmp_path, encoding):
    for path in odd:
        with np.load(path) as file:
            values = np.roll(file["predictions"], odd.index(path) + 1, axis=0)
            np.savez(path, **{**{n: file[n] for n in file.files}, "predictions": values})
    folder = ["--dir", tmp_path / "run"]
    for command in (["score"], ["select", "--k", "20"], ["build-db"]):
        assert output(encoding, *command, *small, *odd, *folder)[0] == 0
    for as_json in ([], ["--json"]):
        assert output(encoding, "info", odd[2], *as_json)[0] == 0
    code, out, _ = output(encoding, "predict", *odd, *folder, "--json", "-q")
    assert code == 0
    assert [json.loads(line)["nearest"] for line in out.splitlines()] == ODD
    code, _, _ = output(
        encoding, "backtest", *small, *odd, *folder, "--k", "10", "--methods", "random", "-j", "1"
    )
    assert code == 0
