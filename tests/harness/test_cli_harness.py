"""``disco import`` and ``disco export`` as a user runs them: stdout, stderr and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from logs import INSPECT, LM_EVAL

FULL = LM_EVAL / "v0.4.13_main"
SUBSET = LM_EVAL / "v0.4.13_samples_sorted"


def test_import_prints_paths_and_tells_what_it_found(disco: Any, tmp_path: Path) -> None:
    done = disco("import", "lm-eval", FULL, "--task", "loc_ragged", "--metric", "acc")
    assert done.returncode == 0, done.stderr
    paths = done.stdout.split()
    assert "preds/loc_ragged__models__tiny-b.npz" in paths
    assert "loc_ragged, 6 models: 40 samples, mean acc 0.275 … 1" in done.stderr
    with np.load(tmp_path / "preds/loc_ragged__models__tiny-b.npz", allow_pickle=False) as file:
        assert set(file) == {
            "logits", "responses", "sample_ids", "sample_hashes", "labels", "groups", "n_options",
            "model_names", "dates", "scores",
        }  # fmt: skip
        assert file["logits"].shape == (40, 7)
        assert file["sample_ids"][10] == "loc_ragged/10"
        assert len(file["sample_hashes"][0]) == 64
        assert file["scores"].tolist() == [1.0]


def test_import_is_the_same_bytes_again_and_json_is_one_object_a_file(
    disco: Any, tmp_path: Path
) -> None:
    arguments = (
        "import",
        "lm-eval",
        FULL,
        "--task",
        "loc_ragged",
        "--metric",
        "acc_norm",
        "-o",
        "p",
    )
    first = disco(*arguments, "--json", "--quiet")
    assert first.stderr == ""
    told = [json.loads(line) for line in first.stdout.splitlines()]
    assert all(row["metric"] == "acc_norm" and row["complete"] for row in told)
    content = {path: path.read_bytes() for path in (tmp_path / "p").iterdir()}
    assert disco(*arguments).returncode == 0
    assert {path: path.read_bytes() for path in (tmp_path / "p").iterdir()} == content


def test_a_missing_choice_lists_what_there_is(disco: Any, tmp_path: Path) -> None:
    done = disco("import", "lm-eval", FULL, "--task", "loc_ragged")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "choose with --metric from acc, acc_norm, acc_bytes" in done.stderr
    assert not (tmp_path / "preds").exists()


def test_a_task_that_is_not_there(disco: Any) -> None:
    done = disco("import", "lm-eval", FULL, "--task", "mmlu")
    assert done.returncode == 2
    assert "no samples of mmlu in these logs; there are loc_gen," in done.stderr


def test_a_foreign_file_in_the_way_needs_force(disco: Any, tmp_path: Path) -> None:
    (tmp_path / "preds").mkdir()
    target = tmp_path / "preds" / "loc_ragged__models__tiny-b.npz"
    target.write_text("my notes")
    arguments = ("import", "lm-eval", FULL, "--task", "loc_ragged", "--metric", "acc")
    done = disco(*arguments)
    assert done.returncode == 3
    assert "--force replaces it" in done.stderr
    assert target.read_text() == "my notes"
    assert len(list((tmp_path / "preds").iterdir())) == 1
    assert disco(*arguments, "--force").returncode == 0


def test_import_inspect_and_folder_output(disco: Any) -> None:
    log = next(INSPECT.rglob("*WXXwg*.eval"))
    done = disco("import", "inspect", log, "-o", "in")
    assert done.stdout == "in/add_mc__mockllm__m-a.npz\n"
    assert disco("import", "inspect", log, "-o", "-").returncode == 2


def test_import_csv(disco: Any, tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("sample_id,a,b\nq1,1,0\nq2,0.5,1\n")
    done = disco("import", "csv", "scores.csv")
    assert done.stdout == "preds/scores__a.npz\npreds/scores__b.npz\n"
    assert "scores, a: 2 samples, mean response 0.75" in done.stderr


def test_import_of_many_models_is_told_in_one_line(disco: Any, tmp_path: Path) -> None:
    names = [f"m{number:02d}" for number in range(30)]
    rows = [f"q{i}," + ",".join("" if j < 12 and not i else str(int(j > i)) for j in range(30))
            for i in range(10)]  # fmt: skip
    (tmp_path / "wide.csv").write_text("\n".join([f"sample_id,{','.join(names)}", *rows]) + "\n")
    done = disco("import", "csv", "wide.csv")
    assert done.stdout.splitlines() == [f"preds/wide__{name}.npz" for name in names]
    lines = done.stderr.splitlines()
    assert lines[-1] == (
        "wide, 30 models: 10 samples (12 models: a part of the benchmark), mean response 0 … 1"
    )
    assert lines[0] == "wide.csv: 'm00' lacks 1 of 10 scores"
    assert lines[10] == "… and 2 more notes; --json has all"
    assert len(lines) == 12


def test_info_counts_all_models_of_a_table(disco: Any, tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text("sample_id,a,b,c\nq1,1,0,1\nq2,0.5,1,0\n")
    (tmp_path / "long.csv").write_text("model,sample_id,acc\na,q1,1\na,q2,0\nb,q2,1\nb,q3,1\n")
    assert "n_models\t3\n" in disco("info", "wide.csv").stdout
    facts = json.loads(disco("info", "long.csv", "--json").stdout)
    assert (facts["n_models"], facts["n_samples"], facts["models"]) == (2, 3, ["a", "b"])
    assert any("'a' lacks 1 of the 3 samples" in note for note in facts["notes"])


def test_a_missing_table_reads_like_any_other_missing_file(disco: Any) -> None:
    for command in (["import", "csv"], ["score"], ["info"]):
        done = disco(*command, "none.csv")
        assert (done.returncode, done.stderr) == (3, "error: none.csv: no such file\n")


def test_from_logs_to_an_exported_selection(disco: Any, tmp_path: Path) -> None:
    done = disco("select", "--k", "4", FULL / "models__tiny-b", "--metric", "acc",
                 "--filter", "none", "--method", "random")  # fmt: skip
    assert done.returncode == 2  # generation beside multiple choice cannot be one file
    logs = sorted(FULL.glob("models__tiny-*/samples_loc_ragged_*"))
    done = disco("select", "--k", "4", *logs, "--metric", "acc", "--method", "random")
    assert done.returncode == 0, done.stderr
    done = disco("export", "--to", "lm-eval")
    chosen = json.loads(done.stdout)
    assert list(chosen) == ["loc_ragged"]
    assert chosen["loc_ragged"] == sorted(set(chosen["loc_ragged"]))
    assert "next: lm_eval --model hf" in done.stderr
    assert "--cache_requests" in done.stderr
    done = disco("export", "disco-run/selection.json", "--to", "lm-eval", "-o", "samples.json")
    assert done.stdout == "samples.json\n"
    assert json.loads((tmp_path / "samples.json").read_text()) == chosen
    assert "--samples samples.json" in done.stderr
    assert disco("export", "--to", "ids", "-o", "samples.json").returncode == 3
    done = disco("export", "--to", "jsonl", "--json")
    assert json.loads(done.stdout)["k"] == 4


def test_score_and_info_take_logs(disco: Any) -> None:
    logs = sorted(FULL.glob("models__tiny-*/samples_loc_ragged_*"))
    done = disco("score", *logs, "--metric", "acc")
    assert done.returncode == 0, done.stderr
    done = disco("info", SUBSET / "models__tiny-b", "--json")
    assert done.returncode in (3, 4)  # a folder is a database
    log = next(LM_EVAL.glob("v0.4.13_extra/*/samples_loc_wino*"))
    done = disco("info", log, "--json")
    assert json.loads(done.stdout)["n_samples"] == 16


def test_predict_refuses_other_contents_under_the_same_ids(disco: Any, tmp_path: Path) -> None:
    logs = sorted(FULL.glob("models__tiny-*/samples_loc_mc4_*"))
    assert len(logs) >= 5
    assert disco("select", "--k", "40", *logs, "--metric", "acc").returncode == 0
    done = disco("build-db", *logs, "--metric", "acc")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in logs[0].read_text("utf-8").splitlines()]
    first, second = rows[3], rows[4]
    first["doc_id"], second["doc_id"] = second["doc_id"], first["doc_id"]
    path = tmp_path / "samples_loc_mc4_2026-01-01T00-00-00.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in sorted(rows, key=by_number)))
    done = disco("predict", path, "--metric", "acc")
    assert done.returncode == 4
    assert "another version of the benchmark?" in done.stderr


def by_number(row: dict[str, Any]) -> int:
    return int(row["doc_id"])
