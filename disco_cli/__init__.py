"""Estimate a model's full-benchmark score from about 1 % of the samples.

The functions of this package are the commands of the program and return what those print::

    from disco_cli import build_db, predict, select

    chosen = select(paths, k=100)
    built = build_db(paths, selection=chosen.selection)
    result = predict(["new_model.npz"], database=built.database)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from disco_cli.workflows.backtest import backtest
    from disco_cli.workflows.build import build_db
    from disco_cli.workflows.info import info
    from disco_cli.workflows.plan import plan
    from disco_cli.workflows.predict import predict
    from disco_cli.workflows.score import score
    from disco_cli.workflows.select import select

__version__ = "0.1.0"
__all__ = ["__version__", "backtest", "build_db", "info", "plan", "predict", "score", "select"]

_HOMES = {
    "backtest": "backtest",
    "build_db": "build",
    "info": "info",
    "plan": "plan",
    "predict": "predict",
    "score": "score",
    "select": "select",
}


def __getattr__(name: str) -> Any:
    """Import a workflow when it is first asked for: ``import disco_cli`` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.workflows.{_HOMES[name]}"), name)
