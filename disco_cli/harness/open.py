"""Opening whatever holds what models answered: prediction files, and logs of other tools.

Nothing heavy is imported before it is clear that a path is a log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from disco_cli.errors import InputError, UsageError
from disco_cli.files.location import local_path
from disco_cli.files.matrix import Kind, PredictionFile
from disco_cli.files.open import open_predictions

if TYPE_CHECKING:
    from disco_cli.harness.choices import ImportOptions
    from disco_cli.harness.imported import Imported


class Tool(str, Enum):
    """A tool whose logs are read."""

    LM_EVAL = "lm-eval"
    INSPECT = "inspect"
    HELM = "helm"
    LIGHTEVAL = "lighteval"
    CSV = "csv"


_NAMES = (
    (Tool.INSPECT, "*.eval"),
    (Tool.HELM, "per_instance_stats.json"),
    (Tool.LIGHTEVAL, "details_*.parquet"),
    (Tool.CSV, "*.csv"),
    (Tool.CSV, "*.tsv"),
)


def import_logs(
    tool: Tool, paths: Iterable[str | Path], options: ImportOptions | None = None
) -> Imported:
    """Import logs of one tool.

    Parameters
    ----------
    tool : Tool
        Whose logs they are.
    paths : iterable of str or Path
        Files or folders.
    options : ImportOptions, optional
        What to take of them.

    Raises
    ------
    InputError
        If a log is damaged or contradicts itself or another.
    UsageError
        If a metric, filter or task must be chosen.
    """
    return _reader(tool)(paths, options)


def open_inputs(
    paths: Sequence[str | Path], kind: Kind | None = None, options: ImportOptions | None = None
) -> list[PredictionFile]:
    """Open prediction files, and logs of other tools through their importers.

    All sample logs of one run of lm-evaluation-harness become one file, as if they were one group.

    Parameters
    ----------
    paths : sequence of str or Path
        Files, or folders of logs.
    kind : Kind, optional
        What the values of prediction files are; of logs, ``responses`` takes the metric alone.
    options : ImportOptions, optional
        What to take of logs.

    Raises
    ------
    InputError
        If a file or log cannot be used.
    UsageError
        If a metric or filter must be chosen, one is chosen where there is nothing to choose, or
        ``kind`` is not what a log holds.
    """
    places_of_files = [local_path(path) for path in paths]  # logs are read from this machine only
    tools = [None if place is None else tool_of(Path(place)) for place in places_of_files]
    _check_choices(set(tools) - {None}, options)
    opened: dict[int, list[PredictionFile]] = {}
    for tool in dict.fromkeys(tool for tool in tools if tool is not None):
        places = [i for i, one in enumerate(tools) if one is tool]
        opened[places[0]] = _open_logs(tool, [paths[i] for i in places], kind, options)
    for i, path in enumerate(paths):
        if tools[i] is None:
            opened[i] = [open_predictions(path, kind)]
    return [file for i in sorted(opened) for file in opened[i]]


def _check_choices(tools: Collection[Tool | None], options: ImportOptions | None) -> None:
    """Refuse choices that none of the files offers."""
    if options is None:
        return
    if options.metrics and not tools:
        raise UsageError(
            f"--metric {options.metrics[0]}: chooses a score of logs, and none of the files is one"
        )
    if options.filters and not {Tool.LM_EVAL, Tool.HELM}.intersection(tools):
        raise UsageError(
            f"--filter {options.filters[0]}: chooses among the filters of lm-evaluation-harness or "
            "the splits of HELM, and none of the files is such a log"
        )


def tool_of(path: Path) -> Tool | None:
    """Return whose log a path is, ``None`` for a prediction file or anything else.

    A file is told by its name, JSON by its first keys, and a folder by the files in it.
    """
    if path.is_dir():
        return _tool_of_folder(path)
    name = path.name.removesuffix(".gz")
    for tool, pattern in _NAMES:
        if fnmatch(name, pattern):
            return tool
    if not name.endswith((".jsonl", ".json")):
        return None
    from disco_cli.harness.inspect_log import is_inspect_log

    return Tool.INSPECT if _readable(path) and is_inspect_log(path) else Tool.LM_EVAL


def _readable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.R_OK)


def _tool_of_folder(folder: Path) -> Tool | None:
    if next(folder.rglob("per_instance_stats.json"), None) is not None:
        return Tool.HELM
    if next(folder.rglob("details_*.parquet"), None) is not None:
        return Tool.LIGHTEVAL
    if next(folder.rglob("*.eval"), None) is not None:
        return Tool.INSPECT
    found = {tool_of(path) for path in sorted(folder.rglob("*.json*"))}
    if Tool.INSPECT in found:
        return Tool.INSPECT
    return Tool.LM_EVAL if Tool.LM_EVAL in found else None


def _open_logs(
    tool: Tool, paths: list[str | Path], kind: Kind | None, options: ImportOptions | None
) -> list[PredictionFile]:
    from disco_cli.harness.imported import as_prediction_file

    if tool is Tool.LM_EVAL:
        from disco_cli.harness.lm_eval import read_lm_eval

        imported = read_lm_eval(paths, options, combine=True)
    else:
        imported = import_logs(tool, paths, options)
    files = []
    for table in imported.tables:
        if kind is Kind.RESPONSES and table.responses is not None:
            table = replace(table, loglikelihoods=None, predicted_labels=None)  # noqa: PLW2901
        file = as_prediction_file(table)
        if kind not in (None, file.kind):
            raise UsageError(
                f"{table.source}: a log of {tool.value} holds {file.kind.value}"
                + (" or responses" if table.responses is not None else "")
                + f", not {kind.value if kind else ''}; leave out --kind"
            )
        files.append(file)
    if not files:
        raise InputError(f"{paths[0]}: nothing to import")
    return [replace(files[0], notes=(*imported.notes, *files[0].notes)), *files[1:]]


def _reader(tool: Tool) -> Callable[..., Imported]:
    if tool is Tool.LM_EVAL:
        from disco_cli.harness.lm_eval import read_lm_eval

        return read_lm_eval
    if tool is Tool.INSPECT:
        from disco_cli.harness.inspect_ai import read_inspect

        return read_inspect
    if tool is Tool.HELM:
        from disco_cli.harness.helm import read_helm

        return read_helm
    if tool is Tool.LIGHTEVAL:
        from disco_cli.harness.lighteval import read_lighteval

        return read_lighteval
    from disco_cli.harness.csv_table import read_csv

    return read_csv
