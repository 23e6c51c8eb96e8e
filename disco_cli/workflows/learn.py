"""What is learnt from the reference models: the published recipe, our own, and linear regressors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from disco_cli.errors import ArtifactError, InputError
from disco_cli.estimation.crossvalidation import Selector
from disco_cli.estimation.fitted import FittedRecipe
from disco_cli.estimation.linear_fit import fit_linear, leave_out_linear
from disco_cli.estimation.published import PublishedFit, cross_validate_published, fit_published
from disco_cli.estimation.recipe import select_with_share
from disco_cli.estimation.recipe_fit import fit_recipe
from disco_cli.estimation.regressors import LinearEstimator
from disco_cli.estimation.signature import (
    add_label_columns,
    fill_missing,
    flatten,
    mean_outputs,
)
from disco_cli.estimation.truth import Average
from disco_cli.progress import Progress
from disco_cli.selection.choose import Method, select_by_responses
from disco_cli.selection.draw import Draw
from disco_cli.selection.factors import Factors, complete_responses, distinct_models
from disco_cli.selection.methods import select_random
from disco_cli.selection.subset import Selection
from disco_cli.workflows.evidence import Evidence
from disco_cli.workflows.references import References

MIN_MODELS = 5
"""With fewer reference models nothing can be learnt, let alone checked."""


@dataclass(frozen=True)
class Published:
    """DISCO's predictors and their left-out estimates.

    Attributes
    ----------
    fit : PublishedFit
        PCA and forest.
    fill : NDArray of float64 of shape (K, F)
        What stands in for a missing sample.
    distinct : NDArray of int64
        Rows of the models that are no copy of an earlier one.
    left_out : dict of str to NDArray of float64 of shape (M,)
        Estimates of ``rf``, ``knn`` and ``mean`` for models that were left out; NaN for copies,
        which would vouch for each other.
    is_label_aware : bool
        Whether correctness and the probability of the right class are in the signature.
    """

    fit: PublishedFit
    fill: NDArray[np.float64]
    distinct: NDArray[np.int64]
    left_out: dict[str, NDArray[np.float64]]
    is_label_aware: bool


def learn_published(
    references: References,
    labels: NDArray[np.int64] | None,
    selection: Selection,
    n_neighbours: int,
    seed: int,
    progress: Progress,
) -> Published:
    """Fit PCA, forest and neighbours, and estimate each model from the others.

    Parameters
    ----------
    references : References
        Outputs, responses and full scores.
    labels : NDArray of int64 of shape (K,), or None
        Right classes, to be used in the signature; ``None`` for the recipe as published.
    selection : Selection
        The K samples.
    n_neighbours, seed, progress
        As for :func:`disco_cli.estimation.published.cross_validate_published`.

    Raises
    ------
    InputError
        Too few models are no copies of others.
    """
    outputs = references.outputs
    is_label_aware = labels is not None and references.responses is not None
    if labels is not None and references.responses is not None:
        outputs = add_label_columns(
            outputs, labels, references.responses[:, selection.draw.positions]
        )
    fill = mean_outputs(outputs)
    signatures = flatten(fill_missing(outputs, fill))
    truth = references.truth
    rows = distinct_models(signatures, truth)
    if len(rows) < MIN_MODELS:
        message = (
            f"{len(rows)} different reference models given, the others being copies; at least "
            f"{MIN_MODELS} are needed"
        )
        raise InputError(message)
    different = signatures if len(rows) == len(signatures) else signatures[rows]
    found = cross_validate_published(different, truth[rows], seed, n_neighbours, progress)
    left_out = {name: np.full(len(truth), np.nan) for name in found}
    for name, estimates in found.items():
        left_out[name][rows] = estimates
    return Published(fit_published(signatures, truth, seed), fill, rows, left_out, is_label_aware)


def learn_linear(
    references: References, evidence: Evidence, selection: Selection, seed: int
) -> dict[str, LinearEstimator]:
    """Fit the linear regressors on the responses to the K samples.

    Their errors are those of models that were left out with the selection drawn anew, where it can be.
    """
    rows = distinct_models(evidence.Y)
    Y, truth = evidence.Y[rows], references.truth[rows]
    answers = complete_responses(Y)[:, selection.draw.positions]
    comparable = references.comparable
    found = fit_linear(answers, truth, selection.draw.weights, is_comparable=comparable)
    select = selector_of(selection, evidence)
    if select is None or len(rows) < MIN_MODELS:
        return found
    rng = np.random.default_rng([seed, 2])
    left_out = leave_out_linear(Y, truth, select, rng, is_comparable=comparable)
    return {name: replace(each, residuals=left_out[name]) for name, each in found.items()}


def learn_auto(
    evidence: Evidence, selection: Selection, seed: int, progress: Progress
) -> FittedRecipe:
    """Fit our own recipe and calibrate it with the selection drawn anew in every fold."""
    return fit_recipe(
        evidence.Y,
        evidence.weights,
        selection.draw,
        selector_of(selection, evidence),
        np.random.default_rng([seed, 1]),
        groups=evidence.groups,
        progress=progress,
    )


def selector_of(selection: Selection, evidence: Evidence) -> Selector | None:
    """Return how a selection was made, to be repeated without some of the models.

    ``None`` for samples of highest disagreement: they were chosen from probabilities, which are
    not at hand, so the selection itself is used in every fold and the errors are optimistic.
    """
    method, k = Method(selection.method), selection.k
    weights, parameters = evidence.weights, selection.parameters
    if method.by_score:
        return None
    units = evidence.units(k)
    if method is Method.AUTO:
        return select_with_share(weights, k, float(parameters["share"]), units, evidence.groups)
    Y = evidence.distinct()
    strata = evidence.groups if parameters.get("stratify") else None

    def select(rows: NDArray[np.int64], factors: Factors, rng: np.random.Generator) -> Draw:
        if method.by_chance:
            return select_random(len(weights), k, rng, strata, weights)
        share = float(parameters.get("share", 0.0))
        return select_by_responses(
            method,
            Y[rows],
            weights,
            k,
            rng,
            share=share,
            units=units,
            groups=evidence.groups,
            factors=factors,
        )

    return select


def check_average(selection: Selection, average: Average | None) -> Average:
    """Return the average to build for: the one the selection was drawn for, unless it was not.

    Raises
    ------
    ArtifactError
        The samples were drawn to represent another average than the one that is asked for.
    """
    drawn_for = Average(selection.parameters.get("average", Average.MICRO.value))
    wanted = drawn_for if average is None else average
    if wanted is not drawn_for and selection.draw.weights is not None:
        message = (
            f"the selection was drawn for --average {drawn_for.value}, not {wanted.value}; run "
            f"`disco select --average {wanted.value}` again"
        )
        raise ArtifactError(message)
    return wanted
