"""Records come out of a file whole, whatever their number, size, encoding and packing."""

from __future__ import annotations

import gzip
import json
import math
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disco_cli.errors import InputError
from disco_cli.harness import json_stream
from disco_cli.harness.json_stream import StreamReport, read_members, read_object, read_records

if TYPE_CHECKING:
    from pathlib import Path

RECORD = {"a": [1, 2.5, "x\u2028y\u0085z"], "b": {"c": None}, "d": "smörgås 🙂"}


def records(path: Path, report: StreamReport | None = None) -> list[dict[str, Any]]:
    return [record for _, record in read_records(path, report or StreamReport())]


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def test_lines_are_split_on_newlines_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(RECORD, RECORD))
    assert records(path) == [RECORD, RECORD]


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_in_a_jsonl_file(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps([RECORD, {}, RECORD], indent=indent, ensure_ascii=False), "utf-8")
    assert records(path) == [RECORD, {}, RECORD]


def test_an_empty_array_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(" [ ] \n")
    assert records(path) == []


def test_byte_order_mark_crlf_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + lines(RECORD, RECORD).replace(b"\n", b"\r\n\r\n"))
    assert records(path) == [RECORD, RECORD]


def test_gzip_is_told_by_content_not_by_name(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(gzip.compress(lines(RECORD)))
    assert records(path) == [RECORD]


def test_bare_nan_and_infinity(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"a": NaN, "b": -Infinity}\n')
    (found,) = records(path)
    assert math.isnan(found["a"])
    assert found["b"] == -math.inf


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("array", [False, True])
def test_a_cut_off_end_is_left_out_and_told(tmp_path: Path, *, array: bool, packed: bool) -> None:
    path = tmp_path / "log.jsonl"
    whole = json.dumps([RECORD] * 3).encode() if array else lines(RECORD, RECORD, RECORD)
    cut = whole[: len(whole) * 5 // 6]
    path.write_bytes(gzip.compress(cut) if packed else cut)
    report = StreamReport()
    assert records(path, report) == [RECORD, RECORD]
    assert report.cut_off == f"{path}: {'entry' if array else 'line'} 3"


def test_a_cut_off_gzip_stream_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(lines(*[RECORD] * 1000))[:-20])
    report = StreamReport()
    assert all(record == RECORD for record in records(path, report))
    assert report.cut_off is not None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1}\n{"a": \x00}\n{"a": 3}\n', "line 2: not valid JSON"),
        (b'{"a": 1}\n[2]\n', "line 2: expected an object, found list"),
        (b'[{"a": 1}, 2]', "entry 2: expected an object, found int"),
        (b'[{"a": 1} {"a": 2}]', "entry 1: expected ',', found '{'"),
        (b'[{"a": 1}] x', "something follows the end"),
        (b'{"a": "sm\xc3\xb6r"}\n{"a": "sm\xf6r"}\n', "line 2: bytes that are not utf-8"),
        (b"\x1f\x8b\x07 no gzip after all", "damaged gzip"),
    ],
)
def test_damage_is_named_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        records(path)


def test_windows_encoding_where_utf8_never_worked(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(json.dumps({"a": "café"}, ensure_ascii=False).encode("cp1252") + b"\n")
    report = StreamReport(may_be_windows=True)
    assert records(path, report) == [{"a": "café"}]
    assert report.encoding == "cp1252"
    with pytest.raises(InputError, match="bytes that are not utf-8"):
        records(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        records(tmp_path / "none.jsonl")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.dictionaries(st.text(), json_values, max_size=4), max_size=5),
    chunk=st.integers(1, 40),
    indent=st.sampled_from([None, 1]),
)
def test_arrays_do_not_depend_on_where_chunks_end(
    tmp_path_factory: pytest.TempPathFactory, rows: Any, chunk: int, indent: int | None
) -> None:
    path = tmp_path_factory.mktemp("chunks") / "log.json"
    path.write_bytes(json.dumps(rows, indent=indent, ensure_ascii=False).encode("utf-8", "replace"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_CHUNK", chunk)
        assert records(path) == json.loads(path.read_bytes())


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 400), chunk=st.integers(1, 64))
def test_members_of_a_cut_object_are_those_before_the_cut(
    tmp_path_factory: pytest.TempPathFactory, cut: int, chunk: int
) -> None:
    path = tmp_path_factory.mktemp("members") / "log.json"
    document = {"version": 2, "samples": [RECORD, RECORD, RECORD], "status": "success"}
    whole = json.dumps(document).encode()
    path.write_bytes(whole[: max(1, len(whole) - cut)])
    report = StreamReport()
    with pytest.MonkeyPatch.context() as patch, path.open("rb") as stream:
        patch.setattr(json_stream, "_CHUNK", chunk)
        found = list(read_members(stream, path, report, streamed=frozenset({"samples"})))
    expected = [("version", 2), *[("samples", RECORD)] * 3, ("status", "success")]
    assert [(key, value) for key, _, value in found] == expected[: len(found)]
    assert (report.cut_off is None) == (cut == 0)


def test_a_large_array_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    row = json.dumps({"doc": "x" * 10_000})
    path.write_text("[" + ",\n".join([row] * 3000) + "]")
    tracemalloc.start()
    count = sum(1 for _ in read_records(path, StreamReport()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 3000
    assert peak < 12e6


def test_read_object(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"a": NaN}')
    assert math.isnan(read_object(path)["a"])
    path.write_text("[]")
    with pytest.raises(InputError, match="expected an object, found list"):
        read_object(path)
    path.write_text('{"a": ')
    with pytest.raises(InputError, match="not valid JSON"):
        read_object(path)
