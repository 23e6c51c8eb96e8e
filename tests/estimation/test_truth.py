"""Micro, macro and weighted scores worked out by hand."""

import numpy as np
import pytest

from disco_cli.errors import InputError
from disco_cli.estimation.truth import Average, full_scores, sample_weights
from disco_cli.files.matrix import Samples

GROUPS = np.array(["a", "a", "a", "b"])


def test_micro_is_the_mean_of_what_was_answered():
    responses = np.array([[1, 0, 1, 1], [1, np.nan, 0, np.nan]])
    scores = full_scores(responses, Samples(4), Average.MICRO)
    assert scores.tolist() == [0.75, 0.5]


def test_macro_is_the_mean_of_group_means():
    responses = np.array([[1, 0, 1, 0], [1, np.nan, 0, 1]])
    scores = full_scores(responses, Samples(4, groups=GROUPS), Average.MACRO)
    assert scores == pytest.approx([(2 / 3 + 0) / 2, (0.5 + 1) / 2])


def test_weights_count():
    samples = Samples(4, weights=np.array([3.0, 1.0, 0.0, 0.0]), groups=GROUPS)
    assert sample_weights(samples, Average.MICRO).tolist() == [0.75, 0.25, 0, 0]
    assert full_scores(np.array([[1.0, 0, 1, 1]]), samples, Average.MICRO) == pytest.approx([0.75])


def test_a_group_without_weight_is_refused_under_macro():
    samples = Samples(4, weights=np.array([3.0, 1.0, 0.0, 0.0]), groups=GROUPS)
    with pytest.raises(InputError, match="sum to 0"):
        sample_weights(samples, Average.MACRO)


def test_macro_weights_give_every_group_the_same_total():
    weights = sample_weights(Samples(4, groups=GROUPS), Average.MACRO)
    assert weights == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])


def test_macro_without_groups_is_refused():
    with pytest.raises(InputError, match="groups"):
        sample_weights(Samples(4), Average.MACRO)


def test_a_model_that_answered_nothing_has_no_score():
    assert np.isnan(full_scores(np.full((1, 4), np.nan), Samples(4), Average.MICRO)[0])
