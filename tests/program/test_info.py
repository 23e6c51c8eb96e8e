"""``disco info``: the same names everywhere, and JSON of numbers and lists."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from support import ROOT

OUTPUTS = (ROOT / "docs" / "outputs.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "what", "found"),
    [
        ("db", "database", {"n_models": 12, "k": 20, "method": "auto", "n_classes": 4}),
        ("selection.json", "selection", {"k": 20, "n_samples": 60, "seed": 0}),
        ("scores.parquet", "scores", {"n_samples": 60, "n_models": 12, "has_error_rate": True}),
    ],
)
def test_artifacts(disco, small_artifacts, path, what, found):
    done = disco("info", small_artifacts / path, "--json")
    facts = json.loads(done.stdout)
    assert facts["what"] == what
    assert {key: facts[key] for key in found} == found
    documented = next(line for line in OUTPUTS.splitlines() if line.startswith(f"| `{what}` |"))
    for key in facts.keys() - {"path", "what", "notes", "position"}:
        assert re.fullmatch("[a-z_]+", key)
        assert f"`{key}`" in documented
    rows = [line.split("\t") for line in disco("info", small_artifacts / path).stdout.splitlines()]
    assert rows[0] == [what, str(small_artifacts / path)]
    names = {"errors" if name.startswith("error of ") else name for name, _ in rows[1:]}
    assert names == facts.keys() - {"path", "what", "notes"}


def test_a_database_lists_its_errors_and_a_selection_its_samples(disco, small_artifacts):
    facts = json.loads(disco("info", small_artifacts, "--json").stdout)
    assert facts["errors"][0].keys() == {"name", "title", "mae", "note"}
    assert facts["versions"]["numpy"] == np.__version__
    facts = json.loads(disco("info", small_artifacts / "selection.json", "--json").stdout)
    assert len(facts["sample_ids"]) == sum(facts["roles"].values()) == 20


def test_a_prediction_file(disco, small):
    done = disco("info", small[0])
    assert "taken for probabilities" in done.stderr
    assert "sample_ids\ts0000, s0001, s0002, … (60)\n" in done.stdout
    quiet = disco("info", small[0], "-q", "--json")
    assert quiet.stderr == ""
    facts = json.loads(quiet.stdout)
    assert facts["beside"] == ["ids", "labels"]
    assert facts["sample_ids"] == [f"s{i:04d}" for i in range(60)]


def test_what_lacks_ids_has_positions(disco, small, tmp_path):
    for path in small:
        with np.load(path) as file:
            np.savez(path, predictions=file["predictions"], labels=file["labels"])
    disco("select", "--k", "5", "--method", "random", *small)
    facts = json.loads(disco("info", "disco-run/selection.json", "--json").stdout)
    assert len(facts["position"]) == 5
    assert "sample_ids" not in facts
