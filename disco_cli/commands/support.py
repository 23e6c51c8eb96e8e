"""What commands share: options that mean the same everywhere, and where results go."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from disco_cli.errors import UsageError
from disco_cli.files.url_path import as_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from disco_cli.disagreement.plan import EngineOptions
    from disco_cli.progress import Progress
    from disco_cli.report.hints import Given
    from disco_cli.workflows.inputs import ReadOptions


def command(function: Callable[..., None]) -> typer.Typer:
    """Return the app of a single command."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(function)
    return app


Location = Any
"""What ``as_path`` gives: a path, or the like of one for a URL.

Not annotated as a path, because some versions of typer turn whatever is into one, URLs included.
"""

Predictions = Annotated[
    list[str] | None,
    typer.Argument(metavar="PREDS…", help="Prediction files (.npz, .parquet).", show_default=False),
]
Folder = Annotated[
    Location,
    typer.Option(
        "--dir",
        "-d",
        envvar="DISCO_DIR",
        metavar="PATH",
        parser=as_path,
        help="Folder of the artifacts.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="PATH", help="Write here instead; - is standard output."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Force = Annotated[
    bool, typer.Option("--force", help="Replace a file that is not known as disco's own.")
]
Seed = Annotated[
    int, typer.Option(min=0, metavar="N", help="Seed of everything that is left to chance.")
]
Level = Annotated[
    float,
    typer.Option(
        "--level", metavar="LEVEL", help="Coverage of the intervals, above 0 and below 1."
    ),
]
KindName = Annotated[
    Literal["auto", "probabilities", "logits", "log-probabilities", "labels", "responses"],
    typer.Option("--kind", help="What the values are; auto decides per file and says so."),
]
NoAnswer = Annotated[
    Literal["missing", "wrong"],
    typer.Option(help="What a predicted label of -1 means; wrong: the model gave no answer."),
]
AverageName = Annotated[
    Literal["micro", "macro"],
    typer.Option("--average", help="Mean over samples, or over groups of equal weight."),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Score to take of logs; repeated: the first that a task has.",
    ),
]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter", metavar="NAME", help="Answer filter (HELM: split) to take of logs; repeatable."
    ),
]
Memory = Annotated[
    str, typer.Option(metavar="SIZE", help="Bound on the arrays held at once, such as 256MiB.")
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Threads that read and compute [default: one per core]."),
]
Engine = Annotated[
    Literal["local", "dask"],
    typer.Option(help="Score in this process, or on Dask workers (disco-cli[dask])."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Join this Dask scheduler, such as tcp://host:8786."),
]


@dataclass(frozen=True)
class Form:
    """What a command writes, whatever the name of the file: names may not say otherwise."""

    what: str
    endings: tuple[str, ...]
    advice: str = ""


_ENDINGS = frozenset({".csv", ".tsv", ".json", ".jsonl", ".parquet", ".npz"})
PARQUET = Form("Parquet", (".parquet",), ", or take tab-separated values from -o -")
SELECTION = Form("JSON", (".json",), "; `disco export --to csv` makes a table of it")
ROWS = Form("JSON lines, with a table as .csv beside them", (".jsonl", ".json"))
TABLE = Form("tab-separated values", (".tsv",), ", or ask for JSON lines with --json")
LINES = Form("JSON lines", (".jsonl", ".json"), ", or leave out --json")
FOLDER = Form("a folder", ())
DEFAULT_FOLDER = Path("disco-run")
DEFAULT_MEMORY = "1GiB"


def read_options(
    kind: str,
    no_answer: str = "missing",
    metrics: list[str] | None = None,
    filters: list[str] | None = None,
) -> ReadOptions:
    """Return how prediction files are to be understood, and what to take of logs."""
    from disco_cli.files.matrix import Kind
    from disco_cli.harness.choices import ImportOptions
    from disco_cli.workflows.inputs import ReadOptions

    return ReadOptions(
        kind=None if kind == "auto" else Kind(kind),
        counts_no_answer=no_answer == "wrong",
        logs=ImportOptions(metrics=tuple(metrics or ()), filters=tuple(filters or ())),
    )


def given(
    folder: Path,
    preds: list[str] | None = None,
    kind: str = "auto",
    no_answer: str = "missing",
    metrics: list[str] | None = None,
    filters: list[str] | None = None,
) -> Given:
    """Return what the next command will need again, for its hint."""
    from disco_cli.report.hints import Given

    is_default = folder == DEFAULT_FOLDER and "DISCO_DIR" not in os.environ
    reading = [] if kind == "auto" else ["--kind", kind]
    reading += [] if no_answer == "missing" else ["--no-answer", no_answer]
    for option, names in (("--metric", metrics), ("--filter", filters)):
        reading += [word for name in names or () for word in (option, name)]
    words = () if is_default else ("--dir", str(folder))
    return Given(folder, words, tuple(preds or ()), tuple(reading))


def engine_options(
    memory: str, threads: int | None, engine: str, scheduler: str | None
) -> EngineOptions:
    """Return how to score.

    Raises
    ------
    UsageError
        A size that cannot be read, or options that contradict each other.
    """
    from disco_cli.disagreement.plan import EngineOptions, parse_size

    if scheduler is not None and engine != "dask":
        raise UsageError("--scheduler: needs --engine dask")
    return EngineOptions(
        memory_bytes=parse_size(memory, "--memory"),
        threads=threads,
        distributed=engine == "dask",
        scheduler=scheduler,
    )


def whole_numbers(text: str | None, option: str) -> list[int] | None:
    """Return the whole numbers of a text such as ``10,30,100``; ``None`` stays.

    Raises
    ------
    UsageError
        It is something else.
    """
    if text is None:
        return None
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} {text}: give whole numbers separated by commas") from None


def words(text: str | None) -> tuple[str, ...]:
    """Return the words of a text such as ``pds,jsd``; none of ``None``."""
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def target_path(output: str | None, default: Path | None, form: Form | None = None) -> Path | None:
    """Return where the result goes; ``None`` for ``-o -``, standard output.

    Raises
    ------
    UsageError
        ``-o -`` for an artifact that is a folder, or a name that ends as if the file were of
        another form than it is.
    """
    if output is None:
        return default
    if output == "-":
        if form is FOLDER:
            raise UsageError(
                "-o -: a database is a folder and cannot be written to standard output"
            )
        return None
    path: Path = as_path(output)
    ending = path.suffix.lower()
    if form is not None and ending in _ENDINGS and ending not in form.endings:
        name = f"end its name in {form.endings[0]}" if form.endings else "leave out the ending"
        raise UsageError(f"-o {output}: what is written is {form.what}; {name}{form.advice}")
    return path


def is_terminal(stream: Any) -> bool:
    """Whether somebody watches this stream."""
    return bool(stream.isatty())


def watch(*, quiet: bool) -> Progress:
    """Return a progress bar on stderr when somebody can see it, and nothing otherwise."""
    if quiet or not is_terminal(sys.stderr):
        from disco_cli.progress import SILENT

        return SILENT
    from disco_cli.report.bar import Bar

    return Bar()
