"""``disco backtest`` on the real program."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from support import ROOT

FAST = ("--methods", "random,random-ridge,mean", "--jobs", "1")


def test_the_comparison_is_printed_and_kept(disco, small, tmp_path):
    done = disco("backtest", *small, "--k", "20,10", *FAST)
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert lines[0][:5] == ["k", "method", "repeats", "n", "mae"]
    assert [line[:3] for line in lines[1:]] == [
        [k, method, "3"] for k in ("10", "20") for method in ("mean", "random", "random-ridge")
    ]
    assert "12 models, 60 samples, split random: 3 targets, 3 repeats" in done.stderr
    with (tmp_path / "disco-run" / "backtest.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [row["method"] for row in table[:3]] == ["mean", "random", "random-ridge"]
    assert float(table[1]["relative"]) == 1
    assert len((tmp_path / "disco-run" / "backtest.jsonl").read_text().splitlines()) == 18


def test_json_is_one_object_with_the_same_figures(disco, small):
    done = disco("backtest", *small, "--k", "10", *FAST, "--json", "--quiet")
    assert done.stderr == ""
    result = json.loads(done.stdout)
    assert result["n_targets"] == 3
    assert result["methods"][0]["method"] == "mean"
    assert result["methods"][0]["spearman"] is None


def test_a_rerun_gives_the_same_output_and_runs_nothing(disco, small, tmp_path):
    first = disco("backtest", *small, "--k", "10", *FAST)
    seconds = tmp_path / "disco-run" / "backtest.seconds.jsonl"
    before = seconds.read_bytes()
    again = disco("backtest", *small, "--k", "10", *FAST)
    assert again.stdout == first.stdout
    assert seconds.read_bytes() == before


def test_leave_one_out_by_family(disco, small, tmp_path):
    table = tmp_path / "families.csv"
    table.write_text("".join(f"model-{m:02},family-{m // 3}\n" for m in range(12)))
    done = disco(
        "backtest", *small, "--split", "leave-one-out", "--families", table, "--k", "10",
        "--seeds", "1", *FAST, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_targets"] == 12


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--k", "61"], 2, "--k 61: the benchmark has 60 samples"),
        (["--k", "ten"], 2, "--k ten: give whole numbers separated by commas"),
        (["--k", ","], 2, "--k ,: give whole numbers separated by commas"),
        (["--methods", "magic"], 2, "no method is called 'magic'"),
        (["--split", "newest"], 2, "--split newest needs a date for every model; 12 of 12"),
        (["--cutoff", "2024-01-01"], 2, "--cutoff belongs to --split newest"),
        (["--test-share", "0"], 2, "--test-share must lie between 0 and 1, found 0"),
        (["--level", "1"], 2, "--level 1: choose a level above 0 and below 1"),
        (["--families", "absent.csv"], 3, "absent.csv: cannot read the table of families"),
        (["--output", "-"], 2, "-o -: the rows are a file"),
        (["--dir", "s3://bucket/run"], 2, "give a file on this machine"),
    ],
)
def test_bad_options_are_one_line(disco, small, arguments, code, message):
    done = disco("backtest", *small, *arguments)
    assert done.returncode == code
    assert done.stdout == ""
    assert len([line for line in done.stderr.splitlines() if "error" in line.lower()]) == 1
    assert message in done.stderr


def test_all_models_related_is_refused(disco, small):
    done = disco("backtest", *small, "--by-family", "--split", "strongest")
    assert done.returncode == 2
    assert "once relatives of the targets are left out" in done.stderr


def test_rows_of_another_backtest_are_refused(disco, small):
    assert disco("backtest", *small, "--k", "10", *FAST).returncode == 0
    done = disco("backtest", *small[1:], "--k", "10", *FAST)
    assert done.returncode == 4
    assert "--force starts anew" in done.stderr
    assert disco("backtest", *small[1:], "--k", "10", *FAST, "--force").returncode == 0


def test_a_table_of_somebody_else_is_not_replaced(disco, small, tmp_path):
    table = tmp_path / "backtest.csv"
    table.write_text("mine\n")
    rows = ("--output", tmp_path / "backtest.jsonl")
    done = disco("backtest", *small, "--k", "10", *FAST, *rows)
    assert done.returncode == 3
    assert "backtest.csv: exists and was not written by disco" in done.stderr
    assert table.read_text() == "mine\n"
    assert disco("backtest", *small, "--k", "10", *FAST, *rows, "--force").returncode == 0
    assert table.read_text().startswith("k,method,repeats,")
    assert disco("backtest", *small, "--k", "10", *FAST, *rows).returncode == 0


def test_files_without_labels_are_refused(disco, tmp_path):
    np.savez(tmp_path / "m.npz", predictions=np.full((4, 2), 0.5))
    done = disco("backtest", "m.npz")
    assert done.returncode == 3
    assert "neither labels nor responses" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no process groups")
@pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
    reason="a job in the background ignores Ctrl-C, and so do its children",
)
def test_interrupted_it_exits_with_130_and_goes_on_later(small, tmp_path):
    command = [sys.executable, "-m", "disco_cli", "backtest", *map(str, small)]
    command += ["--k", "10,20", "--dir", str(tmp_path / "run"), "--jobs", "2"]
    command += ["--methods", "random-ridge,metabench,random-p-irt,random-gp-irt,random-irt"]
    process = subprocess.Popen(
        command,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that the signal reaches the workers too, as from a terminal
    )
    seconds = tmp_path / "run" / "backtest.seconds.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if seconds.exists() and seconds.read_bytes().count(b"\n") >= 3:
            os.killpg(process.pid, signal.SIGINT)
            break
        time.sleep(0.005)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in stderr
    finished = seconds.read_bytes().count(b"\n")
    done = subprocess.run(
        [*command, "--json"],
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=True,
    )
    n_cells = 3 * 2 * len({line["method"] for line in json.loads(done.stdout)["methods"]})
    assert finished < n_cells
    assert seconds.read_bytes().count(b"\n") <= n_cells + 1
