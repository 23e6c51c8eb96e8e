"""Where real logs of other tools lie: all of them beside the repository, some committed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent.parent / "fixtures"
SHARED = Path(__file__).parents[3] / "shared" / "formats"
LOGS = SHARED if SHARED.is_dir() else FIXTURES
LM_EVAL = LOGS / "lm_eval"
INSPECT = LOGS / "inspect"
DERIVED = LOGS / "derived"


def expected_runs() -> list[tuple[str, str, dict[str, Any]]]:
    """Return (folder, results file, what lm-evaluation-harness reported) of every run."""
    return [
        (folder.name, results, run)
        for folder in sorted(LM_EVAL.glob("v*"))
        for results, run in json.loads((folder / "expected.json").read_text()).items()
        if (folder / results).exists()
    ]


def expected_inspect() -> list[tuple[Path, dict[str, Any]]]:
    """Return (log, what inspect_ai reported) of every log."""
    return [
        (folder / name, log)
        for folder in sorted(INSPECT.glob("v*"))
        for name, log in json.loads((folder / "expected.json").read_text()).items()
        if (folder / name).exists()
    ]
