"""The next command, so that it works as it stands: with the folders, files and options given."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LONGEST = 2000
"""Characters of a command beyond which the files are not listed again."""


@dataclass(frozen=True)
class Given:
    """What a command was given that the next one needs again.

    Attributes
    ----------
    folder : Path
        Folder of the artifacts.
    folder_words : tuple of str
        How to name that folder; empty if it is the default.
    files : tuple of str
        Prediction files.
    reading : tuple of str
        Options that say how the files are to be understood.
    """

    folder: Path
    folder_words: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()

    def command(self, *words: str, reads: bool = False) -> str:
        """Return a command in this folder, on the same files if it reads them."""
        start = shlex.join(("disco", *words, *self.folder_words, *(self.reading if reads else ())))
        if not reads:
            return start
        whole = f"{start} {patterns(self.files)}"
        if not self.files or len(whole) > _LONGEST:
            return f"{start} PREDS… (the prediction files)"
        return whole


def patterns(files: Sequence[str]) -> str:
    """Return files as words of a shell, those that are all of a folder's as a pattern."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for file in files:
        folder, slash, name = file.rpartition("/")
        kinds.setdefault((f"{folder}{slash}", Path(name).suffix), []).append(file)
    words = []
    for (folder, ending), members in kinds.items():
        if len(members) > 1 and ending and _are_all(folder, ending, members):
            words.append(f"{shlex.quote(folder) if folder else ''}*{ending}")
        else:
            words += map(shlex.quote, members)
    return " ".join(words)


def _are_all(folder: str, ending: str, files: Sequence[str]) -> bool:
    """Whether these are the files that a shell finds by the pattern."""
    with suppress(OSError):
        names = [path.name for path in Path(folder or ".").iterdir() if path.name[0] != "."]
        return {folder + name for name in names if name.endswith(ending)} == set(files)
    return False
