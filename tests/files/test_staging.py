"""Folders that are filled beside their target, and what killed programs leave."""

import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from disco_cli.files.staging import staged

FILL_AND_WAIT = """
import sys, time
from pathlib import Path
from disco_cli.files.staging import staged
with staged(Path(sys.argv[1])) as staging:
    (staging / "rf.pkl").write_bytes(b"half a forest")
    print(staging, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def filling(tmp_path):
    """Start a program that fills a folder beside ``db`` and waits; gives it and the folder."""
    command = [sys.executable, "-c", FILL_AND_WAIT, str(tmp_path / "db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process, tmp_path / process.stdout.readline().strip()
        process.kill()


def test_a_killed_program_leaves_a_folder_that_the_next_removes(filling, tmp_path):
    process, left = filling
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (left / "rf.pkl").exists()
    with staged(tmp_path / "db") as staging:
        assert not left.exists()
        assert list(tmp_path.iterdir()) == [staging]
    assert not list(tmp_path.iterdir())


def test_a_folder_in_use_is_left_alone(filling, tmp_path):
    _, used = filling
    with staged(tmp_path / "db") as staging:
        assert staging != used
    assert (used / "rf.pkl").exists()


def test_only_our_folders_of_this_target_are_swept(tmp_path):
    kept = [".db-theirs", ".other-abcdefgh.disco-staging", "db-x.disco-staging"]
    for name in kept:
        (tmp_path / name).mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("precious")
    (tmp_path / ".db-link.disco-staging").symlink_to(elsewhere)
    (tmp_path / ".db-file.disco-staging").write_text("not a folder")
    before = sorted(tmp_path.rglob("*"))
    with staged(tmp_path / "db"):
        pass
    assert sorted(tmp_path.rglob("*")) == before


def test_an_error_inside_leaves_nothing(tmp_path):
    with suppress(KeyboardInterrupt), staged(tmp_path / "db") as staging:
        (staging / "part").write_bytes(b"x")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
