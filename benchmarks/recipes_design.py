"""The exact error of the draw of ``auto``, and what its constants do to it; ``recipes_design.json``.

    python benchmarks/recipes_design.py

The variance of a draw of one sample from each stratum can be computed, without drawing: the sum over
strata of the variance of response ÷ chance. Here of what eight factors fitted to *all* responses of a
target leave, so it is a bound for every estimate that is nearly unbiased; over that of the plain mean of K random
samples, root of each, summed over targets. Copies of a sample are not joined and draws not balanced. *weaker*: the
targets are the weakest quarter, the references the rest.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from recipes_sets import NAMES, find_set, splits_of

from disco_cli.selection import strata
from disco_cli.selection.factors import Factors, complete_responses, distinct_models, fit_factors

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Sizes = Callable[[Factors, NDArray[np.float64]], NDArray[np.float64]]

RESULT = Path(__file__).with_suffix(".json")
K = 100
N_SEEDS = 5
_SMALLEST_SPREAD = 0.01
"""A target that answers everything alike has no error to compare with."""


def with_shift(shift: float) -> Sizes:
    """Return the sizes of ``auto`` for models stronger by so many logits than the references."""
    return lambda factors, weights: strata.draw_sizes(factors, weights, shift)


def noise_and_floor(floor: float) -> Sizes:
    """Return sizes that know the references only: noise plus a floor in units of its mean."""
    return lambda factors, weights: weights * (factors.noise + floor * factors.noise.mean())


VARIANTS: dict[str, tuple[Sizes, bool]] = {
    "auto": (strata.draw_sizes, True),
    "groups not respected": (strata.draw_sizes, False),
    "stronger by 1 logit": (with_shift(1.0), True),
    "stronger by 2 logits": (with_shift(2.0), True),
    "noise + 1.5 mean noise": (noise_and_floor(1.5), True),
    "noise + 0.5 mean noise": (noise_and_floor(0.5), True),
    "equal chances": (lambda _, weights: weights, True),
}


def exact_errors(
    Y: NDArray[np.float64],
    targets: NDArray[np.float64],
    groups: NDArray[np.int64] | None,
    weights: NDArray[np.float64],
) -> dict[str, float]:
    """Return the error of each variant over that of a plain random sample."""
    known = complete_responses(Y[distinct_models(Y)])
    factors = fit_factors(known)
    y = np.where(np.isnan(targets), factors.means, targets)
    y = y[y.std(axis=1) > _SMALLEST_SPREAD]
    features = np.column_stack([np.ones(len(weights)), factors.means, factors.loadings])
    left = y - (features @ np.linalg.lstsq(features, y.T, rcond=None)[0]).T
    plain = np.sqrt(y.var(axis=1) / K * (1 - K / y.shape[1])).sum()
    found = {}
    for name, (sizes, by_group) in VARIANTS.items():
        described = strata.stratum_features(factors, groups if by_group else None, K)
        cut = strata.build_strata(described, sizes(factors, weights), K)
        variance = np.zeros(len(y))
        for units in cut.members:
            chance = cut.chances[units]
            values = left[:, units] * weights[units] / chance
            means = values @ chance
            variance += ((values - means[:, np.newaxis]) ** 2) @ chance
        found[name] = float(np.sqrt(variance).sum() / plain)
    return found


def measure(name: str) -> dict[str, dict[str, float]] | None:
    """Return the errors of one set by split, or ``None`` where it is absent."""
    source = find_set(name).files()
    if source is None:
        return None
    data = source()
    if data.responses.shape[1] <= K:
        return None
    divisions = {
        split: [(part.references, part.targets) for part in splits_of(data, split, N_SEEDS)]
        for split in ("alike", "stronger", "newer")
        if split != "newer" or find_set(name).has_dates
    }
    order = np.argsort(data.truth, kind="stable")
    divisions["weaker"] = [(np.sort(order[len(order) // 4 :]), order[: len(order) // 4])]
    result = {}
    for split, parts in divisions.items():
        found = [
            exact_errors(
                data.responses[references], data.responses[targets], data.groups, data.weights
            )
            for references, targets in parts
        ]
        result[split] = {
            variant: round(float(np.mean([errors[variant] for errors in found])), 4)
            for variant in VARIANTS
        }
    return result


def main() -> None:
    """Measure every set that is there, and print geometric means over sets."""
    result = {}
    for name in NAMES:
        if name == "sample_data":
            continue
        found = measure(name)
        if found is None:
            print(f"{name}: passed over, ../shared/data does not hold it", file=sys.stderr)
        else:
            result[name] = found
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    splits = ("alike", "stronger", "newer", "weaker")
    print("| sizes | " + " | ".join(splits) + " |\n|---|" + "---|" * len(splits))
    for variant in VARIANTS:
        means = []
        for split in splits:
            errors = [found[split][variant] for found in result.values() if split in found]
            means.append(f"{np.exp(np.mean(np.log(errors))):.3f}" if errors else "–")
        print(f"| {variant} | " + " | ".join(means) + " |")


if __name__ == "__main__":
    main()
