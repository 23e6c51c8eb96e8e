"""The house plan: which module may import which. Data flows downwards."""

import ast
import subprocess
import sys
from pathlib import Path

import disco_cli

PACKAGE = Path(disco_cli.__file__).parent
LAYERS = (
    "errors",
    "progress",
    "threads",
    "kernel",
    "files",
    "disagreement",
    "selection",
    "estimation",
    "database",
    "harness",
    "backtest",
    "workflows",
    "report",
    "commands",
    "cli",
)
"""From the ground up: a module imports from its own layer and from those before it."""


def layer(module):
    """Return the layer of ``disco_cli.x.y``; the command line may be several modules."""
    name = module.split(".")[1]
    return "cli" if name.startswith(("cli", "__main__")) else name


def imports(path):
    """Yield the disco_cli modules that a file imports, wherever the statement stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("disco_cli"):
            if node.module == "disco_cli":
                yield from (f"disco_cli.{a.name}" for a in node.names if a.name in LAYERS)
            else:
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("disco_cli."))


def test_every_module_imports_only_from_its_own_layer_and_those_above_it():
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        module = "disco_cli." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        if module == "disco_cli.__init__":
            continue  # the public functions, imported on demand
        mine = LAYERS.index(layer(module))
        wrong += [
            f"{module} imports {target}"
            for target in imports(path)
            if LAYERS.index(layer(target)) > mine
        ]
    assert not wrong


def modules_after(statement):
    """Return the modules that are loaded after a statement in a fresh interpreter."""
    code = f"{statement}\nimport sys; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    loaded = modules_after("import disco_cli")
    assert not loaded & {"numpy", "typer", "sklearn", "scipy", "pyarrow", "rich"}


def test_importing_the_command_line_loads_no_numerics():
    loaded = modules_after("import disco_cli.cli")
    assert not loaded & {"numpy", "sklearn", "scipy", "pyarrow"}


def test_the_public_functions_import_on_demand():
    for name in disco_cli.__all__:
        assert getattr(disco_cli, name) is not None
