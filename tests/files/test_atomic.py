"""Whole file or no file."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from disco_cli.errors import OutputError
from disco_cli.files.atomic import atomic_write


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_gets_its_content_and_ordinary_permissions(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "new" / "a.bin") as file:
            file.write(b"abc")
    finally:
        os.umask(umask)
    target = tmp_path / "new" / "a.bin"
    assert target.read_bytes() == b"abc"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert listing(tmp_path / "new") == ["a.bin"]


def test_an_existing_file_keeps_its_permissions_and_a_link_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    target.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_interruption_leaves_the_old_file_and_no_litter(
    tmp_path: Path, interruption: type[BaseException]
) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")

    def write_half() -> None:
        with atomic_write(target) as file:
            file.write(b"half")
            raise interruption

    with pytest.raises(interruption):
        write_half()
    assert target.read_bytes() == b"old"
    assert listing(tmp_path) == ["a.bin"]


def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="cannot be written: a folder has that name"),
        atomic_write(tmp_path),
    ):
        pass


def test_a_file_where_a_folder_is_needed_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with (
        pytest.raises(OutputError, match="a file stands where a folder is needed"),
        atomic_write(tmp_path / "a" / "b.bin"),
    ):
        pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_device_is_written_to_and_not_replaced() -> None:
    with (
        pytest.raises(OutputError, match="no space left on device; free some space"),
        atomic_write("/dev/full") as file,
    ):
        file.write(b"abc")
    with atomic_write("/dev/null") as file:
        file.write(b"abc")
    assert not Path("/dev/null").is_file()


WRITE_A_MEGABYTE = """
import resource, sys
from disco_cli.errors import OutputError
from disco_cli.files.atomic import atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    with atomic_write(sys.argv[1]) as file:
        file.write(bytes(1_000_000))
except OutputError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def test_a_limit_on_file_sizes_is_one_clear_line(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    run = subprocess.run(
        [sys.executable, "-c", WRITE_A_MEGABYTE, target],
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 3
    assert run.stdout == (
        f"{target}: cannot be written: file too large; a limit on file sizes is set "
        "(see ulimit -f)\n"
    )
    assert run.stderr == ""
    assert target.read_bytes() == b"old"
    assert listing(tmp_path) == ["a.bin"]


def test_a_read_only_folder_is_one_clear_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    root = os.geteuid() == 0
    try:
        if root:  # who may write everywhere
            os.seteuid(65534)
        with (
            pytest.raises(OutputError, match="choose a folder that you may write to"),
            atomic_write(tmp_path / "a.bin"),
        ):
            pass
    finally:
        if root:
            os.seteuid(0)
        tmp_path.chmod(0o700)
    assert listing(tmp_path) == []


def test_a_refusal_of_the_system_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with (
        pytest.raises(OutputError, match=r"a\.bin: cannot be written: permission denied; choose"),
        atomic_write(tmp_path / "a.bin"),
    ):
        pass
    assert listing(tmp_path) == []
