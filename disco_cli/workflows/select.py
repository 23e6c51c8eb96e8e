"""``disco select``: which K samples to evaluate a new model on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.disagreement.plan import EngineOptions
from disco_cli.disagreement.scores_file import ScoresFile, read_scores
from disco_cli.errors import UsageError
from disco_cli.estimation.recipe import SHARES, Choice, choose_share, select_with_share
from disco_cli.estimation.truth import Average, sample_weights, weighted_mean
from disco_cli.files.align import has_correctness, read_correctness
from disco_cli.files.atomic import atomic_write
from disco_cli.files.fingerprint import fingerprint
from disco_cli.files.matrix import Benchmark, Samples
from disco_cli.progress import SILENT, Progress
from disco_cli.selection.choose import DEFAULT_SHARE, Method, select_by_responses
from disco_cli.selection.draw import RANDOM, Draw
from disco_cli.selection.factors import complete_responses, fit_factors
from disco_cli.selection.methods import select_random, select_top
from disco_cli.selection.subset import Selection
from disco_cli.threads import single_threaded
from disco_cli.workflows.evidence import Evidence, copy_notes, gather_evidence
from disco_cli.workflows.inputs import ReadOptions, check_foreign, open_benchmark, refuse_reading
from disco_cli.workflows.options import Recipe, check_seed, member
from disco_cli.workflows.score import score_aligned


@dataclass(frozen=True)
class SelectResult:
    """A selection and what can be said about it.

    Attributes
    ----------
    selection : Selection
        The K samples.
    n_models : int
        M, the number of models that they were selected by.
    full_score, subset_score : float or None
        Mean over models of the score on all N and on the K samples, where labels or responses
        exist; on the K samples weighted by the design, where there is one.
    biased : bool
        Whether samples were chosen for what they tell, so that the subset's own mean is no
        estimate of the full one.
    path : str or None
        Where the artifact was written.
    notes : tuple of str
        What the person should know about the input.
    """

    selection: Selection
    n_models: int
    full_score: float | None
    subset_score: float | None
    biased: bool
    path: str | None
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        selection, draw = self.selection, self.selection.draw
        return {
            "path": self.path,
            "method": selection.method,
            "k": selection.k,
            "n_models": self.n_models,
            "n_samples": selection.n_samples,
            "seed": selection.seed,
            "parameters": selection.parameters,
            "n_tied": draw.n_tied,
            "n_tied_chosen": draw.n_tied_chosen,
            "full_score": self.full_score,
            "subset_score": self.subset_score,
            "biased": self.biased,
            "sample_ids": None if selection.sample_ids is None else selection.sample_ids.tolist(),
            "positions": draw.positions.tolist(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class SelectOptions:
    """What to select and how.

    Attributes
    ----------
    k : int
        Number of samples, 1 … N.
    recipe : Recipe or None
        Decides the method where none is given; ``None`` is ``auto``.
    method : Method or None
        How the samples are chosen.
    share : float or None
        Share of informative samples in ``hybrid``, a half without it.
    stratify : bool
        Take an equal share of every group (``pds``, ``jsd`` and ``random``).
    average : Average
        Micro or macro: what the samples are to represent.
    seed : int
        Seed of everything that is left to chance.
    """

    k: int = 100
    recipe: Recipe | None = None
    method: Method | None = None
    share: float | None = None
    stratify: bool = False
    average: Average = Average.MICRO
    seed: int = 0

    def __post_init__(self) -> None:
        for name, kind in (("recipe", Recipe), ("method", Method), ("average", Average)):
            object.__setattr__(self, name, member(kind, getattr(self, name), f"--{name}"))
        check_seed(self.seed)
        self._check_recipe()
        if self.share is not None and self.chosen is not Method.HYBRID:
            raise UsageError(f"--share works with --method hybrid, not {self.chosen.value}")
        if self.share is not None and not 0 <= self.share <= 1:
            raise UsageError(f"--share {self.share:g}: choose a share from 0 to 1")
        if self.stratify and self.chosen not in _STRATIFIED:
            names = ", ".join(method.value for method in _STRATIFIED)
            raise UsageError(f"--stratify works with --method {names}, not {self.chosen.value}")

    def _check_recipe(self) -> None:
        """Refuse a recipe beside a method that is not its own."""
        if self.recipe is None or self.method in (None, self.recipe.method):
            return
        advice = (
            "; `disco build-db --recipe disco` learns what was published from any selection"
            if self.recipe is Recipe.DISCO
            else ""
        )
        raise UsageError(
            f"--recipe {self.recipe.value} chooses samples its own way, not by --method "
            f"{self.chosen.value}; give one of the two{advice}"
        )

    @property
    def chosen(self) -> Method:
        """The method, given or the recipe's."""
        return (self.recipe or Recipe.AUTO).method if self.method is None else self.method


_STRATIFIED = (Method.PDS, Method.JSD, Method.RANDOM, Method.STRATIFIED_RANDOM)


@dataclass(frozen=True)
class _Drawn:
    """A draw, on which samples and of how many models, and what the artifact and the person should know of it."""

    samples: Samples
    n_models: int
    draw: Draw
    parameters: dict[str, Any]
    accuracy: NDArray[np.float64] | None
    notes: tuple[str, ...]


def select(
    paths: Sequence[str | Path] = (),
    *,
    options: SelectOptions | None = None,
    scores: Path | None = None,
    read: ReadOptions | None = None,
    engine: EngineOptions | None = None,
    output: Path | None = None,
    force: bool = False,
    progress: Progress = SILENT,
    **changes: Any,
) -> SelectResult:
    """Choose K samples of the benchmark.

    Parameters
    ----------
    paths : sequence of paths
        Prediction files of the reference models; may be empty when ``scores`` is given.
    options : SelectOptions, optional
        What to select and how.
    scores : Path, optional
        ``scores.parquet`` of an earlier ``disco score``, used instead of scoring again.
    read, engine, output, force, progress
        As for :func:`disco_cli.workflows.score.score`.
    **changes
        Fields of :class:`SelectOptions` by name, such as ``k=30``.

    Raises
    ------
    DiscoError
        K is larger than N, groups are missing, a file is bad, or the artifact cannot be written.
    """
    options = replace(options or SelectOptions(), **changes)
    if output is not None:
        check_foreign(output, force=force)
    if scores is not None and paths:
        raise UsageError("give either prediction files or --scores, not both")
    if scores is not None:
        refuse_reading(read, "--scores: the files were read by `disco score`")
        if options.method is None and options.recipe is None:
            options = replace(options, method=Method.PDS)  # all that can be had of scores
        drawn = _draw_from_scores(read_scores(scores), options, ())
    else:
        benchmark = open_benchmark(paths, read or ReadOptions())
        drawn = draw_samples(benchmark, options, engine, progress)
    ids, draw = drawn.samples.ids, drawn.draw
    selection = Selection(
        method=options.chosen.value,
        seed=options.seed,
        n_samples=drawn.samples.n,
        benchmark=fingerprint(drawn.samples),
        sample_ids=None if ids is None else ids[draw.positions],
        draw=draw,
        parameters={
            "recipe": (options.recipe or Recipe.AUTO).value,
            "average": options.average.value,
            **drawn.parameters,
        },
    )
    if output is not None:
        with atomic_write(output) as file:
            file.write(selection.to_json().encode())
    full, subset = _mean_scores(drawn, options.average)
    return SelectResult(
        selection=selection,
        n_models=drawn.n_models,
        full_score=full,
        subset_score=subset,
        biased=draw.weights is None or RANDOM not in draw.roles,
        path=None if output is None else str(output),
        notes=drawn.notes,
    )


def draw_samples(
    benchmark: Benchmark,
    options: SelectOptions,
    engine: EngineOptions | None = None,
    progress: Progress = SILENT,
) -> _Drawn:
    """Choose K samples of an aligned benchmark.

    Raises
    ------
    UsageError
        K does not fit the benchmark, or the method does not fit what the files tell.
    """
    _check_size(options.k, benchmark.samples.n)
    method, notes = options.chosen, benchmark.notes
    if method.by_score:
        return _draw_from_scores(score_aligned(benchmark, engine, progress), options, notes)
    if method.by_chance:
        return _draw_by_chance(benchmark, options)
    evidence = gather_evidence(benchmark, options.average, progress)
    with single_threaded():
        draw, parameters, found = _draw_from_evidence(evidence, options, progress)
    accuracy = None if evidence.is_proxy else _mean_over_models(evidence.Y)
    n_models = len(benchmark.models)
    notes = (*notes, *copy_notes(evidence.Y, benchmark.names), *found)
    return _Drawn(benchmark.samples, n_models, draw, parameters, accuracy, notes)


def _draw_by_chance(benchmark: Benchmark, options: SelectOptions) -> _Drawn:
    """Draw samples without a look at the responses, of which only the means are reported."""
    samples = benchmark.samples
    groups = _groups(samples, options)
    draw = select_random(
        samples.n,
        options.k,
        np.random.default_rng(options.seed),
        groups,
        sample_weights(samples, options.average),
    )
    accuracy = None
    if has_correctness(benchmark):
        models = range(len(benchmark.models))
        accuracy = _mean_over_models(read_correctness(benchmark, m) for m in models)
    parameters = {"stratify": groups is not None}
    return _Drawn(samples, len(benchmark.models), draw, parameters, accuracy, benchmark.notes)


def _draw_from_evidence(
    evidence: Evidence, options: SelectOptions, progress: Progress
) -> tuple[Draw, dict[str, Any], tuple[str, ...]]:
    """Draw by responses; returns the draw, its parameters and notes."""
    method = options.chosen
    share = DEFAULT_SHARE if options.share is None else options.share
    rng = np.random.default_rng(options.seed)
    notes: tuple[str, ...] = ()
    if method is Method.AUTO:
        draw, choice = _draw_auto(evidence, options.k, rng, progress)
        parameters = {"share": choice.share, "reason": choice.reason}
        notes = (choice.reason,)
    else:
        draw = select_by_responses(
            method,
            evidence.distinct(),
            evidence.weights,
            options.k,
            rng,
            share=share,
            units=evidence.units(options.k),
            groups=evidence.groups,
        )
        parameters = {"share": share} if method is Method.HYBRID else {}
    if evidence.is_proxy:
        notes = (*notes, "no labels or responses: agreement with the consensus stands in")
    return draw, parameters, notes


def _draw_auto(
    evidence: Evidence, k: int, rng: np.random.Generator, progress: Progress
) -> tuple[Draw, Choice]:
    """Let left-out reference models decide the share of informative samples, and draw."""
    Y, units = evidence.distinct(), evidence.units(k)
    if evidence.is_proxy:
        choice = Choice(
            SHARES[0], (), (), "auto: all samples drawn from strata; no truth to compare shares by"
        )
    else:
        choice = choose_share(
            Y, evidence.weights, k, rng, units=units, groups=evidence.groups, progress=progress
        )
    selector = select_with_share(evidence.weights, k, choice.share, units, evidence.groups)
    return selector(np.arange(len(Y)), fit_factors(complete_responses(Y)), rng), choice


def _draw_from_scores(
    content: ScoresFile, options: SelectOptions, notes: tuple[str, ...]
) -> _Drawn:
    """Take the samples of highest disagreement, or a plain draw of those that were scored."""
    _check_size(options.k, content.samples.n)
    method, groups = options.chosen, _groups(content.samples, options)
    if method.by_chance:
        rng = np.random.default_rng(options.seed)
        shares = sample_weights(content.samples, options.average)
        draw = select_random(content.samples.n, options.k, rng, groups, shares)
    elif method.by_score:
        measure = content.scores.pds if method is Method.PDS else content.scores.jsd
        draw = select_top(measure, content.scores.jsd, options.k, groups)
    else:
        message = (
            f"--scores: {method.value} needs the models' responses; give the prediction files, or "
            "--method pds, jsd, random or stratified-random"
        )
        raise UsageError(message)
    error_rate = content.scores.error_rate
    accuracy = None if error_rate is None else 1 - error_rate
    parameters = {"stratify": groups is not None}
    n_models = int(content.scores.n_models.max(initial=0))
    return _Drawn(content.samples, n_models, draw, parameters, accuracy, notes)


def _groups(samples: Samples, options: SelectOptions) -> NDArray[np.str_] | None:
    """Return the strata that are asked for.

    Raises
    ------
    UsageError
        There are no groups.
    """
    if not options.stratify and options.chosen is not Method.STRATIFIED_RANDOM:
        return None
    if samples.groups is None:
        raise UsageError("strata need `groups` in the prediction files; these have none")
    return samples.groups


def _check_size(k: int, n: int) -> None:
    if not 1 <= k <= n:
        raise UsageError(f"--k {k}: the benchmark has {n} samples; choose 1 to {n}")


def _mean_over_models(responses: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the mean response of each sample, (N,), NaN where nobody answered."""
    total, count = np.float64(0.0), np.int64(0)
    for row in responses:
        known = ~np.isnan(row)
        total = total + np.where(known, row, 0.0)
        count = count + known
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)


def _mean_scores(drawn: _Drawn, average: Average) -> tuple[float | None, float | None]:
    """Return the models' mean score on all samples and, weighted by the design, on the chosen."""
    if drawn.accuracy is None:
        return None, None
    shares = sample_weights(drawn.samples, average)
    chosen = drawn.draw.positions
    own = shares[chosen] if drawn.draw.weights is None else drawn.draw.weights
    with single_threaded():
        return weighted_mean(drawn.accuracy, shares), weighted_mean(drawn.accuracy[chosen], own)
