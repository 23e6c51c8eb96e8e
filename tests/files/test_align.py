"""Files joined on one benchmark: order, union, contradictions, missing samples."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from disco_cli.errors import InputError
from disco_cli.files.align import (
    align,
    has_correctness,
    read_correctness,
    read_probabilities,
    read_values,
    responses,
)
from disco_cli.files.identity import canonical_order
from disco_cli.files.matrix import Benchmark, Kind
from disco_cli.files.open import open_predictions

NAN = np.nan
ONE_HOT = np.eye(3)[[0, 1, 2, 0]]


def opened(folder: Path, **files: dict[str, Any]) -> list[Any]:
    for name, content in files.items():
        np.savez(folder / f"{name}.npz", **content)
    return [open_predictions(folder / f"{name}.npz") for name in files]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["10", "9", "-3", "007", "7"], ["-3", "007", "7", "9", "10"]),
        (["q10", "q9", "p11", "q09", "q"], ["p11", "q", "q09", "q9", "q10"]),
        (["10", "9", "x"], ["9", "10", "x"]),
        (["a/2/x", "a/10/x"], ["a/10/x", "a/2/x"]),
        (["b" + "9" * 30, "b1" + "0" * 30, "b0"], ["b0", "b" + "9" * 30, "b1" + "0" * 30]),
        (["é2", "é1", "z1"], ["z1", "é1", "é2"]),
    ],
)
def test_the_canonical_order_of_ids(ids: list[str], expected: list[str]) -> None:
    for some in list(permutations(ids))[:24]:
        column = np.array(some)
        assert column[canonical_order(column)].tolist() == expected


def same(left: Benchmark, right: Benchmark) -> None:
    assert left.names == right.names
    assert left.notes == right.notes
    for name in ("ids", "labels", "groups", "weights", "n_options", "hashes"):
        np.testing.assert_array_equal(
            getattr(left.samples, name), getattr(right.samples, name), name
        )
    for m in range(len(left.models)):
        for read in (read_probabilities, read_correctness, read_values):
            np.testing.assert_array_equal(read(left, m), read(right, m))


@settings(
    max_examples=40, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.integers(0, 2**32), st.booleans())
def test_no_order_of_files_or_rows_changes_anything(
    tmp_path: Path, seed: int, compressed: bool
) -> None:
    rng = np.random.default_rng(seed)
    m, n, c = 4, 12, 3
    values = rng.dirichlet(np.ones(c), (m, n)).astype(np.float32)
    columns = {
        "sample_ids": np.array([f"q{i}" for i in range(n)]),
        "labels": rng.integers(-1, c, n),
        "groups": rng.choice(["x", "y"], n),
        "weights": rng.random(n) + 0.1,
    }
    save = np.savez_compressed if compressed else np.savez
    benchmarks = []
    for shuffled in (False, True):
        files = []
        for number in range(m):
            held = np.arange(number, n)  # each file lacks the samples before its own number
            if shuffled:
                rng.shuffle(held)
            path = tmp_path / f"m{number}.npz"
            some = {key: column[held] for key, column in columns.items()}
            save(path, predictions=values[number, held], **some)
            files.append(open_predictions(path))
        if shuffled:
            files = [files[i] for i in rng.permutation(m)]
        benchmarks.append(align(files))
        # read now: the files are written again
        benchmark = benchmarks[-1]
        assert benchmark.samples.ids is not None
        assert benchmark.samples.ids.tolist() == columns["sample_ids"].tolist()
        assert benchmark.names == ("m0", "m1", "m2", "m3")
        for number in range(m):
            expected = values[number].copy()
            expected[:number] = NAN
            np.testing.assert_array_equal(read_probabilities(benchmark, number), expected)
            some_rows = rng.permutation(n)[:5]
            np.testing.assert_array_equal(
                read_probabilities(benchmark, number, some_rows), expected[some_rows]
            )
            np.testing.assert_array_equal(
                read_correctness(benchmark, number, slice(2, 9)),
                np.where(
                    np.isnan(expected[:, 0]) | (columns["labels"] < 0),
                    NAN,
                    values[number].argmax(1) == columns["labels"],
                )[2:9],
            )
        for name in ("labels", "groups", "weights"):
            np.testing.assert_array_equal(getattr(benchmark.samples, name), columns[name])


def test_a_stack_and_single_files_read_the_same(tmp_path: Path) -> None:
    values = np.random.default_rng(0).dirichlet(np.ones(3), (3, 5))
    common = {"sample_ids": np.arange(5), "labels": [0, 1, 2, 0, 1]}
    singles = opened(
        tmp_path,
        **{name: {"predictions": v, **common} for name, v in zip("abc", values, strict=True)},
    )
    stack = opened(
        tmp_path, s={"predictions": values[[2, 0, 1]], "model_names": ["c", "a", "b"], **common}
    )
    left, right = align(singles), align(stack)
    assert left.names == right.names == ("a", "b", "c")
    for m in range(3):
        np.testing.assert_array_equal(read_probabilities(left, m), values[m])
        np.testing.assert_array_equal(read_probabilities(right, m), values[m])
    np.testing.assert_array_equal(responses(left), responses(right))


def test_labels_and_groups_of_some_files_count_for_all(tmp_path: Path) -> None:
    files = opened(
        tmp_path,
        a={"predictions": ONE_HOT, "sample_ids": list("abcd")},
        b={"predictions": ONE_HOT[:2], "sample_ids": list("ab"), "labels": [0, -1], "groups": ["x", "x"]},
        c={"predictions": ONE_HOT[1:3], "sample_ids": list("bc"), "labels": [2, 2]},
    )  # fmt: skip
    benchmark = align(files)
    assert benchmark.samples.labels is not None
    assert benchmark.samples.groups is not None
    assert benchmark.samples.labels.tolist() == [0, 2, 2, -1]
    assert benchmark.samples.groups.tolist() == ["x", "x", "", ""]
    np.testing.assert_array_equal(
        responses(benchmark), [[1, 0, 1, NAN], [1, 0, NAN, NAN], [NAN, 0, 1, NAN]]
    )


def test_without_ids_samples_are_joined_by_position(tmp_path: Path) -> None:
    files = opened(tmp_path, a={"predictions": ONE_HOT}, b={"predictions": ONE_HOT[::-1]})
    benchmark = align(files)
    assert benchmark.by_position
    np.testing.assert_array_equal(read_probabilities(benchmark, 1), ONE_HOT[::-1])
    assert not has_correctness(benchmark)


def test_kinds_with_classes_combine(tmp_path: Path) -> None:
    files = opened(
        tmp_path,
        a={"predictions": ONE_HOT},
        b={"logits": 9 * ONE_HOT + 5},
        c={"predicted_labels": [0, 1, -1, 0]},
    )
    benchmark = align(files)
    assert benchmark.n_classes == benchmark.width == 3
    assert read_values(benchmark, 2).tolist() == [0, 1, -1, 0]
    np.testing.assert_array_equal(read_probabilities(benchmark, 2)[:2], ONE_HOT[:2])
    assert [model.file.kind for model in benchmark.models] == [
        Kind.PROBABILITIES, Kind.LOGITS, Kind.LABELS,
    ]  # fmt: skip


def test_no_answer_is_wrong_and_a_class_where_asked(tmp_path: Path) -> None:
    files = opened(
        tmp_path,
        a={"predicted_labels": [0, 1, -1, -2], "labels": [0, 0, 0, 0]},
        b={"predictions": ONE_HOT},
    )
    missing, counted = align(files), align(files, counts_no_answer=True)
    np.testing.assert_array_equal(read_correctness(missing, 0), [1, 0, NAN, NAN])
    np.testing.assert_array_equal(read_correctness(counted, 0), [1, 0, 0, NAN])
    assert counted.width == 4
    assert read_values(counted, 0).tolist() == [0, 1, 3, -1]
    np.testing.assert_array_equal(read_probabilities(counted, 0)[2], [0, 0, 0, 1])
    np.testing.assert_array_equal(read_probabilities(counted, 1)[0], [1, 0, 0, 0])


def test_responses_have_no_classes(tmp_path: Path) -> None:
    files = opened(tmp_path, a={"responses": [0.25, NAN]}, b={"responses": [1, 0]})
    benchmark = align(files)
    assert benchmark.n_classes is None
    assert benchmark.width == 2
    assert has_correctness(benchmark)
    np.testing.assert_array_equal(responses(benchmark), [[0.25, NAN], [1, 0]])
    np.testing.assert_array_equal(read_probabilities(benchmark, 0), [[0.25, 0.75], [NAN, NAN]])


def test_ragged_options_told_by_one_file_count_for_all(tmp_path: Path) -> None:
    row = [0.5, 0.5, 0.0]
    files = opened(
        tmp_path,
        a={"predictions": [row, row], "sample_ids": [1, 2], "n_options": [2, 3]},
        b={"logits": [[1.0, 1.0, 9.0], [0.0, 5.0, 9.0]], "sample_ids": [1, 2]},
    )
    np.testing.assert_array_equal(read_probabilities(align(files), 1)[0], row)


IDS = {"sample_ids": list("abcd")}
CLASHES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (IDS, {}, r"b\.npz: has no sample_ids, but .*a\.npz has; add them"),
    ({}, {"predictions": ONE_HOT[:3]}, r"b\.npz: has 3 samples, but .*a\.npz has 4; without sample"),
    ({}, {"predictions": np.eye(4)}, r"b\.npz: has 4 classes, but .*a\.npz has 3"),
    ({}, {"responses": [1, 0, 1, 0], "predictions": None}, "holds responses, but .* probabilities"),
    (
        {**IDS, "labels": [0, 1, 2, 0]},
        {**IDS, "labels": [0, 1, 1, 0]},
        r"b\.npz: sample 'c' has label 1, but 2 in .*a\.npz",
    ),
    ({"labels": [0, 1, 2, 0]}, {"labels": [0, 1, 1, 0]}, "sample 2 has label 1, but 2 in"),
    ({**IDS, "groups": list("xxyy")}, {**IDS, "groups": list("xxyz")}, "'d' has group 'z', but 'y'"),
    ({**IDS, "weights": [1, 1, 1, 2]}, {**IDS, "weights": [1, 1, 1, 3]}, "weight 3.0, but 2.0 in"),
    ({**IDS, "n_options": [3, 3, 3, 2]}, {**IDS, "n_options": [3] * 4}, "number of options 3, but 2"),
    (
        {**IDS, "sample_hashes": list("pqrs")},
        {**IDS, "sample_hashes": list("pqrt")},
        "sample 'd' has hash 't', but 's' in",
    ),
    ({"class_names": list("xyz")}, {"class_names": list("xzy")}, "class 1 named 'z', but 'y' in"),
    (
        {},
        {"predictions": None, "predicted_labels": [0, 1, 2, 3]},
        r"b\.npz: has labels up to 3, but .*a\.npz has only 3 classes",
    ),
    ({"model_names": ["m"]}, {"model_names": ["m"]}, r"b\.npz: model 'm' is in .*a\.npz too"),
    (
        {**IDS, "n_options": [3, 3, 3, 2]},
        {**IDS, "labels": [0, 0, 0, 2]},
        r"sample 'd' has a label beyond its options",
    ),
    (
        {**IDS, "weights": [1] * 4},
        {"sample_ids": list("abce")},
        r"sample 'e' has no weight in any file, but others do",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "found"), CLASHES)
def test_files_that_contradict_each_other_are_named(
    tmp_path: Path, left: dict[str, Any], right: dict[str, Any], found: str
) -> None:
    contents = {
        name: {k: v for k, v in {"predictions": ONE_HOT, **more}.items() if v is not None}
        for name, more in (("a", left), ("b", right))
    }
    files = opened(tmp_path, **contents)
    messages = set()
    for some in (files, files[::-1]):
        with pytest.raises(InputError, match=found) as caught:
            align(some)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_weights_rounded_to_float32_are_the_same_weights(tmp_path: Path) -> None:
    weights = np.array([0.1, 0.2, 0.3, 0.7])
    files = opened(
        tmp_path,
        a={"predictions": ONE_HOT, "weights": weights.astype(np.float32)},
        b={"predictions": ONE_HOT, "weights": weights},
    )
    found = align(files).samples.weights
    assert found is not None
    np.testing.assert_allclose(found, weights, rtol=1e-6)
    assert align(files[::-1]).samples.weights is not None


def test_options_mean_nothing_to_responses(tmp_path: Path) -> None:
    files = opened(
        tmp_path,
        a={"responses": [1, 0], "sample_ids": [1, 2], "n_options": [4, 4], "labels": [3, 0]},
        b={"responses": [1, 0], "sample_ids": [2, 3], "labels": [0, 2]},
    )
    benchmark = align(files)
    assert benchmark.samples.n_options is None
    assert benchmark.samples.labels is not None
    assert benchmark.samples.labels.tolist() == [3, 0, 2]


def test_a_name_that_comes_twice_from_file_names_says_what_helps(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        np.savez(tmp_path / folder / "m.npz", predictions=ONE_HOT)
    files = [open_predictions(tmp_path / folder / "m.npz") for folder in ("x", "y")]
    with pytest.raises(InputError, match="model_names in the file; without it the file's name"):
        align(files)


def test_the_same_file_twice_is_a_name_twice(tmp_path: Path) -> None:
    opened(tmp_path, a={"predictions": ONE_HOT})
    files = [open_predictions(tmp_path / "a.npz") for _ in range(2)]
    with pytest.raises(InputError, match="is given twice"):
        align(files)


def test_no_files_are_no_benchmark() -> None:
    with pytest.raises(InputError, match="no prediction files; name at least one"):
        align([])


def test_correctness_without_labels_says_what_is_missing(tmp_path: Path) -> None:
    benchmark = align(opened(tmp_path, a={"predictions": ONE_HOT}))
    with pytest.raises(InputError, match=r"a\.npz: no labels, .* add labels \(N,\)"):
        read_correctness(benchmark, 0)


def test_notes_are_told_once_and_strangers_are_pointed_out(tmp_path: Path) -> None:
    files = opened(
        tmp_path,
        a={"preds": ONE_HOT, "sample_ids": [1, 2, 3, 4]},
        b={"preds": ONE_HOT, "sample_ids": [1, 2, 3, 5]},
        c={"preds": ONE_HOT, "sample_ids": [6, 7, 8, 9]},
    )
    assert align(files).notes == (
        f"{tmp_path}/a.npz and 2 more: preds taken for probabilities",
        f"{tmp_path}/c.npz: has no sample in common with any other file",
    )


def test_predicted_labels_among_probabilities_are_pointed_out(tmp_path: Path) -> None:
    answers = np.zeros(4, np.int64)
    files = opened(
        tmp_path, a={"probs": ONE_HOT}, b={"predicted_labels": answers}, c={"probs": ONE_HOT}
    )
    note = "predicted labels among models with probabilities; they count as certain of their answer"
    assert align(files).notes == (f"{tmp_path}/b.npz: {note}, which looks like disagreement",)
    assert align([files[0], files[2]]).notes == align([files[1]]).notes == ()


def test_a_bad_row_is_named_by_its_row_in_the_file(tmp_path: Path) -> None:
    n = 300
    values = np.full((2, n, 2), 0.5)
    values[1, 150] = [0.3, 0.4]
    ids = [f"q{n - i}" for i in range(n)]
    content = {"predictions": values, "sample_ids": ids, "model_names": ["x", "y"]}
    benchmark = align(opened(tmp_path, a=content))
    with pytest.raises(
        InputError, match=r"a\.npz: row 150 \(sample 'q150'\), model 'y': probabilities sum to 0\.7"
    ):
        read_probabilities(benchmark, 1, slice(100, 200))
