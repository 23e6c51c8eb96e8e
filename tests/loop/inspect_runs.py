"""Evaluate a dozen mock models in full; run where inspect_ai is installed."""

from __future__ import annotations

import sys

from inspect_ai import eval as evaluate
from inspect_sums import loop_sums


def main(n_models: int) -> None:
    """Write logs of ``n_models`` reference models to ``full/`` and of a new one to ``truth/``."""
    names = [f"mockllm/ref-{(i + 1) * 90 // n_models}" for i in range(n_models)]
    evaluate(loop_sums(), model=names, log_dir="full", display="none")
    evaluate(loop_sums(), model="mockllm/new-55", log_dir="truth", display="none")


if __name__ == "__main__":
    main(int(sys.argv[1]))
