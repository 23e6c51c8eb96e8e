"""The database: what was learnt from the reference models, saved so that nothing in it runs code.

``db/`` holds ``manifest.json`` (format, versions, parameters, the sha256 of every other part),
``selection.json``, ``references.npz`` (what the reference models said on the K samples and their
full scores), ``pca.npz`` and ``rf.pkl``. The forest is an ordinary scikit-learn pickle for users;
disco reads it through an allow-list only (:mod:`disco_cli.estimation.forest`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from disco_cli.errors import ArtifactError, InputError, OutputError
from disco_cli.estimation.layout import LINEAR, PCA, RECIPE, REFERENCES, Form, check_arrays
from disco_cli.estimation.packed import read_arrays
from disco_cli.files.strict_json import parse_json
from disco_cli.files.url_path import is_behind_url, write_folder
from disco_cli.selection.subset import Selection, parse_selection

FORMAT = 1
"""Format number of a database; a change that an older reader would misread raises it.

1: first format.
"""
ACCURACY = "accuracy"
"""The metric of a database whose truth is the share of right answers, 0 … 1."""
MEAN_RESPONSE = "mean response"
"""The metric of a database whose truth is the mean of scores per sample, in whatever unit."""
ARTIFACT = "disco database"
MANIFEST = "manifest.json"
MAX_PART_BYTES = 1 << 32
"""No part of a database is larger than this; a larger one is damaged or made to be."""
_SWAP_ATTEMPTS = 20
_FORMS = {"pca.npz": PCA, "linear.npz": LINEAR, "recipe.npz": RECIPE}
_NEEDED_PARTS = ("selection.json", "references.npz", "pca.npz", "rf.pkl")
_PARAMETERS: Mapping[str, type] = {
    "recipe": str,
    "predictor": str,
    "seed": int,
    "n_neighbours": int,
    "is_label_aware": bool,
    "counts_no_answer": bool,
}


@dataclass(frozen=True)
class Manifest:
    """What a database is about; the head of ``manifest.json``.

    Attributes
    ----------
    benchmark : str
        Fingerprint of the N samples.
    n_samples, n_classes, n_models : int
        N, C (``None`` for responses) and M.
    values : str
        What targets must bring: ``probabilities``, ``labels`` or ``responses``.
    metric : str
        What the estimates are in, for example ``accuracy`` or ``score of truth.csv``.
    average : str
        ``micro`` or ``macro``.
    comparable : bool
        Whether the mean of responses is in the metric's own units.
    parameters : dict
        Seed and sizes the estimators were built with.
    errors : tuple of dict
        Cross-validated error of every predictor and baseline.
    versions : dict
        Of disco, numpy and scikit-learn.
    """

    benchmark: str
    n_samples: int
    n_classes: int | None
    n_models: int
    values: str
    metric: str
    average: str
    comparable: bool
    parameters: dict[str, Any]
    errors: tuple[dict[str, Any], ...]
    versions: dict[str, str]

    @property
    def average_of_truth(self) -> str | None:
        """How the truth was averaged; ``None`` where it was given and nothing tells."""
        return self.average if self.metric in (ACCURACY, MEAN_RESPONSE) else None


@dataclass(frozen=True)
class Database:
    """An opened database: its manifest, its selection, and its parts as bytes until they are used.

    Attributes
    ----------
    manifest : Manifest
        What it is about.
    selection : Selection
        The K samples.
    parts : mapping of str to bytes
        ``references.npz``, ``pca.npz``, ``rf.pkl`` …, verified against the manifest's hashes.
    """

    manifest: Manifest
    selection: Selection
    parts: Mapping[str, bytes]

    @cached_property
    def references(self) -> Mapping[str, NDArray[Any]]:
        """The arrays of ``references.npz``, checked."""
        return self._checked("references.npz", REFERENCES, {})

    def arrays(self, part: str) -> Mapping[str, NDArray[Any]]:
        """Return the arrays of ``pca.npz``, ``linear.npz`` or ``recipe.npz``, checked.

        Raises
        ------
        ArtifactError
            The part is missing or damaged, or does not fit the others.
        """
        scores, fill = self.references["scores"], self.references["fill"]
        return self._checked(part, _FORMS[part], {"q": scores.shape[1], "D": fill.size})

    def _checked(
        self, part: str, forms: Mapping[str, Form], lengths: dict[str, int]
    ) -> Mapping[str, NDArray[Any]]:
        manifest = self.manifest
        n_classes, parameters = manifest.n_classes, manifest.parameters
        width = 1 if n_classes is None else n_classes + parameters["counts_no_answer"]
        lengths |= {
            "M": manifest.n_models,
            "K": self.selection.k,
            "F": width + 2 * parameters["is_label_aware"],
        }
        if n_classes is not None:
            lengths["C"] = n_classes
        arrays = read_arrays(self.parts[part], part)
        check_arrays(part, arrays, forms, lengths)
        return arrays

    def save(self, folder: Path, *, force: bool = False) -> None:
        """Write the database as a whole: the old one stays readable until the new one is complete.

        Parameters
        ----------
        folder : Path
            Where to; an older database there is replaced.
        force : bool
            Replace a folder that is not a database, too.

        Raises
        ------
        OutputError
            The folder cannot be written, or it is not ours and ``force`` is not given.
        """
        if folder.exists() and not force and not is_database(folder):
            message = f"{folder}: exists and is not a database of disco; --force replaces it"
            raise OutputError(message)
        if is_behind_url(folder):
            try:
                write_folder(folder, self._files(), last=MANIFEST)
            except OSError as error:
                raise OutputError(f"{folder}: cannot be written: {error}") from error
            return
        shown, folder = folder, Path(os.path.realpath(folder))  # the link stays, as for files
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            from disco_cli.files.staging import staged

            with staged(folder) as staging:
                for name, content in self._files().items():
                    with (staging / name).open("wb") as file:
                        file.write(content)
                        file.flush()
                        os.fsync(file.fileno())
                staging.chmod(0o777 & ~_umask())
                _swap(staging, folder)
        except OSError as error:
            raise OutputError(f"{shown}: cannot be written: {error.strerror or error}") from error

    def _files(self) -> dict[str, bytes]:
        files = {"selection.json": self.selection.to_json().encode(), **self.parts}
        manifest = {
            "artifact": ARTIFACT,
            "format": FORMAT,
            **{name: getattr(self.manifest, name) for name in Manifest.__dataclass_fields__},
            "selection": self.selection.sha256,
            "parts": {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)},
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        return {**files, MANIFEST: text.encode()}


def is_database(folder: Path) -> bool:
    """Whether a folder holds a database of disco, of whatever format."""
    try:
        data = parse_json((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and data.get("artifact") == ARTIFACT


def load_database(folder: Path) -> Database:
    """Read a database and verify every part against the manifest's hash.

    Raises
    ------
    InputError
        There is no database.
    ArtifactError
        It is damaged, of another format, or its parts do not belong together.
    """
    if not (folder / MANIFEST).exists() and (_backup(folder) / MANIFEST).exists():
        folder = _backup(folder)  # a build was killed between its two renames
    try:
        data = parse_json((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        message = f"{folder}: no database there; run `disco build-db PREDS…` first"
        raise InputError(message) from None
    except (OSError, ValueError) as error:
        message = f"{folder / MANIFEST}: cannot be read ({error}); run `disco build-db` again"
        raise ArtifactError(message) from error
    try:
        return _parse(folder, data)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        message = f"{folder / MANIFEST}: not a database's manifest ({error!r}); build it again"
        raise ArtifactError(message) from error


def _parse(folder: Path, data: dict[str, Any]) -> Database:
    if data["artifact"] != ARTIFACT or data["format"] != FORMAT:
        message = (
            f"{folder / MANIFEST}: format {data['format']!r} of {data['artifact']!r}, this disco "
            f"reads {FORMAT} of {ARTIFACT!r}; build the database again"
        )
        raise ArtifactError(message)
    parts = {}
    for name, expected in data["parts"].items():
        if Path(name).name != name:
            raise ArtifactError(f"{folder / MANIFEST}: part {name!r} lies outside the database")
        parts[name] = _read_part(folder / name, expected)
    if missing := [name for name in _NEEDED_PARTS if name not in parts]:
        raise KeyError(f"parts: no {missing[0]}")
    fields = {name: data[name] for name in Manifest.__dataclass_fields__}
    if not isinstance(fields["errors"], list):
        raise TypeError("errors: should be a list")
    manifest = Manifest(**fields | {"errors": tuple(fields["errors"])})
    _check_manifest(manifest)
    try:
        selection = parse_selection(parts.pop("selection.json").decode())
    except (ArtifactError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{folder / 'selection.json'}: {error}; build it again") from error
    found = (selection.sha256, selection.benchmark, selection.n_samples)
    if found != (data["selection"], manifest.benchmark, manifest.n_samples):
        message = (
            f"{folder}: manifest.json and selection.json do not belong together; build it again"
        )
        raise ArtifactError(message)
    return Database(manifest, selection, parts)


def _check_manifest(manifest: Manifest) -> None:
    """Refuse values of the wrong type; what is read later relies on them.

    Raises
    ------
    TypeError, ValueError, KeyError
        Whichever describes the fault.
    """
    texts = ("benchmark", "values", "metric", "average")
    wanted = {**dict.fromkeys(texts, str), "n_samples": int, "n_models": int, "comparable": bool}
    given = {name: getattr(manifest, name) for name in wanted}
    for name, kind in (wanted | dict(_PARAMETERS)).items():
        value = given[name] if name in given else manifest.parameters[name]
        if type(value) is not kind:  # bool is an int, but True is no number of models
            raise TypeError(f"{name} is {value!r}, not of type {kind.__name__}")
        if isinstance(value, int) and not 0 <= value < 1 << 62:
            raise ValueError(f"{name} is out of range")
    if manifest.n_classes is not None and not 0 < int(manifest.n_classes) < 1 << 31:
        raise ValueError("n_classes is out of range")
    if manifest.n_models < 1 or manifest.parameters["n_neighbours"] < 1:
        raise ValueError("n_models and n_neighbours should be at least 1")
    for entry in manifest.errors:
        if not isinstance(entry["mae"], int | float | None) or not all(
            isinstance(entry[key], str) for key in ("name", "title", "note")
        ):
            raise TypeError("errors: should have texts `name`, `title`, `note` and a number `mae`")
    if not all(isinstance(text, str) for text in manifest.versions.values()):
        raise TypeError("versions: should be texts")


def _read_part(path: Path, expected: str) -> bytes:
    try:
        if path.stat().st_size > MAX_PART_BYTES:
            raise ArtifactError(f"{path}: larger than a part of a database can be; build it again")
        content = path.read_bytes()
    except OSError as error:
        message = f"{path}: part of the database cannot be read ({error.strerror}); build it again"
        raise ArtifactError(message) from error
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        message = (
            f"{path}: its sha256 starts {found[:12]}, the manifest says {str(expected)[:12]}: the "
            "file was changed or damaged; run `disco build-db` again"
        )
        raise ArtifactError(message)
    return content


def _swap(staging: Path, folder: Path) -> None:
    """Put the new folder in place of the old; of builds that end together the last one stays."""
    for attempt in range(_SWAP_ATTEMPTS):
        try:
            _swap_once(staging, folder)
        except OSError as error:  # noqa: PERF203 - a second attempt is rare
            raced = error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT)
            if not raced or attempt == _SWAP_ATTEMPTS - 1:
                raise
        else:
            return


def _swap_once(staging: Path, folder: Path) -> None:
    """Swap by two renames; a kill in between leaves the old folder as backup."""
    backup = _backup(folder)
    if folder.exists():
        if backup.is_symlink() or backup.is_file():
            backup.unlink()
        shutil.rmtree(backup, ignore_errors=True)
        folder.rename(backup)
    staging.rename(folder)
    if backup.is_file():  # with --force a file stood there
        backup.unlink()
    shutil.rmtree(backup, ignore_errors=True)


def _backup(folder: Path) -> Path:
    if not is_behind_url(folder):
        folder = Path(os.path.realpath(folder))  # of "." the name, and of a link what it names
    return folder.with_name(f".{folder.name}.old")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
