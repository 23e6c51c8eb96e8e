"""Where results go: files of the same content, of other content and of other people, and names."""

import pytest
from test_bad_input import assert_refused

from disco_cli.errors import OutputError
from disco_cli.files.output import write_output


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_estimate_written_twice_is_accepted(disco, small, small_artifacts, options):
    name = "out.jsonl" if options else "out.tsv"
    again = ("predict", "--db", small_artifacts / "db", *options, "-o", name)
    for _ in range(2):
        done = disco(*again, *small[:2])
        assert (done.returncode, done.stdout) == (0, f"{name}\n"), done.stderr
    assert_refused(disco(*again, small[3]), 3, name, "other content", "--force")
    assert disco(*again, small[3], "--force").returncode == 0


@pytest.mark.parametrize("to", ["ids", "csv", "jsonl"])
def test_an_export_written_twice_is_accepted(disco, small_artifacts, tmp_path, to):
    again = ("export", small_artifacts / "selection.json", "--to", to, "-o", "list.txt")
    assert [disco(*again).returncode for _ in range(2)] == [0, 0]
    (tmp_path / "list.txt").write_text("my notes")
    assert_refused(disco(*again), 3, "list.txt", "other content", "--force")


@pytest.mark.parametrize("command", ["score", "select", "build-db"])
def test_an_artifact_written_twice_is_accepted(disco, small, small_artifacts, command):
    options = {"select": ["--k", "9"]}.get(command, [])
    if command == "build-db":
        options = ["--selection", small_artifacts / "selection.json"]
    again = (command, *options, *small, "-o", "mine")
    assert [disco(*again).returncode for _ in range(2)] == [0, 0]


@pytest.mark.parametrize(
    ("command", "name", "words"),
    [
        (["score"], "scores.tsv", ["Parquet", ".parquet", "-o -"]),
        (["score"], "scores.CSV", ["Parquet"]),
        (["select", "--k", "9"], "chosen.csv", ["JSON", "export --to csv"]),
        (["build-db"], "db.npz", ["folder"]),
        (["predict"], "out.csv", ["tab-separated", ".tsv"]),
        (["predict"], "out.json", ["tab-separated", "--json"]),
        (["predict", "--json"], "out.tsv", ["JSON lines", ".jsonl"]),
        (["backtest"], "rows.csv", ["JSON lines", ".jsonl"]),
    ],
)
def test_a_name_that_promises_another_form_is_refused(disco, tmp_path, command, name, words):
    assert_refused(disco(*command, "none.npz", "-o", name), 2, name, *words)
    assert not (tmp_path / name).exists()


def test_a_device_is_written_to_without_force(disco, small, small_artifacts):
    for command in (["predict", "--db", small_artifacts / "db"], ["select", "--k", "9"]):
        assert disco(*command, *small, "-o", "/dev/null").returncode == 0


def test_only_a_file_of_other_content_is_in_the_way(tmp_path):
    path = tmp_path / "a.txt"
    write_output(path, b"one", force=False)
    write_output(path, b"one", force=False)
    for other in (b"two", b"longer"):
        with pytest.raises(OutputError, match="exists with other content"):
            write_output(path, other, force=False)
    write_output(path, b"two", force=True)
    assert path.read_bytes() == b"two"
