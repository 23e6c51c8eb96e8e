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
        From responses on the K samples to the estimates.
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
            f.name: np.asarray(getattr(self.estimator, f.name))
            for f in fields(FactorEstimator)
            if getattr(self.estimator, f.name) is not None
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
        # A database of an earlier version has no ridge.
        estimator = FactorEstimator(
            **{name: arrays[name] for name in _ARRAYS},
            ridge_slopes=arrays.get("ridge_slopes"),
            ridge_intercept=float(arrays.get("ridge_intercept", np.zeros(()))),
        )
        k = len(estimator.means)
        if any(len(getattr(estimator, name)) != k for name in _PER_SAMPLE):
            raise ValueError(f"arrays of unequal length where {k} selected samples are described")
        if estimator.group_loadings.shape != (
            len(estimator.group_shares),
            estimator.loadings.shape[1],
        ):
            raise ValueError("group loadings do not fit the groups and factors")
        get = {
            name.removeprefix("calibration_"): array
            for name, array in arrays.items()
            if name.startswith("calibration_")
        }
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
                ridge_share=float(get.get("ridge_share", np.zeros(()))),
            ),
        )


_ARRAYS = tuple(f.name for f in fields(FactorEstimator) if not f.name.startswith("ridge_"))
_PER_SAMPLE = ("noise", "shares", "loadings", "weights", "chances", "drawn", "groups")
