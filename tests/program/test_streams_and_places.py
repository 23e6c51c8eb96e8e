"""Streams that are full or closed, and artifacts in unusual places."""

import os
import subprocess
import sys
import threading

import pytest
from support import ROOT

from disco_cli import build_db, select
from disco_cli.database import is_database, load_database
from disco_cli.errors import InputError, UsageError
from disco_cli.report.console import printable

FULL = "/dev/full"
needs_full = pytest.mark.skipif(not os.path.exists(FULL), reason="no /dev/full here")  # noqa: PTH110


def shell(line, cwd):
    """Run a line of shell in which ``$D`` is the program."""
    return subprocess.run(
        ["sh", "-c", line],
        cwd=cwd,
        env=os.environ | {"D": f"{sys.executable} -W error -m disco_cli", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@needs_full
@pytest.mark.parametrize(
    "command", ["predict preds/model-00.npz -q", "predict --help", "--version"]
)
def test_a_full_standard_output_is_one_error(small, small_artifacts, tmp_path, command):
    done = shell(f"DISCO_DIR={small_artifacts} $D {command} > {FULL}", tmp_path)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "error: standard output: cannot be written: no space left on device"
    ]


def test_a_closed_standard_output_is_one_error(small, small_artifacts, tmp_path):
    done = shell(f"DISCO_DIR={small_artifacts} $D predict {small[0]} --json -q >&-", tmp_path)
    assert done.returncode == 3
    assert done.stderr == "error: standard output: cannot be written: bad file descriptor\n"
    line = f"DISCO_DIR={small_artifacts} $D predict {small[0]} --json -o out.jsonl -q"
    assert shell(f"{line} >&-", tmp_path).returncode == 3  # its path could not be told
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1


def test_a_closed_standard_error_does_not_matter(small, small_artifacts, tmp_path):
    line = f"DISCO_DIR={small_artifacts} $D predict {small[0]} --json"
    done = shell(f"{line} 2>&-", tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)


@needs_full
def test_full_standard_error_does_not_matter(small, small_artifacts, tmp_path):
    done = shell(f"DISCO_DIR={small_artifacts} $D predict {small[0]} --json 2> {FULL}", tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert (
        shell(f"$D predict nowhere.npz --db {small_artifacts}/db 2> {FULL}", tmp_path).returncode
        == 3
    )


def test_messages_are_one_harmless_line():
    assert printable("model\nwith \x1b[31mred\tname é😀") == r"model with \x1b[31mred name é😀"


@pytest.fixture
def built(small, tmp_path):
    selection = select(small, k=10).selection
    return build_db(small, selection=selection).database, tmp_path


def test_a_link_to_a_database_stays_a_link(built):
    database, folder = built
    (folder / "real").mkdir()
    link = folder / "db"
    link.symlink_to("real/db")
    for _ in range(2):
        database.save(link)
        assert link.is_symlink()
        assert sorted(path.name for path in (folder / "real").iterdir()) == ["db"]
    assert load_database(link).selection.sha256 == database.selection.sha256


def test_builds_that_end_together_leave_one_database(built):
    database, folder = built
    failed = []

    def save():
        try:
            database.save(folder / "db")
        except BaseException as error:  # noqa: BLE001 - told by the assertion
            failed.append(error)

    threads = [threading.Thread(target=save) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert is_database(folder / "db")
    assert sorted(path.name for path in folder.iterdir()) == ["db", "preds"]


def test_the_current_folder_as_a_database(built, monkeypatch):
    database, folder = built
    database.save(folder / "db")
    monkeypatch.chdir(folder / "db")
    assert load_database(type(folder)()).selection.k == 10
    monkeypatch.chdir(folder / "preds")
    with pytest.raises(InputError, match="no database"):
        load_database(type(folder)())


@pytest.mark.parametrize("seed", [-1, 1 << 32])
def test_seeds_that_not_every_part_can_use(small, seed):
    with pytest.raises(UsageError, match="--seed"):
        select(small, k=10, seed=seed)
    with pytest.raises(UsageError, match="--seed"):
        build_db(small, selection=small[0], seed=seed)


def assert_interrupted(folder):
    """Run the program with the modules of a folder before all others."""
    done = subprocess.run(
        [sys.executable, "-m", "disco_cli", "--version"],
        env=os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_an_interruption_during_the_imports_is_quiet(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    assert_interrupted(tmp_path)


def test_an_interruption_that_falls_into_a_callback_is_not_lost(tmp_path):
    (tmp_path / "typer.py").write_text(
        "import time, weakref\n"
        "class Lock: pass\n"
        "lock = Lock()\n"
        "def interrupted(_): raise KeyboardInterrupt\n"
        "kept = weakref.ref(lock, interrupted)\n"
        "del lock\n"
        "time.sleep(20)\n"
        "raise SystemExit('it went on')\n"
    )
    assert_interrupted(tmp_path)
