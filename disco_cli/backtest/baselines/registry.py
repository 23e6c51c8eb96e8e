"""The methods of the backtest by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from disco_cli.backtest.baselines import (
    aipw,
    anchors,
    auto,
    direct,
    disco,
    irt,
    mean,
    metabench,
    ridge,
    sort_search,
)
from disco_cli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from disco_cli.backtest.baselines.interface import FitMethod

REFERENCE_METHOD = "random"
"""Plain random sampling, measured in every backtest so that every table can show it."""


@dataclass(frozen=True)
class Method:
    """One method of the comparison.

    Attributes
    ----------
    name : str
        As in ``--methods`` and in tables.
    fit : FitMethod
        The function itself.
    what : str
        One line for help and docs.
    shares : str
        Methods of one such name share work on the same references; the backtest runs their cells
        one after the other in one process.
    """

    name: str
    fit: FitMethod
    what: str
    shares: str = ""


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("mean", mean.fit_mean, "the references' mean score, whatever the target"),
        Method("random", direct.fit_random, "mean of a random subset"),
        Method("stratified-random", direct.fit_stratified, "means of groups, random inside"),
        Method("anchor-corr", anchors.fit_anchor_corr, "weighted sum over anchors of correctness"),
        Method("anchor-irt", irt.fit_anchor_irt, "weighted sum over anchors of items", "irt"),
        Method("random-irt", irt.fit_random_irt, "mean predicted response, random subset", "irt"),
        Method("random-p-irt", irt.fit_random_p_irt, "p-IRT on a random subset", "irt"),
        Method("random-gp-irt", irt.fit_random_gp_irt, "gp-IRT on a random subset", "irt"),
        Method("anchor-corr-gp-irt", irt.fit_anchor_corr_gp, "gp-IRT on anchor-corr", "irt"),
        Method("anchor-irt-gp-irt", irt.fit_anchor_irt_gp, "gp-IRT on anchor-irt", "irt"),
        Method("sort-search", sort_search.fit_sort_search, "threshold from easy to hard"),
        Method("metabench", metabench.fit_metabench, "best of random subsets, ridge"),
        Method("random-ridge", ridge.fit_random_ridge, "ridge on a random subset"),
        Method("random-aipw", aipw.fit_random_aipw, "difference estimate on a random subset"),
        Method("pds-forest", disco.fit_pds_forest, "DISCO: PDS, PCA, forest", "disagreement"),
        Method("pds-knn", disco.fit_pds_nearest, "DISCO: PDS, PCA, kNN", "disagreement"),
        Method("jsd-forest", disco.fit_jsd_forest, "DISCO: JSD, PCA, forest", "disagreement"),
        Method("jsd-knn", disco.fit_jsd_nearest, "DISCO: JSD, PCA, kNN", "disagreement"),
        Method("auto", auto.fit_auto, "our own: strata, factors and the design", "auto"),
    )
}
"""In the order of tables."""


def choose_methods(names: Iterable[str] | None = None) -> tuple[Method, ...]:
    """Return the methods of these names in the order of tables, plain random always among them.

    Parameters
    ----------
    names : iterable of str, optional
        Names; all methods if absent.

    Raises
    ------
    UsageError
        If a name is unknown.
    """
    if names is None:
        return tuple(METHODS.values())
    wanted = set(names)
    unknown = sorted(wanted - METHODS.keys())
    if unknown:
        raise UsageError(
            f"--methods: no method is called {unknown[0]!r}; choose from {', '.join(METHODS)}"
        )
    wanted.add(REFERENCE_METHOD)
    return tuple(method for method in METHODS.values() if method.name in wanted)
