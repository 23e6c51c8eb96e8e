"""Agreement with public implementations, where they are installed.

``pip install ppi-python`` and ``pip install py-irt``; the latter asks for an older typer than disco,
so it wants an environment of its own or ``--no-deps``.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from disco_cli.backtest.baselines import aipw
from disco_cli.backtest.baselines.irt_model import fit_irt
from disco_cli.backtest.metrics import spearman


def test_difference_estimate_agrees_with_prediction_powered_inference():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ppi_py = pytest.importorskip("ppi_py", reason="ppi-python is not installed")
        from ppi_py import classical_mean_ci

    rng = np.random.default_rng(0)
    features = rng.normal(size=(500, 3))
    truth = (rng.random(500) < 1 / (1 + np.exp(-features[:, 0]))).astype(float)
    seen = rng.permutation(500)[:80]
    fold = np.arange(80) % 5
    residual, predicted = aipw.cross_fit(truth[seen], seen, features, fold)
    unseen = np.setdiff1d(np.arange(500), seen)
    # Theirs estimates the mean of the unseen samples; ours knows the others.
    theirs = ppi_py.ppi_mean_pointestimate(
        truth[seen], truth[seen] - residual, predicted[unseen], lam=1
    )
    ours = aipw.difference_estimate(
        truth[seen], seen, features, np.full(500, 1 / 500), fold=fold, level=0.9
    )
    assert ours.value == pytest.approx(
        80 / 500 * truth[seen].mean() + 420 / 500 * float(np.squeeze(theirs)), abs=1e-12
    )
    # The interval is that of the mean residual, shrunk by the finite population.
    low, high = classical_mean_ci(residual, alpha=0.1)
    width = float(np.squeeze(high - low)) * np.sqrt(1 - 80 / 500)
    assert ours.high - ours.low == pytest.approx(width, rel=0.03)


@pytest.mark.slow
def test_item_response_model_agrees_with_py_irt(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pandas = pytest.importorskip(
            "pandas", reason="pandas, which py-irt needs, is not installed"
        )
        training = pytest.importorskip("py_irt.training", reason="py-irt is not installed")
        from py_irt.config import IrtConfig
        from py_irt.dataset import Dataset

    rng = np.random.default_rng(0)
    ability, difficulty = rng.normal(size=60), rng.normal(size=80)
    slope = 0.5 + rng.random(80)
    chance = 1 / (1 + np.exp(-slope * (ability[:, None] - difficulty)))
    y = (rng.random(chance.shape) < chance).astype(int)
    ours = fit_irt(y.astype(float), 1)

    table = pandas.DataFrame(y, columns=[f"i{i:03}" for i in range(80)])
    table["subject"] = [f"m{m:03}" for m in range(60)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = Dataset.from_pandas(table, subject_column="subject")
        config = IrtConfig(model_type="2pl", epochs=1500, seed=0, priors="hierarchical")
        trainer = training.IrtModelTrainer(
            data_path=tmp_path, config=config, dataset=data, verbose=False
        )
        trainer.train(device="cpu")
    found = trainer.best_params
    their_ability = np.empty(60)
    for number, name in found["subject_ids"].items():
        their_ability[int(name[1:])] = found["ability"][int(number)]
    their_slope, their_difficulty = np.empty(80), np.empty(80)
    for number, name in found["item_ids"].items():
        their_slope[int(name[1:])] = found["disc"][int(number)]
        their_difficulty[int(name[1:])] = found["diff"][int(number)]
    assert spearman(ours.abilities[:, 0], their_ability) > 0.98
    # Theirs is a(θ − b), ours aθ − b.
    assert spearman(ours.difficulties, their_slope * their_difficulty) > 0.98
    their_logit = their_slope * (their_ability[:, None] - their_difficulty)
    their_chance = 1 / (1 + np.exp(-their_logit))
    our_chance = np.stack([ours.predicted(theta) for theta in ours.abilities])
    assert np.corrcoef(our_chance.ravel(), their_chance.ravel())[0, 1] > 0.97
    assert spearman(ours.abilities[:, 0], ability) > spearman(their_ability, ability) - 0.02
