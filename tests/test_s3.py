"""The whole pipeline with every file and artifact in an S3 bucket, served by moto on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("s3fs", reason="the extra s3 is not installed")
moto_server = pytest.importorskip("moto.server", reason="moto[server] is not installed")

M, N, C = 12, 60, 4


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, dict[str, str]]]:
    """Start a server with an empty bucket; return its URL and the environment to reach it."""
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    _, port = server.get_host_and_port()
    names = {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "NO_PROXY": "127.0.0.1",
    }
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    import boto3

    boto3.client("s3").create_bucket(Bucket="bench")
    yield "s3://bench", {**os.environ, **names}
    server.stop()


def disco(*arguments: object, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "disco_cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def test_the_pipeline_runs_in_a_bucket_as_it_does_on_disk(
    bucket: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    url, env = bucket
    import boto3

    client = boto3.client("s3")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, C, N)
    for m in range(M):
        path = tmp_path / f"m{m:02d}.npz"
        P = rng.dirichlet(np.ones(C) + 3 * np.eye(C)[0], N)
        P = np.stack([np.roll(row, label) for row, label in zip(P, labels, strict=True)])
        save = np.savez_compressed if m % 2 else np.savez
        save(path, predictions=P, labels=labels, sample_ids=[f"q{i}" for i in range(N)])
        client.upload_file(str(path), "bench", f"preds/{path.name}")
    outputs = []
    for place, preds, new in (
        (tmp_path / "run", sorted(tmp_path.glob("*.npz")), tmp_path / "m03.npz"),
        (f"{url}/run", [f"{url}/preds/*.npz"], f"{url}/preds/m03.npz"),
    ):
        found = []
        for command in (
            ["score", *preds],
            ["select", "--k", 10, "--scores", f"{place}/scores.parquet"],
            ["build-db", *preds],
            ["predict", new, "--json"],
        ):
            done = disco(*command, "-d", place, env=env)
            assert done.returncode == 0, done.stderr
            found.append(done.stdout.replace(str(place), "PLACE"))
        outputs.append(found)
    assert outputs[0][:3] == outputs[1][:3]
    first, second = (json.loads(found[3]) for found in outputs)
    assert first["estimate"] == second["estimate"]
    for name in ("scores.parquet", "selection.json"):
        stored = client.get_object(Bucket="bench", Key=f"run/{name}")["Body"].read()
        assert stored == (tmp_path / "run" / name).read_bytes()


def test_a_bucket_that_is_not_there_is_told_in_one_line(
    bucket: tuple[str, dict[str, str]],
) -> None:
    _, env = bucket
    done = disco("score", "s3://other/a.npz", env=env)
    assert done.returncode == 3
    assert done.stderr.startswith("error: s3://other/a.npz: ")
    assert len(done.stderr.splitlines()) == 1
