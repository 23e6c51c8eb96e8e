"""Reference models that answer alike are counted once, and that is told."""

import shutil

import numpy as np
import pytest
from test_bad_input import assert_refused

from disco_cli.workflows.evidence import copy_notes

ALIKE = "copy and model-05 answer alike: counted once"


@pytest.mark.parametrize("recipe", ["auto", "disco"])
def test_a_copy_under_another_name(disco, small, tmp_path, recipe):
    shutil.copy(small[5], tmp_path / "preds" / "copy.npz")
    files = [*small, tmp_path / "preds" / "copy.npz"]
    done = disco("select", "--k", "20", "--recipe", recipe, *files)
    assert (ALIKE in done.stderr.splitlines()) == (recipe == "auto")  # PDS is a maximum
    done = disco("build-db", *files)
    assert done.stderr.splitlines().count(ALIKE) == 1
    assert "alike" not in disco("build-db", *small).stderr


def test_copies_alone_are_too_few(disco, small, tmp_path):
    files = small[:3]
    for number in range(4):
        files.append(tmp_path / "preds" / f"z{number}.npz")
        shutil.copy(small[0], files[-1])
    done = disco("select", "--k", "20", *files)
    assert "model-00, z0, z1 and 2 more answer alike: counted once" in done.stderr
    assert_refused(disco("build-db", *files), 3, "3 different reference models")


def test_many_groups_are_not_all_listed():
    rows = np.repeat(np.arange(6.0), 2)[:, None]
    names = [f"m{number}" for number in range(12)]
    notes = copy_notes(rows, names)
    assert notes[0] == "m0 and m1 answer alike: counted once"
    assert notes[3:] == ("so do models of 3 more groups",)
    assert copy_notes(rows[::2], names[::2]) == ()
