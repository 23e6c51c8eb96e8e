"""From rows to figures."""

from __future__ import annotations

import math

import numpy as np
import pytest

from disco_cli.backtest.summary import equal_random_k, flat, metric_names, summarise


def row(method, k, repeat, truth, estimate, *, fold=0, **more):
    nothing = [None] * len(truth)
    return {
        "run": "x",
        "split": "random",
        "repeat": repeat,
        "fold": fold,
        "k": k,
        "method": method,
        "n_samples": 400,
        "targets": [f"m{i}" for i in range(len(truth))],
        "truth": truth,
        "estimate": estimate,
        "low": nothing,
        "high": nothing,
    } | more


def test_mean_and_spread_over_repeats():
    rows = [
        row("random", 10, 0, [0.5, 0.6], [0.6, 0.7]),
        row("random", 10, 1, [0.5, 0.6], [0.8, 0.9]),
    ]
    (found,) = summarise(rows)
    assert found.repeats == 2
    assert found.mean.mae == pytest.approx(0.2)
    assert found.spread.mae == pytest.approx(0.2 / math.sqrt(2))
    assert found.relative == 1


def test_folds_of_a_repeat_are_pooled():
    rows = [
        row("random", 10, 0, [t], [e], fold=f) for f, (t, e) in enumerate([(0.1, 0.2), (0.5, 0.4)])
    ]
    (found,) = summarise(rows)
    assert found.mean.n == 2
    assert found.mean.spearman == pytest.approx(1)
    assert math.isnan(found.spread.mae)


def test_a_figure_that_is_not_defined_in_one_repeat_is_the_mean_of_the_others():
    rows = [
        row("mean", 10, 0, [0.1, 0.9], [0.5, 0.5]),
        row("mean", 10, 1, [0.1, 0.9], [0.4, 0.5]),
    ]
    (found,) = summarise(rows)
    assert found.mean.spearman == pytest.approx(1)


def test_every_method_stands_beside_plain_random_of_the_same_k():
    rows = [
        row("random", 100, 0, [0.5], [0.6]),
        row("random-ridge", 100, 0, [0.5], [0.55]),
        row("random", 25, 0, [0.5], [0.7]),
        row("random-ridge", 25, 0, [0.5], [0.6]),
    ]
    found = summarise(rows, {"random/0/0/25/random": 2.5})
    assert [(each.k, each.method) for each in found] == [
        (25, "random"),
        (25, "random-ridge"),
        (100, "random"),
        (100, "random-ridge"),
    ]
    assert [each.relative for each in found] == pytest.approx([1, 0.5, 1, 0.5])
    assert found[0].seconds == 2.5
    assert math.isnan(found[1].seconds)


def test_random_k_inverts_the_error_of_plain_sampling():
    scale = 0.5
    for k in (3, 50, 399):
        assert equal_random_k(scale * math.sqrt(1 / k - 1 / 400), scale, 400) == pytest.approx(k)
    assert equal_random_k(0.0, scale, 400) == pytest.approx(400)
    assert math.isnan(equal_random_k(0.1, math.nan, 400))


def test_the_error_of_plain_sampling_follows_the_law():
    rng = np.random.default_rng(0)
    y = (rng.random((30, 400)) < rng.random((30, 1))).astype(float)
    rows = []
    for repeat in range(40):
        order = rng.permutation(400)
        for k in (20, 80, 300):
            estimate = y[:, order[:k]].mean(axis=1).tolist()
            rows.append(row("random", k, repeat, y.mean(axis=1).tolist(), estimate))
    for found in summarise(rows):
        assert found.random_k == pytest.approx(found.k, rel=0.15)


def test_a_method_that_failed_has_its_reason_and_no_figures():
    rows = [
        row("random", 10, 0, [0.5], [0.6]),
        {
            "run": "x", "split": "random", "repeat": 0, "fold": 0, "k": 10, "method": "pds-knn",
            "n_samples": 400, "error": "no",
        },
    ]  # fmt: skip
    failed = summarise(rows)[1]
    assert failed.error == "no"
    assert failed.mean is None
    assert all(map(math.isnan, flat(failed.mean)))


def test_figures_and_names_have_the_same_length():
    (found,) = summarise([row("random", 10, 0, [0.5, 0.7], [0.6, 0.6])])
    assert len(flat(found.mean)) == len(metric_names())
    assert dict(zip(metric_names(), flat(found.mean), strict=True))["mae"] == pytest.approx(0.1)
    assert "bias_thirds_3" in metric_names()
