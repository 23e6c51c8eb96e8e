"""``disco score``: how much the models disagree on each sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.disagreement.correctness import Correctness, keep_correctness
from disco_cli.disagreement.engine import score_benchmark
from disco_cli.disagreement.health import FLAGS, Health, examine
from disco_cli.disagreement.plan import EngineOptions
from disco_cli.disagreement.scores_file import ScoresFile, write_scores
from disco_cli.files.atomic import atomic_write
from disco_cli.files.matrix import Benchmark
from disco_cli.progress import SILENT, Progress
from disco_cli.workflows.inputs import ReadOptions, check_foreign, open_benchmark


@dataclass(frozen=True)
class ScoreResult:
    """Disagreement of every sample.

    Attributes
    ----------
    content : ScoresFile
        Samples and their scores.
    health : Health or None
        Samples that tell nothing or look wrong, where correctness is known.
    n_models : int
        M.
    path : str or None
        Where the artifact was written.
    notes : tuple of str
        What the person should know about the input.
    """

    content: ScoresFile
    health: Health | None
    n_models: int
    path: str | None
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        scores = self.content.scores
        return {
            "path": self.path,
            "n_models": self.n_models,
            "n_samples": self.content.samples.n,
            "mean_pds": mean_or_none(scores.pds),
            "max_pds": _largest(scores.pds),
            "mean_jsd": mean_or_none(scores.jsd),
            "mean_confidence": mean_or_none(scores.confidence),
            "mean_error_rate": (
                None if scores.error_rate is None else mean_or_none(scores.error_rate)
            ),
            "n_unanimous": int(np.count_nonzero(scores.jsd == 0)),
            "n_unanswered": int(np.count_nonzero(scores.n_models == 0)),
            "n_missing": self.n_models * len(scores.n_models) - int(scores.n_models.sum()),
            "health": None if self.health is None else self._health_dict(self.health),
            "notes": list(self.notes),
        }

    def most_suspicious(self, n: int = 5) -> NDArray[np.int64]:
        """Return the samples whose correlation with the rest is most clearly negative, (≤ n,)."""
        if self.health is None:
            return np.empty(0, dtype=np.int64)
        found = np.flatnonzero(self.health.has("negative"))
        return found[np.argsort(-self.health.suspicion[found], kind="stable")][:n]

    def _health_dict(self, health: Health) -> dict[str, Any]:
        counts = {f"n_{flag}": int(np.count_nonzero(health.has(flag))) for flag in FLAGS}
        suspicious = self.most_suspicious()
        ids = self.content.samples.ids
        return {
            **counts,
            "most_suspicious": (suspicious if ids is None else ids[suspicious]).tolist(),
        }


def mean_or_none(values: Any) -> float | None:
    """Return the mean of what is not NaN, ``None`` if nothing is."""
    present = values[~np.isnan(values)]
    return float(present.mean()) if present.size else None


def _largest(values: Any) -> float | None:
    present = values[~np.isnan(values)]
    return float(present.max()) if present.size else None


def score(
    paths: Sequence[str | Path],
    *,
    read: ReadOptions | None = None,
    engine: EngineOptions | None = None,
    output: Path | None = None,
    force: bool = False,
    progress: Progress = SILENT,
) -> ScoreResult:
    """Score every sample of the benchmark by how much the models disagree on it.

    Parameters
    ----------
    paths : sequence of paths
        Prediction files.
    read : ReadOptions, optional
        How to understand the files.
    engine : EngineOptions, optional
        Memory and threads, or a cluster.
    output : Path, optional
        Where to write ``scores.parquet``; nothing is written without it.
    force : bool
        Replace a file at ``output`` that disco did not write.
    progress : Progress
        Told of every model that is done.

    Raises
    ------
    DiscoError
        A file is bad, files do not fit together, or the artifact cannot be written.
    """
    if output is not None:
        check_foreign(output, force=force)
    benchmark = open_benchmark(paths, read or ReadOptions())
    if output is not None:
        # Needed to write the result, and done while others read and compute; opening files would be
        # held up by it. No daemon: an interpreter that ends in the middle of an import may crash.
        Thread(target=_import_writer).start()
    engine = engine or EngineOptions()
    kept = keep_correctness(benchmark, engine.memory_bytes)
    content = score_aligned(benchmark, engine, progress, kept)
    health = None
    if kept is not None:
        samples = benchmark.samples
        health = examine(
            kept,
            content.scores,
            samples.hashes,
            has_probabilities=any(model.file.kind.has_classes for model in benchmark.models),
            n_threads=engine.n_threads,
        )
        content = replace(content, extra=health.columns(samples.ids))
    if output is not None:
        with atomic_write(output) as file:
            write_scores(file, content)
    return ScoreResult(
        content=content,
        health=health,
        n_models=len(benchmark.models),
        path=None if output is None else str(output),
        notes=benchmark.notes,
    )


def _import_writer() -> None:
    """Import what :func:`write_scores` uses; pyarrow asks for numpy.ma at its first array."""
    for name in ("pyarrow.parquet", "numpy.ma"):
        import_module(name)


def score_aligned(
    benchmark: Benchmark,
    engine: EngineOptions | None,
    progress: Progress,
    kept: Correctness | None = None,
) -> ScoresFile:
    """Return the scores of an aligned benchmark; fill ``kept`` where it is given."""
    engine = engine or EngineOptions()
    if engine.distributed:
        from disco_cli.disagreement.cluster import score_on_cluster

        scores = score_on_cluster(benchmark, options=engine, progress=progress, kept=kept)
    else:
        scores = score_benchmark(benchmark, options=engine, progress=progress, kept=kept)
    return ScoresFile(benchmark.samples, scores, {})
