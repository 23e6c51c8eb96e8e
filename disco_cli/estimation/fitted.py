"""The fitted ``auto`` recipe as one object: a few small arrays, all that a prediction needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disco_cli.estimation.combine import Calibration, Combined, combine
from disco_cli.estimation.factor_estimator import FactorEstimator


@dataclass(frozen=True)
class FittedRecipe:
    """Estimator and calibration for K selected samples.

    Attributes
    ----------
    estimator : FactorEstimator
        From responses on the K samples to model and design estimate.
    calibration : Calibration
        How to combine them, and how far they err.
    error_alike, error_strongest : float
        Mean absolute error of models left out at random, and of the strongest left out together;
        NaN where none were left out.
    """

    estimator: FactorEstimator
    calibration: Calibration
    error_alike: float = float("nan")
    error_strongest: float = float("nan")

    def estimate(
        self,
        y: NDArray[np.float64],
        level: float,
        only_groups: NDArray[np.int64] | None = None,
    ) -> Combined:
        """Estimate one target; see :func:`disco_cli.estimation.combine.combine`."""
        return combine(self.estimator, self.calibration, y, level, only_groups)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays that ``numpy.savez`` can hold without pickles."""
        arrays = {
            f.name: np.asarray(getattr(self.estimator, f.name)) for f in fields(FactorEstimator)
        }
        for f in fields(Calibration):
            value = getattr(self.calibration, f.name)
            arrays[f"calibration_{f.name}"] = np.asarray([] if value is None else value)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> FittedRecipe:
        """Return the recipe that ``to_arrays`` gave.

        Raises
        ------
        KeyError
            An array is missing.
        ValueError
            The arrays do not fit together.
        """
        estimator = FactorEstimator(**{f.name: arrays[f.name] for f in fields(FactorEstimator)})
        k = len(estimator.means)
        if any(len(getattr(estimator, name)) != k for name in _PER_SAMPLE):
            raise ValueError(f"arrays of unequal length where {k} selected samples are described")
        if estimator.group_loadings.shape != (
            len(estimator.group_shares),
            estimator.loadings.shape[1],
        ):
            raise ValueError("group loadings do not fit the groups and factors")
        get = {f.name: arrays[f"calibration_{f.name}"] for f in fields(Calibration)}
        bounds = get["bounds"]
        if len(bounds) not in (0, 2):
            raise ValueError(f"{len(bounds)} bounds instead of two or none")
        return cls(
            estimator,
            Calibration(
                low=float(get["low"]),
                high=float(get["high"]),
                bounds=(float(bounds[0]), float(bounds[1])) if len(bounds) else None,
                design_share=float(get["design_share"]),
                scale=float(get["scale"]),
                near=get["near"],
                far=get["far"],
                strongest=get["strongest"],
                n_models=int(get["n_models"]),
                misfit_limit=float(get["misfit_limit"]),
            ),
        )


_PER_SAMPLE = ("noise", "shares", "loadings", "weights", "chances", "drawn", "groups")
