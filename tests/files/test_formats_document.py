"""docs/formats.md: its examples run, and it names what is understood."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from disco_cli.files import npz, parquet
from disco_cli.files.align import align, read_correctness, read_probabilities
from disco_cli.files.open import open_predictions

TEXT = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def run(example: str) -> None:
    exec(compile(example, "docs/formats.md", "exec"), {})  # noqa: S102


def test_the_numpy_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(EXAMPLES[0])
    benchmark = align([open_predictions("my-model.npz")])
    assert benchmark.names == ("my-model",)
    assert read_probabilities(benchmark, 0).shape == (100, 4)
    assert 0 < read_correctness(benchmark, 0).mean() < 1


def test_the_pyarrow_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(EXAMPLES[1])
    benchmark = align([open_predictions("two-models.parquet")])
    assert benchmark.names == ("a", "b")
    np.testing.assert_array_equal(
        read_probabilities(benchmark, 0), [[0.2, 0.8, 0], [0.5, 0.3, 0.2]]
    )
    np.testing.assert_array_equal(read_correctness(benchmark, 1), [0, 1])


def test_there_are_two_examples_of_about_five_lines() -> None:
    assert len(EXAMPLES) == 2
    for example in EXAMPLES:
        assert len([line for line in example.splitlines() if line]) <= 6


@pytest.mark.parametrize(
    "name",
    [
        *(key for key in npz.VALUE_KEYS if key != "arr_0"), npz.RESPONSES_KEY, *npz.SAMPLE_KEYS,
        *npz.MODEL_KEYS, *npz.ALIASES, *parquet.LIST_COLUMNS, *parquet.SAMPLE_COLUMNS,
        *parquet.MODEL_COLUMNS, parquet.LABEL_COLUMN, parquet.RESPONSE_COLUMN,
    ],
)  # fmt: skip
def test_every_name_that_is_understood_is_named(name: str) -> None:
    assert f"`{name}`" in TEXT


def test_every_other_parquet_name_is_named_or_a_plural() -> None:
    for name in parquet.ALIASES:
        in_npz = {*npz.VALUE_KEYS, npz.RESPONSES_KEY, *npz.SAMPLE_KEYS, *npz.MODEL_KEYS}
        assert name in in_npz or f"`{name}`" in TEXT
