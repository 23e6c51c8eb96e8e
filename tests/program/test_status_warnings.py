"""A status other than in-range is told in words, whoever estimates."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support import make_predictions, write_models

from disco_cli import predict
from disco_cli.workflows.estimator import Estimator

PREDICTORS = ["auto", "rf", "knn", "ridge", "anchored-ridge"]


@pytest.fixture
def perfect(tmp_path):
    """File of a model that is always right."""
    _, labels = make_predictions()
    values = np.eye(4, dtype=np.float32)[labels][np.newaxis]
    return write_models(tmp_path / "perfect", values, labels, prefix="perfect")[0]


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_a_model_beyond_the_references(small_artifacts, perfect, predictor):
    result = predict([perfect], database=small_artifacts / "db", predictor=predictor)
    found = result.predictions[0]
    assert found.status == "extrapolated"
    start = "extrapolated: beyond the reference models; "
    assert any(warning.startswith(start) for warning in found.warnings)


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("status", ["unfamiliar", "in-range"])
def test_other_statuses(small, small_artifacts, monkeypatch, predictor, status):
    monkeypatch.setattr(Estimator, "_status", lambda *_: status)
    result = predict(small[6:7], database=small_artifacts / "db", predictor=predictor)
    found = [warning for warning in result.predictions[0].warnings if warning.startswith(status)]
    assert found == ([] if status == "in-range" else [UNFAMILIAR])


UNFAMILIAR = "unfamiliar: answers as no reference model does; the interval may be too narrow"


def test_the_warning_is_on_stderr_and_the_status_a_gate(disco, small_artifacts, perfect):
    given = ("predict", perfect, "--dir", small_artifacts, "--json")
    done = disco(*given, "--fail-on", "extrapolated,unfamiliar")
    assert json.loads(done.stdout)["warnings"]
    assert "perfect-00: extrapolated: beyond the reference models" in done.stderr
    assert done.returncode == 5
    assert "error: perfect-00: status is extrapolated\n" in done.stderr
