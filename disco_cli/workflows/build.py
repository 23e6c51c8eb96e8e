"""``disco build-db``: learn from the reference models how outputs map to the full score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli import __version__
from disco_cli.database import Database, Manifest
from disco_cli.errors import ArtifactError, InputError, UsageError
from disco_cli.estimation.fitted import FittedRecipe
from disco_cli.estimation.forest import save_forest
from disco_cli.estimation.neighbours import nearest_distances
from disco_cli.estimation.packed import write_arrays
from disco_cli.estimation.regressors import LinearEstimator
from disco_cli.estimation.truth import Average, sample_weights
from disco_cli.files.align import has_correctness
from disco_cli.files.fingerprint import fingerprint
from disco_cli.files.matrix import Benchmark
from disco_cli.progress import SILENT, Progress
from disco_cli.selection.subset import Selection, read_selection
from disco_cli.threads import single_threaded
from disco_cli.workflows.errors_table import (
    MethodError,
    default_predictor,
    predictor_errors,
    random_error,
)
from disco_cli.workflows.evidence import Evidence, copy_notes, gather_evidence
from disco_cli.workflows.inputs import ReadOptions, open_benchmark, values_name
from disco_cli.workflows.learn import (
    MIN_MODELS,
    Published,
    check_average,
    learn_auto,
    learn_linear,
    learn_published,
)
from disco_cli.workflows.options import Recipe, check_seed, member
from disco_cli.workflows.references import References, read_references


@dataclass(frozen=True)
class BuildResult:
    """A database and how well it predicts its own reference models when they are left out.

    Attributes
    ----------
    database : Database
        What was learnt.
    errors : tuple of MethodError
        Predictors first, the database's own before the others, then the two baselines.
    path : str or None
        Where the database was written.
    notes : tuple of str
        What the person should know about the input.
    """

    database: Database
    errors: tuple[MethodError, ...]
    path: str | None
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        manifest = self.database.manifest
        return {
            "path": self.path,
            "n_models": manifest.n_models,
            "n_samples": manifest.n_samples,
            "k": self.database.selection.k,
            "metric": manifest.metric,
            "average": manifest.average_of_truth,
            "recipe": manifest.parameters["recipe"],
            "predictor": manifest.parameters["predictor"],
            "errors": [vars(error) for error in self.errors],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class BuildOptions:
    """What to learn and how.

    Attributes
    ----------
    recipe : Recipe or None
        ``disco`` learns what was published and no more; ``None`` takes the selection's.
    average : Average or None
        Micro or macro, where the truth comes from labels or responses; ``None`` takes the
        selection's.
    n_neighbours : int
        Number of neighbours of the kNN predictor.
    seed : int
        Seed of the forest, the folds and the random samples of the baseline.
    """

    recipe: Recipe | None = None
    average: Average | None = None
    n_neighbours: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for name, kind in (("recipe", Recipe), ("average", Average)):
            object.__setattr__(self, name, member(kind, getattr(self, name), f"--{name}"))
        if self.n_neighbours < 1:
            raise UsageError(f"--neighbours {self.n_neighbours}: choose 1 or more")
        check_seed(self.seed)


@dataclass(frozen=True)
class _Learned:
    """All that was learnt; ``auto`` and ``linear`` only where there are responses."""

    published: Published
    auto: FittedRecipe | None
    linear: dict[str, LinearEstimator]


def build_db(
    paths: Sequence[str | Path],
    *,
    selection: Selection | Path,
    truth: Path | None = None,
    options: BuildOptions | None = None,
    read: ReadOptions | None = None,
    output: Path | None = None,
    force: bool = False,
    progress: Progress = SILENT,
    **changes: Any,
) -> BuildResult:
    """Learn from reference models whose full score is known.

    Parameters
    ----------
    paths : sequence of paths
        Prediction files of the reference models.
    selection : Selection or Path
        The K samples, or the ``selection.json`` that names them.
    truth : Path, optional
        CSV or Parquet with columns model and score. Without it the truth comes from ``scores`` in
        the files if every model has one, else from labels or responses.
    options : BuildOptions, optional
        What to learn and how.
    read, output, force, progress
        As for :func:`disco_cli.workflows.score.score`; ``output`` is a folder.
    **changes
        Fields of :class:`BuildOptions` by name, such as ``seed=1``.

    Raises
    ------
    DiscoError
        A file is bad, the selection is of another benchmark, there are too few reference models,
        or the database cannot be written.
    """
    options = replace(options or BuildOptions(), **changes)
    chosen = selection if isinstance(selection, Selection) else read_selection(selection)
    benchmark = open_benchmark(paths, read or ReadOptions())
    _check_fit(benchmark, chosen)
    if options.n_neighbours > len(benchmark.models):
        raise UsageError(
            f"--neighbours {options.n_neighbours}: there are {len(benchmark.models)} reference models"
        )
    recipe = options.recipe or Recipe(chosen.parameters.get("recipe", Recipe.AUTO.value))
    average = check_average(chosen, options.average)
    evidence = None
    if has_correctness(benchmark):
        evidence = gather_evidence(benchmark, average, progress)
    known = None if evidence is None else evidence.Y
    references = read_references(benchmark, chosen, truth, average, known)
    with single_threaded("scipy.linalg", "sklearn.ensemble"):
        learned = _learn(benchmark, references, evidence, chosen, recipe, options, progress)
        errors = (
            *predictor_errors(learned.published, learned.auto, learned.linear, references),
            random_error(benchmark, references, average, chosen.k, options.seed),
        )
    parameters = {
        "recipe": recipe.value,
        "predictor": default_predictor(errors),
        "seed": options.seed,
        "n_neighbours": options.n_neighbours,
        "is_label_aware": learned.published.is_label_aware,
        "counts_no_answer": benchmark.counts_no_answer,
    }
    manifest = _manifest(benchmark, chosen, references, average, parameters, errors)
    parts = _parts(benchmark, chosen, references, evidence, learned, average)
    database = Database(manifest, chosen, parts)
    if output is not None:
        database.save(output, force=force)
    return BuildResult(
        database=database,
        errors=errors,
        path=None if output is None else str(output),
        notes=(
            *benchmark.notes,
            *references.notes,
            *_copy_notes(benchmark, references, evidence, recipe),
            *_truth_notes(references, evidence, recipe),
        ),
    )


def _copy_notes(
    benchmark: Benchmark, references: References, evidence: Evidence | None, recipe: Recipe
) -> tuple[str, ...]:
    """Say which models count once: our own estimator looks at responses, the others at outputs."""
    if evidence is not None and recipe is Recipe.AUTO:
        return copy_notes(evidence.Y, benchmark.names)
    outputs = references.outputs.reshape(len(references.truth), -1)
    return copy_notes(np.column_stack([outputs, references.truth]), benchmark.names)


def _truth_notes(
    references: References, evidence: Evidence | None, recipe: Recipe
) -> tuple[str, ...]:
    """Say what a truth in units of its own costs."""
    if references.comparable or evidence is None or recipe is not Recipe.AUTO:
        return ()
    return (
        (
            f"the {references.metric} is not the mean of what the models got on the samples, but "
            "in units of its own: no auto, no offset-ridge and no --groups, and the status of a "
            "model is told without them, more coarsely"
        ),
    )


def _check_fit(benchmark: Benchmark, selection: Selection) -> None:
    found = fingerprint(benchmark.samples)
    if found != selection.benchmark:
        message = (
            f"the selection was made on another benchmark ({selection.n_samples} samples, "
            f"{selection.benchmark[:12]}) than these files ({benchmark.samples.n} samples, "
            f"{found[:12]}); run `disco select` on the files of this benchmark"
        )
        raise ArtifactError(message)
    if len(benchmark.models) < MIN_MODELS:
        message = (
            f"{len(benchmark.models)} reference models given, at least {MIN_MODELS} are needed; "
            "add prediction files of models whose full score is known"
        )
        raise InputError(message)


def _learn(
    benchmark: Benchmark,
    references: References,
    evidence: Evidence | None,
    selection: Selection,
    recipe: Recipe,
    options: BuildOptions,
    progress: Progress,
) -> _Learned:
    """Fit what the recipe and the responses allow."""
    is_ours = recipe is Recipe.AUTO
    has_classes = benchmark.n_classes is not None  # the label of a response is no column of it
    labels = benchmark.samples.labels if is_ours and has_classes else None
    published = learn_published(
        references,
        None if labels is None else labels[selection.draw.positions],
        selection,
        options.n_neighbours,
        options.seed,
        progress,
    )
    if evidence is None or not is_ours:
        return _Learned(published, None, {})
    linear = learn_linear(references, evidence, selection, options.seed)
    if not references.comparable:
        return _Learned(published, None, linear)
    return _Learned(published, learn_auto(evidence, selection, options.seed, progress), linear)


def _manifest(
    benchmark: Benchmark,
    selection: Selection,
    references: References,
    average: Average,
    parameters: dict[str, Any],
    errors: tuple[MethodError, ...],
) -> Manifest:
    import sklearn

    return Manifest(
        benchmark=selection.benchmark,
        n_samples=selection.n_samples,
        n_classes=benchmark.n_classes,
        n_models=len(benchmark.models),
        values=values_name({model.file.kind for model in benchmark.models}),
        metric=references.metric,
        average=average.value,
        comparable=references.comparable,
        parameters=parameters,
        errors=tuple(vars(error) for error in errors),
        versions={
            "disco": __version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
    )


def _parts(
    benchmark: Benchmark,
    selection: Selection,
    references: References,
    evidence: Evidence | None,
    learned: _Learned,
    average: Average,
) -> dict[str, bytes]:
    """Return the files of the database."""
    positions = selection.draw.positions
    samples = benchmark.samples.take(positions)
    fit = learned.published.fit
    arrays: dict[str, NDArray[Any]] = {
        "names": np.array(benchmark.names),
        "truth": references.truth,
        "scores": fit.scores,
        "gaps": nearest_distances(fit.scores[learned.published.distinct]),
        "fill": learned.published.fill,
        "weights": sample_weights(benchmark.samples, average)[positions],
    }
    if samples.labels is not None:
        arrays["labels"] = samples.labels
    if samples.n_options is not None:
        arrays["n_options"] = samples.n_options
    if samples.hashes is not None:
        arrays["hashes"] = samples.hashes
    if evidence is not None:
        arrays["responses"] = evidence.Y[:, positions]
        arrays["group_names"] = np.array(evidence.group_names, dtype=np.str_)
    for name in ("rf", "knn"):
        arrays[f"residuals_{name}"] = references.truth - learned.published.left_out[name]
    parts = {
        "references.npz": write_arrays(arrays),
        "signatures.npz": write_arrays({"outputs": references.outputs}),
        "pca.npz": write_arrays({name: np.asarray(value) for name, value in vars(fit.pca).items()}),
        "rf.pkl": save_forest(fit.forest),
    }
    if learned.linear:
        linear = [estimator.to_arrays(name) for name, estimator in learned.linear.items()]
        parts["linear.npz"] = write_arrays({k: v for arrays in linear for k, v in arrays.items()})
    if learned.auto is not None:
        parts["recipe.npz"] = write_arrays(learned.auto.to_arrays())
    return parts
