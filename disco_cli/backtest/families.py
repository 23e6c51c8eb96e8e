"""Which models are relatives: a rule on their names, or a table given by the user.

A target whose near relatives serve as its references looks easier to estimate than a model of a
new family will be. ``--by-family`` keeps relatives apart.

The rule, for names without an entry in the user's table:

1. Drop the organisation before the last ``/`` and everything from the first ``@`` on; lower case.
2. Split what is left into runs of letters (digits and punctuation separate them).
3. The first run that is a well-known base (:data:`BASES`) is the family: a fine-tune named after
   its maker and its base (``FuseChat-Llama-3.2-1B``) is a relative of the base.
4. Otherwise the first run is the family; a name without letters is a family of its own.

All versions and sizes of one base are one family, on purpose: too wide a family makes the backtest
pessimistic, too narrow a one makes it flatter.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from disco_cli.errors import InputError
from disco_cli.files.url_path import as_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

BASES = frozenset(
    [
        "amber",
        "baichuan",
        "bert",
        "bloom",
        "chatglm",
        "claude",
        "codellama",
        "cohere",
        "command",
        "cerebras",
        "dbrx",
        "deepseek",
        "densenet",
        "dolly",
        "efficientnet",
        "falcon",
        "galactica",
        "gemini",
        "gemma",
        "glm",
        "gpt",
        "granite",
        "grok",
        "gptj",
        "gptneox",
        "internlm",
        "jamba",
        "llama",
        "luminous",
        "mamba",
        "mistral",
        "mixtral",
        "mpt",
        "nemotron",
        "olmo",
        "openllama",
        "opt",
        "orca",
        "palm",
        "phi",
        "pythia",
        "qwen",
        "redpajama",
        "reka",
        "resnet",
        "resnext",
        "rwkv",
        "smollm",
        "solar",
        "stablelm",
        "starcoder",
        "tulu",
        "vgg",
        "vicuna",
        "vit",
        "wideresnet",
        "wizardlm",
        "xgen",
        "yi",
        "zephyr",
    ]
)
"""Bases after which derived models are named."""


def family_of(name: str) -> str:
    """Return the family of a model by the rule above.

    Parameters
    ----------
    name : str
        A model's name, with or without organisation.

    Returns
    -------
    str
        Lower-case name of the family.
    """
    stem = name.rsplit("/", 1)[-1].split("@", 1)[0].lower()
    words: list[str] = re.findall(r"[^\W\d_]+", stem)
    for word in words:
        if word in BASES:
            return word
    return words[0] if words else name


def families(names: Sequence[str], table: Mapping[str, str] | None = None) -> list[str]:
    """Return the family of each model: from the table where it has one, else by the rule.

    Parameters
    ----------
    names : sequence of str
        The M models.
    table : mapping of str to str, optional
        Family by name of model, see :func:`read_families`.

    Returns
    -------
    list of str
        M families.
    """
    table = {} if table is None else table
    return [table.get(name) or family_of(name) for name in names]


def read_families(path: str | Path) -> dict[str, str]:
    """Read a table of families: two columns, model and family, separated by commas or tabs.

    A first line ``model,family`` is taken for a header.

    Raises
    ------
    InputError
        If the file cannot be read or a line has other than two filled columns.
    """
    try:
        text = as_path(path).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read the table of families: {error}") from error
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    table: dict[str, str] = {}
    for number, row in enumerate(csv.reader(text.splitlines(), delimiter=delimiter), start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (number == 1 and cells == ["model", "family"]):
            continue
        if len(cells) != 2 or not all(cells):
            raise InputError(
                f"{path}: line {number}: expected a model and its family, found {row!r}"
            )
        table[cells[0]] = cells[1]
    return table
