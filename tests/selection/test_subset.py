"""The selection artifact: round trip and refusals."""

import json

import numpy as np
import pytest

from disco_cli.errors import ArtifactError, InputError
from disco_cli.selection.methods import select_random, select_top
from disco_cli.selection.subset import Selection, parse_selection, read_selection


def make(ids=True, method="pds"):
    scores = np.array([1.0, 3.0, np.nan, 5.0])
    draw = (
        select_top(scores, np.zeros(4), 2)
        if method == "pds"
        else select_random(4, 2, np.random.default_rng(0))
    )
    names = np.array(["a", "b", "ü", "d"])[draw.positions] if ids else None
    return Selection(method, 0, 4, "fingerprint", names, draw, {"stratify": False})


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("method", ["pds", "random"])
def test_round_trip_is_the_same_text(ids, method):
    text = make(ids, method).to_json()
    assert parse_selection(text).to_json() == text


def test_the_text_is_plain_json_with_parallel_lists():
    data = json.loads(make().to_json())
    assert data["sample_ids"] == ["b", "d"]
    assert data["position"] == [1, 3]
    assert data["rank"] == [2, 1]
    assert data["score"] == [3.0, 5.0]
    assert data["role"] == ["certainty", "certainty"]
    assert data["inclusion_probability"] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "selection format 99"),
        ({"position": [3, 1]}, "ascend"),
        ({"position": [1, 4]}, r"0 … 3"),
        ({"rank": [1]}, "1 entries of `rank` for 2"),
        ({"sample_ids": ["a", "d"]}, "sha256"),
        ({"score": ["x", 1]}, "not a selection"),
        ({"parameters": None}, "not a selection"),
    ],
)
def test_a_selection_that_contradicts_itself_is_refused(change, message):
    data = json.loads(make().to_json()) | change
    with pytest.raises(ArtifactError, match=message):
        parse_selection(json.dumps(data))


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '"x"', '{"format": 1}'])
def test_other_json_is_not_a_selection(text):
    with pytest.raises(ArtifactError):
        parse_selection(text)


def test_missing_file_says_what_to_run(tmp_path):
    with pytest.raises(InputError, match="disco select"):
        read_selection(tmp_path / "selection.json")
