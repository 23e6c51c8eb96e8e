"""What is written comes back the same, from both formats, whatever it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from disco_cli.files.matrix import Kind, ModelInfo, PredictionFile, Samples
from disco_cli.files.npz import write_npz
from disco_cli.files.open import open_predictions
from disco_cli.files.parquet import write_parquet

FIELDS = ("ids", "hashes", "labels", "groups", "weights", "n_options")


def write(path: Path, how: str, *content: Any, **more: Any) -> None:
    if how == "parquet":
        write_parquet(path, *content, **more)
    else:
        write_npz(path, *content, compressed=how == "compressed", **more)


def same(left: NDArray[Any] | None, right: NDArray[Any] | None) -> bool:
    if left is None or right is None:
        return left is right
    return left.dtype.kind == right.dtype.kind and left.tolist() == right.tolist()


def values_of(file: PredictionFile) -> NDArray[Any]:
    return np.stack([file.read(m, slice(None)) for m in range(len(file.models))])


@st.composite
def contents(draw: st.DrawFn) -> tuple[NDArray[Any], Kind, Samples, tuple[ModelInfo, ...], Any]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m, n, c = draw(st.integers(1, 4)), draw(st.integers(1, 9)), draw(st.integers(2, 5))
    kind = draw(st.sampled_from(Kind))
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    maybe = st.booleans()
    logits = 4 * rng.normal(size=(m, n, c)) + 2
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    values: NDArray[Any] = {
        Kind.LOGITS: logits.astype(dtype),
        Kind.PROBABILITIES: np.exp(logs).astype(dtype),
        Kind.LOG_PROBABILITIES: logs.astype(dtype),
        Kind.LABELS: rng.integers(-2, c, (m, n)).astype(draw(st.sampled_from(["i1", "i8"]))),
        Kind.RESPONSES: rng.random((m, n)).astype(dtype),
    }[kind]
    if kind is not Kind.LABELS and draw(maybe):
        values[rng.random((m, n)) < 0.3] = np.nan
    texts = st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),
        min_size=n,
        max_size=n,
    )
    samples = Samples(
        n,
        ids=np.array(draw(st.permutations([f"q{i}é" for i in range(n)]))) if draw(maybe) else None,
        hashes=np.array(draw(texts)) if draw(maybe) else None,
        labels=rng.integers(-1, c, n) if draw(maybe) else None,
        groups=np.array(draw(texts)) if draw(maybe) else None,
        weights=rng.random(n) + 0.1 if draw(maybe) else None,
        n_options=np.full(n, c) if draw(maybe) else None,
        class_names=tuple(f"class {i}" for i in range(c)) if draw(maybe) else None,
    )
    models = tuple(
        ModelInfo(
            f"model {i}",
            draw(st.sampled_from([None, "2026", "2026-01", "2026-01-31"])),
            draw(st.sampled_from([None, 0.25, 71.5])),
        )
        for i in draw(st.permutations(range(m)))
    )
    beside = (
        rng.random((m, n)).astype(dtype) if kind is not Kind.RESPONSES and draw(maybe) else None
    )
    return values, kind, samples, models, beside


@pytest.mark.parametrize("how", ["stored", "compressed", "parquet"])
@settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(content=contents())
def test_a_written_file_reads_back_the_same(how: str, tmp_path: Path, content: Any) -> None:
    values, kind, samples, models, beside = content
    path, again = tmp_path / "a", tmp_path / "b"
    write(path, how, values, kind, samples, models, responses=beside)
    write(again, how, values, kind, samples, models, responses=beside)
    assert path.read_bytes() == again.read_bytes()

    # Random values of few samples can look doubtful: here it is the round trip that counts.
    forced = None if kind in (Kind.LABELS, Kind.RESPONSES) else kind
    file = open_predictions(path, forced)
    assert file.kind is kind
    assert file.models == models
    assert file.samples.class_names == samples.class_names
    for name in FIELDS:
        assert same(getattr(file.samples, name), getattr(samples, name)), name
    assert file.dtype == values.dtype
    np.testing.assert_array_equal(values_of(file), values)
    if beside is None:
        assert file.read_responses is None
    else:
        assert file.read_responses is not None
        for m in range(len(models)):
            np.testing.assert_array_equal(file.read_responses(m, slice(None)), beside[m])


@pytest.mark.parametrize("how", ["stored", "compressed", "parquet"])
def test_rows_are_fetched_in_the_order_asked_for(how: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.dirichlet(np.ones(3), (4, 50)).astype(np.float32)
    models = [ModelInfo(name) for name in "dbca"]
    write(tmp_path / "a", how, values, Kind.PROBABILITIES, Samples(50), models)
    file = open_predictions(tmp_path / "a")
    for model in (2, 0, 3, 3, 1):
        for rows in (slice(3, 9), slice(None), np.array([7, 3, 40]), np.arange(5, 12)):
            np.testing.assert_array_equal(file.read(model, rows), values[model][rows])
        assert file.read(model, np.zeros(0, np.int64)).shape == (0, 3)
