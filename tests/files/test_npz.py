"""NPZ files as people save them: what is understood, what is refused, and how it is read."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from disco_cli.errors import InputError
from disco_cli.files import arrays, fetch, inflate
from disco_cli.files.align import align, read_correctness, read_probabilities
from disco_cli.files.matrix import Kind, ModelInfo, Samples
from disco_cli.files.npz import write_npz
from disco_cli.files.open import open_predictions

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(3), 6)
STACK = RNG.dirichlet(np.ones(3), (2, 6))


def saved(folder: Path, **arrays_: Any) -> Path:
    path = folder / "model.npz"
    np.savez(path, **arrays_)
    return path


@pytest.mark.parametrize(
    ("key", "alias"),
    [
        ("predictions", "preds"), ("predictions", "probs"), ("predictions", "probabilities"),
        ("predictions", "arr_0"),
    ],
)  # fmt: skip
def test_values_are_found_under_the_names_people_use(tmp_path: Path, key: str, alias: str) -> None:
    file = open_predictions(saved(tmp_path, **{alias: P}))
    assert file.kind is Kind.PROBABILITIES
    assert file.models == (ModelInfo("model"),)
    assert file.n_classes == 3
    np.testing.assert_array_equal(file.read(0, slice(None)), P)


@pytest.mark.parametrize("alias", ["labels", "y_true", "targets"])
def test_labels_are_found_and_the_alias_is_noted(tmp_path: Path, alias: str) -> None:
    file = open_predictions(saved(tmp_path, predictions=P, **{alias: [0, 1, 2, -1, -100, 0]}))
    assert file.samples.labels is not None
    assert file.samples.labels.tolist() == [0, 1, 2, -1, -1, 0]
    assert (f"{alias} taken for labels" in file.notes) is (alias != "labels")


def test_a_plain_npy_file_is_a_single_array(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", P)
    file = open_predictions(tmp_path / "a.npy")
    assert file.notes == ("the unnamed array taken for probabilities",)
    np.testing.assert_array_equal(file.read(0, slice(2, 4)), P[2:4])


def test_the_format_is_told_by_content(tmp_path: Path) -> None:
    path = saved(tmp_path, predictions=P)
    path.rename(tmp_path / "a.parquet")
    assert open_predictions(tmp_path / "a.parquet").kind is Kind.PROBABILITIES


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (np.array([0, 2, 1, -1]), Kind.LABELS),
        (np.array([0.0, 1.0, np.nan]), Kind.RESPONSES),
        (np.array([True, False]), Kind.RESPONSES),
    ],
)
def test_one_number_per_sample_without_a_name(tmp_path: Path, column: Any, kind: Kind) -> None:
    file = open_predictions(saved(tmp_path, arr_0=column))
    assert file.kind is kind
    assert file.notes == (f"the unnamed array taken for {kind.value}",)


def test_numbers_that_may_be_labels_or_correct_answers_need_a_word(tmp_path: Path) -> None:
    path = saved(tmp_path, arr_0=[0, 1, 1, 0])
    with pytest.raises(InputError, match="may be predicted labels or correct answers; name it"):
        open_predictions(path)
    assert open_predictions(path, Kind.LABELS).n_classes == 2
    assert open_predictions(path, Kind.RESPONSES).n_classes is None


def test_strings_of_every_kind_become_text(tmp_path: Path) -> None:
    for ids in (np.arange(6), np.array(list("abcdef")), np.array([b"x%d" % i for i in range(6)])):
        file = open_predictions(saved(tmp_path, predictions=P, sample_ids=ids, groups=ids))
        expected = [i.decode() if isinstance(i, bytes) else str(i) for i in ids.tolist()]
        assert file.samples.ids is not None
        assert file.samples.ids.tolist() == expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["bee", "ant", "cat", "", "cat", "bee"], [2, 1, 0, -1, 0, 2]),
        ([0, 1, 2, np.nan, 1, 0], [0, 1, 2, -1, 1, 0]),
    ],
)
def test_labels_may_be_floats_or_class_names(
    tmp_path: Path, labels: list[Any], expected: list[int]
) -> None:
    path = saved(tmp_path, predictions=P, class_names=["cat", "ant", "bee"], labels=labels)
    found = open_predictions(path).samples.labels
    assert found is not None
    assert found.tolist() == expected


def test_dates_scores_and_names_belong_to_models(tmp_path: Path) -> None:
    path = saved(
        tmp_path, predictions=STACK, model_names=["b", "a"], scores=[np.nan, 0.5],
        dates=np.array(["2026-01-31", "NaT"], "M8[D]"),
    )  # fmt: skip
    assert open_predictions(path).models == (
        ModelInfo("b", "2026-01-31", None),
        ModelInfo("a", None, 0.5),
    )
    file = open_predictions(saved(tmp_path, predictions=STACK))
    assert [model.name for model in file.models] == ["model-0", "model-1"]
    assert "models without names are called model-0 … model-1" in file.notes


def test_responses_may_stand_beside_the_values(tmp_path: Path) -> None:
    measured = [0, 0.5, 1, np.nan, 1, 1]
    path = saved(tmp_path, predictions=P, responses=measured, labels=[0] * 6)
    benchmark = align([open_predictions(path)])
    np.testing.assert_array_equal(read_correctness(benchmark, 0), measured)
    np.testing.assert_array_equal(read_probabilities(benchmark, 0), P)
    assert open_predictions(path, Kind.RESPONSES).kind is Kind.RESPONSES


BAD: list[tuple[dict[str, Any], str]] = [
    ({"predictions": P, "predicitons": P}, "unknown key 'predicitons'; known are predictions, pre"),
    ({"labels": [0, 1]}, "holds no values; one of predictions, preds"),
    ({"predictions": P, "logits": P}, "holds both predictions and logits; keep one of them"),
    ({"predictions": P, "labels": [0] * 6, "targets": [0] * 6}, "holds both labels and targets"),
    ({"predictions": np.zeros((0, 3))}, r"predictions is empty; it has shape \(1, 0, 3\)"),
    ({"predictions": np.zeros((3, 1))}, "predictions has one class only"),
    ({"predictions": np.zeros((2, 2, 2, 2))}, r"shape \(2, 2, 2, 2\); it should be \(N, C\) or"),
    ({"logits": np.zeros(3)}, r"logits has shape \(3,\); it should be \(N, C\) or \(M, N, C\) for"),
    ({"predicted_labels": np.zeros((2, 2, 2), int)}, r"it should be \(N,\) or \(M, N\) for labels"),
    ({"predictions": np.array([["a", "b"]])}, "predictions are <U1; they should be numbers"),
    ({"predictions": np.ones((2, 2), complex)}, "predictions are complex128; they should be num"),
    ({"predictions": P, "sample_ids": list("abcdea")}, "sample id 'a' stands twice, in rows 0 and 5"),
    ({"predictions": P, "sample_ids": list("abcde")}, r"sample_ids has shape \(5,\); .* \(6,\)"),
    ({"predictions": P, "sample_ids": [0.5] * 6}, "sample_ids are float64; they should be integers"),
    ({"predictions": P, "sample_ids": np.array([b"\xff"] * 6)}, "sample_ids are not UTF-8 text"),
    ({"predictions": P, "labels": [0, 1, 2, 3, 0, 0]}, r"labels\[3\] is 3: lies beyond the options"),
    ({"predictions": P, "labels": [0.5] * 6}, r"labels\[0\] is 0\.5: should be a whole number"),
    ({"predictions": P, "labels": list("abcdef")}, "labels are text; save them as numbers from 0"),
    (
        {"predictions": P, "labels": list("abcdef"), "class_names": list("abc")},
        r"labels\[3\] is 'd': is none of class_names",
    ),
    ({"predictions": P, "n_options": [3, 2, 2, 4, 3, 3]}, r"n_options\[3\] is 4: should lie between"),
    ({"predictions": P, "n_options": [3, 0, 2, 3, 3, 3]}, r"n_options\[1\] is 0: should lie between"),
    ({"predictions": P, "weights": [1, 1, np.nan, 1, 1, 1]}, r"weights\[2\] is nan: should be a fin"),
    ({"predictions": P, "weights": [1, -1, 1, 1, 1, 1]}, r"weights\[1\] is -1\.0: should be a finite"),
    ({"predictions": P, "weights": [0] * 6}, "weights are all 0"),
    ({"predictions": P, "class_names": ["a", "b"]}, r"class_names has shape \(2,\), .* 3 classes"),
    ({"predictions": P, "class_names": list("aba")}, "class name 'a' stands twice, in rows 0 and 2"),
    ({"predictions": STACK, "model_names": ["a"]}, r"model_names has shape \(1,\); it should be \(2,"),
    ({"predictions": STACK, "model_names": ["a", "a"]}, "model name 'a' stands twice, in rows 0 and"),
    ({"predictions": STACK, "model_names": ["a", ""]}, r"model_names\[1\] is '': is empty"),
    ({"predictions": STACK, "dates": ["2026-01-31", "soon"]}, r"dates\[1\] is 'soon'; it should be"),
    ({"predictions": P, "dates": ["2026-02-30"]}, r"dates\[0\] is '2026-02-30'"),
    ({"predictions": P, "scores": [np.inf]}, r"scores\[0\] is inf"),
    ({"predictions": P, "responses": [1, 0]}, r"responses has shape \(2,\), .* 1 × 6"),
    ({"predictions": np.where(np.arange(6)[:, None] == 4, [[np.nan, 0.5, 0.5]], P)}, "row 4: 1 of 3"),
    ({"predictions": 0.7 * P}, r"row 0: values lie in \[0, 1\] but sum to 0\.7 instead of 1"),
    ({"predicted_labels": [0.5, 1]}, r"row 0: predicted label 0\.5 is not a whole number"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "found"), BAD)
def test_bad_content_is_one_line_that_names_file_and_key(
    tmp_path: Path, content: dict[str, Any], found: str
) -> None:
    path = saved(tmp_path, **content)
    with pytest.raises(InputError, match=found) as caught:
        read_probabilities(align([open_predictions(path)]), 0)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


class Bomb:
    def __reduce__(self) -> Any:
        return os.mkdir, ("bomb",)


@pytest.mark.parametrize("key", ["predictions", "sample_ids"])
def test_objects_are_never_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.chdir(tmp_path)
    content = {"predictions": P, key: np.array([Bomb()] * 6, object)}
    np.savez("model.npz", allow_pickle=True, **content)
    with pytest.raises(InputError, match=f"{key} holds Python objects; pickled objects are never"):
        open_predictions("model.npz")
    np.save("model.npy", content[key], allow_pickle=True)
    assert not Path("bomb").exists()
    if key == "sample_ids":
        with pytest.raises(InputError, match="arr_0 holds Python objects"):
            open_predictions("model.npy")
        assert not Path("bomb").exists()


def test_files_that_are_no_prediction_files(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("model,accuracy\n")
    (tmp_path / "half.npz").write_bytes(b"PK\x03\x04")
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with zipfile.ZipFile(tmp_path / "nothing.npz", "w"):
        pass
    with zipfile.ZipFile(tmp_path / "bz.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("predictions.npy", "hello")
    for name, found in {
        "empty": "is empty; docs/formats.md shows",
        "text": "is neither NPZ nor Parquet; docs",
        "half.npz": "truncated or damaged NPZ file",
        "other.npz": r"readme\.txt is not a readable numpy array",
        "nothing.npz": "holds no values",
        "bz.npz": "predictions is compressed with zip method 12; save it with",
        "missing.npz": "no such file",
        ".": "is a folder; name the prediction files in it",
    }.items():
        with pytest.raises(InputError, match=found):
            open_predictions(tmp_path / name)


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_a_name_twice_in_one_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("predictions.npy", "")
        archive.writestr("predictions.npy", "")
    with pytest.raises(InputError, match="two arrays of one name"):
        open_predictions(tmp_path / "a.npz")


@pytest.mark.parametrize("how", ["stored", "compressed", "ours", "npy"])
def test_a_truncated_or_damaged_file_is_an_input_error(tmp_path: Path, how: str) -> None:
    """Wherever it is cut, and whichever byte is changed: a clear error, never another one."""
    rng = np.random.default_rng(1)
    path = tmp_path / "model.npz"
    content = {
        "predictions": P,
        "sample_ids": np.array(list("abcdef")),
        "labels": [0, 1, 2, 0, 1, 2],
    }
    if how == "npy":
        with path.open("wb") as file:
            np.save(file, P)
    elif how == "ours":
        write_npz(path, P, Kind.PROBABILITIES, Samples(6, ids=np.array(list("abcdef"))))
    else:
        (np.savez if how == "stored" else np.savez_compressed)(path, **content)
    whole = path.read_bytes()

    def outcome(data: bytes) -> str:
        path.write_bytes(data)
        try:
            read_correctness(align([open_predictions(path)]), 0)
        except InputError as error:
            return str(error)
        return f"{path}: read"

    outcomes = [outcome(whole[:length]) for length in rng.integers(0, len(whole), 60)]
    for at in rng.integers(0, len(whole), 150):
        changed = bytearray(whole)
        changed[at] ^= int(rng.integers(1, 256))
        outcomes.append(outcome(bytes(changed)))
    for line in outcomes:
        assert line.startswith(f"{path}: ")
        assert "\n" not in line


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2", ">f2", ">f8"])
@pytest.mark.parametrize("small", [True, False])
def test_mapped_inflated_and_loaded_values_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Any, dtype: str, small: bool
) -> None:
    if not small:  # take the road of stacks that are inflated model by model
        monkeypatch.setattr(fetch, "SMALL_BYTES", 0)
    stack = np.array(RNG.dirichlet(np.ones(4), (5, 40)), dtype, order=order)
    names = [f"m{m}" for m in (3, 1, 4, 0, 2)]
    files = []
    for save, name in ((np.savez, "a"), (np.savez_compressed, "b")):
        save(tmp_path / f"{name}.npz", predictions=stack, model_names=names)
        files.append(open_predictions(tmp_path / f"{name}.npz"))
    write_npz(tmp_path / "c.npz", stack, Kind.PROBABILITIES, Samples(40), [*files[0].models])
    files.append(open_predictions(tmp_path / "c.npz"))
    assert [file.random_access for file in files] == [True, False, True]
    for file in files:
        benchmark = align([file])
        for m in range(5):
            at = names.index(f"m{m}")
            block = file.read(at, slice(3, 17))
            assert block.dtype.isnative
            assert block.flags.aligned
            np.testing.assert_array_equal(block, stack[at, 3:17])
            np.testing.assert_array_equal(
                read_probabilities(benchmark, m), stack[at].astype("f8" if "8" in dtype else "f4")
            )


def test_our_own_arrays_are_aligned_and_readable_by_numpy(tmp_path: Path) -> None:
    write_npz(tmp_path / "a.npz", P, Kind.PROBABILITIES, Samples(6, ids=np.array(list("abcdéf"))))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as content:
        assert content.files == ["predictions", "sample_ids"]
        np.testing.assert_array_equal(content["predictions"], P)
    for stored in arrays.find_arrays(str(tmp_path / "a.npz")).values():
        assert stored.offset % 64 == 0


@pytest.fixture(params=["zlib", "isal.isal_zlib"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Inflate with each of the libraries."""
    module = pytest.importorskip(request.param)
    monkeypatch.setattr(inflate, "_fast_zlib", lambda: module)
    return str(request.param)


def test_a_damaged_compressed_array_gives_an_error_or_the_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setattr(fetch, "SMALL_BYTES", 0)
    values = RNG.dirichlet(np.ones(5), 400).astype(np.float32)
    np.savez_compressed(tmp_path / "a.npz", probs=values)
    whole = (tmp_path / "a.npz").read_bytes()
    messages = []
    for at in np.linspace(40, len(whole) - 60, 150).astype(int):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << (at % 8)
        (tmp_path / "b.npz").write_bytes(damaged)
        try:
            file = open_predictions(tmp_path / "b.npz")
            found = [file.read(0, slice(start, start + 100)) for start in range(0, 400, 100)]
        except InputError as error:
            messages.append(str(error))
        else:
            np.testing.assert_array_equal(np.concatenate(found), values)
    assert len(messages) > 100
    assert all("b.npz" in message for message in messages)


def test_a_compressed_stack_is_inflated_once_when_read_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "SMALL_BYTES", 0)
    stack = RNG.dirichlet(np.ones(4), (20, 500)).astype(np.float32)
    np.savez_compressed(tmp_path / "a.npz", predictions=stack)
    file = open_predictions(tmp_path / "a.npz", Kind.PROBABILITIES)
    inflated = 0
    plain = inflate._Stream.read

    def counted(self: Any, source: Any, size: int) -> bytearray:
        nonlocal inflated
        inflated += size
        return plain(self, source, size)

    monkeypatch.setattr(inflate._Stream, "read", counted)
    for m in range(20):
        for start in range(0, 500, 100):
            file.read(m, slice(start, start + 100))
    assert inflated <= stack.nbytes + 200
    inflated = 0
    for m in reversed(range(20)):
        np.testing.assert_array_equal(file.read(m, slice(None)), stack[m])
    assert inflated <= stack.nbytes + 200


def test_a_large_compressed_array_is_inflated_once_for_blocks_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setattr(fetch, "SMALL_BYTES", 0)
    values = RNG.dirichlet(np.ones(4), 500).astype(np.float32)
    np.savez_compressed(tmp_path / "a.npz", probs=values)
    file = open_predictions(tmp_path / "a.npz")
    inflated = 0
    plain = inflate._Stream.read

    def counted(self: Any, source: Any, size: int) -> bytearray:
        nonlocal inflated
        inflated += size
        return plain(self, source, size)

    monkeypatch.setattr(inflate._Stream, "read", counted)
    for start in range(0, 500, 50):
        rows = slice(start, start + 50)
        np.testing.assert_array_equal(file.read(0, rows), values[rows])
    assert inflated <= values.nbytes + 200
    scattered = RNG.permutation(500)[:40]
    np.testing.assert_array_equal(file.read(0, scattered), values[scattered])


@pytest.mark.parametrize("compressed", [False, True])
def test_scattered_rows_are_read_in_few_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressed: bool
) -> None:
    monkeypatch.setattr(fetch, "SMALL_BYTES", 0)
    monkeypatch.setattr(fetch, "_RUN_BYTES", 64 * 16)
    monkeypatch.setattr(fetch, "_GAP_BYTES", 4 * 16)
    values = RNG.dirichlet(np.ones(4), 500).astype(np.float32)
    (np.savez_compressed if compressed else np.savez)(tmp_path / "a.npz", probs=values)
    file = open_predictions(tmp_path / "a.npz")
    for rows in (RNG.permutation(500), RNG.permutation(500)[:9], np.array([7, 7, 3]), []):
        at = np.array(rows, np.int64)
        np.testing.assert_array_equal(file.read(0, at), values[at])
    np.testing.assert_array_equal(file.read(0, slice(400, 20, -7)), values[400:20:-7])


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    path = saved(tmp_path, predictions=P)
    file = open_predictions(path)
    np.savez(path, predictions=P[:3])
    with pytest.raises(InputError, match="changed while it was being read"):
        file.read(0, slice(None))


def test_equal_columns_of_many_files_are_one_array(tmp_path: Path) -> None:
    files = []
    for name in "ab":
        path = tmp_path / f"{name}.npz"
        np.savez(path, predictions=P, sample_ids=list("abcdef"), labels=[0] * 6)
        files.append(open_predictions(path))
    assert files[0].samples.ids is files[1].samples.ids
    assert files[0].samples.labels is files[1].samples.labels
