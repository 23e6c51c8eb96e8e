"""How long the item response model takes on 400 models and 10,000 samples, in CPU seconds."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from disco_cli.backtest.baselines.irt_model import choose_dimension, fit_irt
from disco_cli.backtest.run import LIBRARIES
from disco_cli.threads import single_threaded

RESULT = Path(__file__).with_suffix(".json")


def main() -> None:
    """Simulate, choose the dimension, fit, and write the times."""
    rng = np.random.default_rng(0)
    theta, a = rng.normal(size=(400, 3)), rng.normal(size=(10_000, 3))
    chance = 1 / (1 + np.exp(-(theta @ a.T - rng.normal(size=10_000))))
    y = (rng.random(chance.shape) < chance).astype(np.float64)
    with single_threaded(*LIBRARIES):
        start = time.process_time()
        dimension, error = choose_dimension(y, np.full(10_000, 1e-4))
        chosen = time.process_time()
        fit_irt(y, dimension)
        end = time.process_time()
    result = {
        "models": 400,
        "samples": 10_000,
        "dimension": dimension,
        "validation_error": round(error, 5),
        "choose_cpu_seconds": round(chosen - start, 1),
        "fit_cpu_seconds": round(end - chosen, 1),
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
