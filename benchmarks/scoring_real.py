"""Real option logits of 102 language models on 10,000 MMLU questions: time, and PDS against JSD.

    python benchmarks/scoring_real.py [FILE]

FILE (default: ../shared/data/mmlu_10k_logits.npz) is not part of the project; without it nothing is
measured.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import numpy as np
from scoring_common import DISCO, ROOT, in_turn, keep, show

from disco_cli.disagreement.engine import score_benchmark
from disco_cli.files.align import align
from disco_cli.files.open import open_predictions

ROUNDS = 7
SIZES = (30, 100, 300, 1_000)


def main() -> None:
    """Measure, print and keep the samples."""
    path = ROOT.parent / "shared" / "data" / "mmlu_10k_logits.npz"
    if len(sys.argv) > 1:
        path = Path(sys.argv[1])
    if not path.exists():
        sys.exit(f"{path} is not there: nothing measured")
    benchmark = align([open_predictions(path)])
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        scores = score_benchmark(benchmark)
        taken.append(time.perf_counter() - start)
    print(f"compute {statistics.median(taken):.2f} s of {min(taken):.2f} … {max(taken):.2f}")
    runs = in_turn({"disco score": [DISCO, "score", "--quiet", "-o", "-", str(path)]}, ROUNDS)
    show(runs)
    ranks = {
        name: np.lexsort((np.arange(len(values)), -values))
        for name, values in (("pds", scores.pds), ("jsd", scores.jsd))
    }
    places = {name: np.argsort(order) for name, order in ranks.items()}
    spearman = float(np.corrcoef(places["pds"], places["jsd"])[0, 1])
    print(f"\nSpearman correlation of PDS and JSD over {len(scores.pds)} questions {spearman:.4f}")
    shared = {}
    for k in SIZES:
        common = len(set(ranks["pds"][:k].tolist()) & set(ranks["jsd"][:k].tolist()))
        shared[k] = common
        print(f"of the first {k:>5} by PDS and by JSD {common:>5} are the same")
    keep("scoring_real", runs, compute_seconds=taken, spearman=spearman, shared=shared)


if __name__ == "__main__":
    main()
