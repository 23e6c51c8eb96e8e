"""The data sets that the backtests of the documentation run on.

Only ``sample_data`` is part of the project. The others are public results of real models in disco's
own layout, looked for in ``../shared/data`` and passed over where that folder is absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from disco_cli.backtest.data import FileSource

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
CACHE = ROOT / "disco-run" / "backtest"
"""Rows of finished cells, so that a new method alone is run when it is added."""


LARGE_KS = (30, 100)
"""Where k-means over 10,000 samples would take most of the time."""


@dataclass(frozen=True)
class DataSet:
    """One set: where it is, what it holds, and which splits its dates allow."""

    name: str
    what: str
    source: str
    has_dates: bool = False
    ks: tuple[int, ...] = (10, 30, 60, 100, 200)
    counts_no_answer: bool = False

    @property
    def splits(self) -> tuple[str, ...]:
        """Splits to measure."""
        return ("random", "strongest", "newest") if self.has_dates else ("random", "strongest")

    def files(self) -> FileSource | None:
        """Return the files, or ``None`` where the set is absent."""
        if self.name == "sample_data":
            paths = [str(path) for path in sorted((ROOT / "sample_data").glob("*.npz"))]
        elif self.name == "mmlu_10k_logits":
            paths = with_consensus_labels(SHARED / "mmlu_10k_logits.npz")
        else:
            path = SHARED / f"{self.name}.npz"
            paths = [str(path)] if path.exists() else []
        return FileSource(tuple(paths), counts_no_answer=self.counts_no_answer) if paths else None


SETS = (
    DataSet(
        "sample_data",
        "digit classifiers, probabilities of 10 classes",
        "trained by `sample_data/make.py`",
    ),
    DataSet(
        "open_llm_v2",
        "IFEval and MuSR of Open LLM Leaderboard v2, right or wrong",
        "socialfoundations/benchmark-prediction, MIT",
    ),
    DataSet(
        "arc_challenge",
        "ARC-challenge, right or wrong",
        "socialfoundations/benchmark-prediction, MIT",
    ),
    DataSet(
        "helm_lite",
        "HELM Lite, 5 tasks, right or wrong",
        "socialfoundations/benchmark-prediction, MIT",
        has_dates=True,
    ),
    DataSet(
        "alpaca_eval2",
        "AlpacaEval 2, preference for each instruction in 0–1",
        "tatsu-lab/alpaca_eval, Apache-2.0",
        has_dates=True,
    ),
    DataSet(
        "cifar10",
        "CIFAR-10 and CIFAR-10.1 v4, predicted labels",
        "modestyachts/CIFAR-10.1, MIT; labels of cleanlab/label-errors, Apache-2.0",
        ks=LARGE_KS,
        has_dates=True,
    ),
    DataSet(
        "zeroeval",
        "CRUX, GSM8K and MATH-5, right or wrong",
        "yuchenlin/ZeroEval, Apache-2.0",
    ),
    DataSet(
        "mmlu_pro",
        "MMLU-Pro, 14 subjects, predicted labels, no answer counted as wrong",
        "TIGER-AI-Lab/MMLU-Pro, Apache-2.0",
        ks=LARGE_KS,
        has_dates=True,
        counts_no_answer=True,
    ),
    DataSet(
        "mmlu_10k_logits",
        "option logits on MMLU questions without labels; right = the answer that the mean "
        "probability of all models gives, a stand-in for the unknown truth",
        "smartyfh/LLM-Uncertainty-Bench, MIT",
        ks=LARGE_KS,
    ),
)


def with_consensus_labels(path: Path) -> list[str]:
    """Write a copy of the logits with labels by consensus to the cache; return its path."""
    if not path.exists():
        return []
    copy = CACHE / "mmlu_10k_consensus.npz"
    if not copy.exists():
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        logits = arrays["logits"].astype(np.float32)
        p = np.exp(logits - logits.max(axis=2, keepdims=True))
        arrays["labels"] = (p / p.sum(axis=2, keepdims=True)).mean(axis=0).argmax(axis=1)
        copy.parent.mkdir(parents=True, exist_ok=True)
        np.savez(copy, **arrays)
    return [str(copy)]
