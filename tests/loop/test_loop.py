"""The whole loop with the real tools: evaluate, import, select, export, evaluate again, predict.

``make test-loop`` installs the tools, each into an environment of its own; see ``install.sh``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from disco_cli.harness.choices import ImportOptions
from disco_cli.harness.imported import ImportedTable
from disco_cli.harness.open import Tool, import_logs

pytestmark = [pytest.mark.slow, pytest.mark.loop]

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
TOOLS = Path(os.environ.get("DISCO_LOOP", HERE.parents[1] / ".venv-loop")).resolve()
N_MODELS = 12
K = 30
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def programs_of(tool: str) -> Path:
    """Return where a tool's programs are; skip with the reason if they cannot be installed."""
    reason = TOOLS / f"{tool}.unavailable"
    if reason.exists():
        pytest.skip(reason.read_text().strip())
    if not (TOOLS / tool / ".ready").exists():
        pytest.skip(f"{tool} is not installed in {TOOLS.name}: run make test-loop")
    return TOOLS / tool / "bin"


def run(command: list[str], folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of a tool, or disco, in a folder and without network."""
    path = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = (
        os.environ
        | OFFLINE
        | {
            "PATH": os.pathsep.join(path),
            "HF_HOME": str(folder / "hf"),
        }
    )
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
    return done


def disco(folder: Path, *arguments: str) -> tuple[str, str]:
    """Run disco; returns stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "disco_cli", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(HERE.parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}\n{done.stderr}"
    return done.stdout, done.stderr


def next_command(stderr: str) -> list[str]:
    """Return the command that ``disco export`` says to run next."""
    (line,) = [one for one in stderr.splitlines() if one.startswith("next: ")]
    return shlex.split(line.removeprefix("next: "))


def check_subset(full: ImportedTable, part: ImportedTable, chosen: list[str]) -> None:
    """The rows of the subset are those of the full run, by id, by content and by answer."""
    assert part.ids.tolist() == chosen
    place = {sample: row for row, sample in enumerate(full.ids.tolist())}
    rows = [place[sample] for sample in chosen]
    assert full.hashes is not None
    assert part.hashes is not None
    assert part.hashes.tolist() == full.hashes[rows].tolist()
    np.testing.assert_array_equal(part.responses, full.responses[rows])
    np.testing.assert_array_equal(part.labels, full.labels[rows])


def check_prediction(stdout: str, truth: float) -> None:
    """The estimate uses all K samples and lies where the full run says."""
    told = json.loads(stdout)
    assert (told["n_used"], told["n_missing"]) == (K, 0)
    assert told["low"] is None or told["low"] <= told["estimate"] <= told["high"]
    assert abs(told["estimate"] - truth) < 0.25  # tiny models, 30 samples: near, not exact


def tutorial() -> list[str]:
    """Return the commands of the tutorial."""
    text = (DOCS / "tutorial-lm-eval.md").read_text(encoding="utf-8")
    return [
        line for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) for line in block.split("\n")
        if line
    ]  # fmt: skip


def test_lm_eval(tmp_path: Path) -> None:
    """The tutorial, each command as it is written, and what it says of the result."""
    programs = programs_of("lm-eval")
    shutil.copy(DOCS / "lm_eval_tiny.py", tmp_path)
    printed = {
        line: run(["bash", "-euo", "pipefail", "-c", line], tmp_path, programs)
        for line in tutorial()
    }
    exported = next(
        done.stderr for line, done in printed.items() if line.startswith("disco export")
    )
    filled_in = next(line for line in printed if "--samples" in line)
    command = next_command(exported)
    assert set(command) - {"pretrained=MODEL", "OUT"} <= set(shlex.split(filled_in))

    chosen = json.loads((tmp_path / "disco-run/selection.json").read_text())["sample_ids"]
    assert len(chosen) == K
    whole = import_logs(Tool.LM_EVAL, [tmp_path / "truth"], ImportOptions(tasks=("loop",)))
    (full,) = whole.tables
    parts = import_logs(Tool.LM_EVAL, [tmp_path / "part"]).tables
    assert sorted(one for part in parts for one in part.ids.tolist()) == sorted(chosen)
    for part in parts:
        check_subset(full, part, [one for one in chosen if one.startswith(f"{part.task}/")])
    assert full.score is not None
    logs = sorted(str(path) for path in (tmp_path / "part").rglob("samples_*.jsonl"))
    stdout, _ = disco(tmp_path, "predict", *logs, "--json")
    check_prediction(stdout, full.score)


@pytest.fixture(scope="module")
def inspect_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    programs = programs_of("inspect")
    folder = tmp_path_factory.mktemp("inspect")
    shutil.copy(HERE / "inspect_sums.py", folder / "loop_sums.py")
    run([str(programs / "python"), str(HERE / "inspect_runs.py"), str(N_MODELS)], folder, programs)
    return folder


def test_inspect(inspect_folder: Path) -> None:
    folder = inspect_folder
    programs = programs_of("inspect")
    stdout, _ = disco(folder, "import", "inspect", "full", "-o", "preds")
    preds = stdout.splitlines()
    assert len(preds) == N_MODELS
    disco(folder, "select", "--k", str(K), "--method", "random", *preds)
    disco(folder, "build-db", *preds)
    stdout, stderr = disco(folder, "export", "--to", "inspect")
    command = next_command(stderr)
    assert command[:3] == ["inspect", "eval", "loop_sums.py"]
    command = [word.replace("MODEL", "mockllm/new-55") for word in command]
    run([*command, "--log-dir", "part", "--display", "none"], folder, programs)

    chosen = json.loads((folder / "disco-run/selection.json").read_text())["sample_ids"]
    (full,) = import_logs(Tool.INSPECT, [folder / "truth"]).tables
    (part,) = import_logs(Tool.INSPECT, [folder / "part"]).tables
    assert sorted(part.ids.tolist()) == sorted(chosen)
    check_subset(full, part, part.ids.tolist())
    assert full.score is not None
    (log,) = (folder / "part").glob("*.eval")
    stdout, _ = disco(folder, "predict", str(log), "--json")
    check_prediction(stdout, full.score)
