"""A damaged log imports right and says what it lacks, or is refused: never another exception.

The short version takes a seeded share of the places; ``make test-long`` takes them all.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from logs import DERIVED, INSPECT, LM_EVAL

from disco_cli.errors import DiscoError
from disco_cli.harness.choices import ImportOptions
from disco_cli.harness.imported import Imported, ImportedTable
from disco_cli.harness.inspect_ai import read_inspect
from disco_cli.harness.lm_eval import read_lm_eval

CUE = ("cut off", "incomplete", "repeats", "missing", "left out", "cannot be checked")
OPTIONS = ImportOptions(
    metrics=("acc", "exact_match", "choice", "includes", "match"),
    filters=("none", "strict-match"),
)


def lm_eval_logs() -> list[Path]:
    found = [
        path
        for folder in ("v0.4.2_old-b", "v0.4.3_old-b", "v0.4.8_old-b", "v0.4.13_extra",
                       "v0.4.13_nan", "v0.4.2_nonfinite", "v0.4.13_jsonpath", "v0.4.13_macro")
        for path in sorted((LM_EVAL / folder).rglob("*.jsonl"))
    ]  # fmt: skip
    return found + [p for p in sorted(DERIVED.glob("*")) if ".jsonl" in p.name]


def inspect_logs() -> list[Path]:
    return [p for p in sorted(INSPECT.rglob("*")) if p.is_file() and p.name != "expected.json"]


def cuts(content: bytes) -> Iterator[tuple[str, bytes]]:
    for end in range(0, len(content), 1000):
        yield f"cut at byte {end}", content[:end]


def flips(content: bytes) -> Iterator[tuple[str, bytes]]:
    dice = random.Random(len(content))
    for place in range(0, len(content), 500):
        at = min(place + dice.randrange(500), len(content) - 1)
        bit = 1 << dice.randrange(8)
        yield f"byte {at} ^ {bit}", content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]


def swaps(content: bytes) -> Iterator[tuple[str, bytes]]:
    lines = content.split(b"\n")
    for first in range(0, max(0, len(lines) - 2), 7):
        changed = list(lines)
        changed[first], changed[first + 1] = changed[first + 1], changed[first]
        yield f"lines {first} and {first + 1} swapped", b"\n".join(changed)


def doublings(content: bytes) -> Iterator[tuple[str, bytes]]:
    yield "appended twice", content + content


def damaged(content: bytes, share: float, seed: int) -> Iterator[tuple[str, bytes]]:
    dice = random.Random(seed)
    for kind in (cuts, flips, swaps):
        yield from (case for case in kind(content) if dice.random() < share)
    yield from doublings(content)


def check(
    read: Callable[[list[Path], ImportOptions], Imported],
    path: Path,
    whole: ImportedTable | None,
    what: str,
) -> None:
    """Import a damaged file; anything but a DiscoError or a right import fails."""
    message = None
    try:
        imported = read([path], OPTIONS)
    except DiscoError as error:
        message = str(error)
    if message is not None:
        assert message, what
        assert "\n" not in message, what
        return
    notes = " ".join([*imported.notes, *(n for t in imported.tables for n in t.notes)])
    assert len(imported.tables) == 1, what
    (table,) = imported.tables
    if whole is None:
        return
    assert table.n <= whole.n, what
    if table.n < whole.n:
        assert any(cue in notes for cue in CUE), (what, notes)
    assert table.responses is not None
    assert whole.responses is not None
    place = {sample: row for row, sample in enumerate(whole.ids.tolist())}
    if set(table.ids.tolist()) <= set(place):
        right = whole.responses[[place[sample] for sample in table.ids.tolist()]]
        wrong = ~((table.responses == right) | (np.isnan(table.responses) & np.isnan(right)))
        # Without a results file nothing tells a changed digit.
        assert not wrong.any() or "cannot be checked" in notes, (what, wrong.sum())
    else:
        assert "cannot be checked" in notes, what


def place_beside(path: Path, folder: Path) -> Path:
    """Copy a log with the results files beside it, and return the copy."""
    for other in path.parent.glob("*.json"):
        if other.name.startswith(("results", "myrun")):
            shutil.copy(other, folder)
    return Path(shutil.copy(path, folder))


def run_all(
    read: Callable[[list[Path], ImportOptions], Imported], path: Path, folder: Path, share: float
) -> None:
    copy = place_beside(path, folder)
    content = copy.read_bytes()
    try:
        (whole,) = read([copy], OPTIONS).tables
    except DiscoError:
        whole = None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for what, changed in damaged(content, share, seed=len(content)):
            copy.write_bytes(changed)
            check(read, copy, whole, f"{path.name}: {what}")


@pytest.mark.parametrize("path", lm_eval_logs(), ids=lambda p: f"{p.parent.name}-{p.name}"[:60])
def test_damaged_lm_eval_logs(path: Path, tmp_path: Path) -> None:
    run_all(read_lm_eval, path, tmp_path, share=0.04)


@pytest.mark.parametrize("path", inspect_logs(), ids=lambda p: p.name[-40:])
def test_damaged_inspect_logs(path: Path, tmp_path: Path) -> None:
    run_all(read_inspect, path, tmp_path, share=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("path", lm_eval_logs(), ids=lambda p: f"{p.parent.name}-{p.name}"[:60])
def test_damaged_lm_eval_logs_everywhere(path: Path, tmp_path: Path) -> None:
    run_all(read_lm_eval, path, tmp_path, share=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("path", inspect_logs(), ids=lambda p: p.name[-40:])
def test_damaged_inspect_logs_everywhere(path: Path, tmp_path: Path) -> None:
    run_all(read_inspect, path, tmp_path, share=1.0)


def test_damaged_results_files(tmp_path: Path) -> None:
    folder = LM_EVAL / "v0.4.13_jsonpath"
    for path in folder.iterdir():
        shutil.copy(path, tmp_path)
    results = next(tmp_path.glob("myrun*"))
    content = results.read_bytes()
    for what, changed in [*cuts(content), *flips(content)]:
        results.write_bytes(changed)
        try:
            imported = read_lm_eval([tmp_path], OPTIONS)
        except DiscoError:
            continue
        assert imported.tables[0].n == 4, what


def test_damaged_gzip(tmp_path: Path) -> None:
    path = tmp_path / "samples_loc_mc4_2026-11-30T00-53-43.168446.jsonl.gz"
    original = next((LM_EVAL / "v0.4.13_jsonpath").glob("samples*"))
    content = gzip.compress(original.read_bytes(), mtime=0)
    for end in range(0, len(content), 20):
        path.write_bytes(content[:end])
        check(read_lm_eval, path, None, f"gzip cut at {end}")
    for at in range(0, len(content), 10):
        path.write_bytes(content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :])
        check(read_lm_eval, path, None, f"gzip byte {at}")


def test_huge_numbers_are_refused(tmp_path: Path) -> None:
    row = {"doc_id": 10**30, "resps": [["a"]], "exact_match": 1.0}
    path = tmp_path / "samples_x_2026-11-30T00-53-43.168446.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DiscoError, match="not a row of a lm-evaluation-harness sample log"):
        read_lm_eval([path])
