"""Stores of pyarrow's are read as folders are."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from caughtup.agents.checkpoints.reading import CheckpointLooks
from caughtup.agents.checkpoints.stores import ArrowStore, LocalStore, open_store
from caughtup.models.errors import CaughtupError
from caughtup.models.spark_queries import read_entry
from tests.support.checkpoints import Checkpoint

NOW_MS = 1_700_000_100_000


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A bucket that is a folder; the URIs by which it is opened."""
    opened: list[str] = []

    def from_uri(uri: str) -> tuple[fs.FileSystem, str]:
        opened.append(uri)
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "bucket/checkpoints/"

    (tmp_path / "bucket").mkdir()
    monkeypatch.setattr(fs, "FileSystem", type("FileSystem", (), {"from_uri": from_uri}))
    return opened


def test_a_bucket_is_read_as_a_folder_is(bucket: list[str], tmp_path: Path) -> None:
    for number in range(3):
        made = Checkpoint(tmp_path / f"bucket/checkpoints/q{number}")
        made.begin_at({"orders": {0: 1}})
        if number:
            made.batch(number, NOW_MS - 1_000, {"orders": {0: 10 * number}})
    (tmp_path / "bucket/checkpoints/q2/metadata").write_bytes(b"{")
    here = CheckpointLooks([str(tmp_path / "bucket/checkpoints")]).look({}, NOW_MS)
    there = CheckpointLooks(["s3a://bucket/checkpoints"]).look({}, NOW_MS)
    assert bucket == ["s3://bucket/checkpoints"]
    assert sorted(there.queries) == ["spark:q0", "spark:q1"]
    assert {group: look for group, (_, look) in here.queries.items()} == {
        group: look for group, (_, look) in there.queries.items()
    }
    assert there.queries["spark:q1"][0] == "s3a://bucket/checkpoints/q1"
    assert there.problems.keys() == {"s3a://bucket/checkpoints/q2"}


def test_a_bucket_that_is_not_there_is_a_problem(bucket: list[str], tmp_path: Path) -> None:
    found = CheckpointLooks(["s3://bucket/checkpoints"]).look({}, NOW_MS)
    assert {path: one.reason for path, one in found.problems.items()} == {
        "s3://bucket/checkpoints": "not_found"
    }
    assert bucket


def test_without_pyarrow_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def missing(name: str, *args: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError("No module named 'pyarrow'")
        return importing(name, *args)

    monkeypatch.setattr(builtins, "__import__", missing)
    found = CheckpointLooks(["s3://bucket/a", "/nowhere"]).look({}, NOW_MS)
    assert found.problems["s3://bucket/a"].reason == "no_pyarrow"
    assert "caughtup[spark]" in found.problems["s3://bucket/a"].message
    assert found.problems["/nowhere"].reason == "not_found"


@pytest.mark.parametrize("store", ["local", "arrow"])
def test_no_more_is_read_than_allowed(store: str, bucket: list[str], tmp_path: Path) -> None:
    file = tmp_path / "bucket/file"
    file.write_bytes(b"x" * 100)
    read = LocalStore().read if store == "local" else ArrowStore("s3://bucket").read
    assert read(str(file) if store == "local" else "bucket/file", 10) == b"x" * 11


def test_a_folder_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caughtup.agents.checkpoints.stores._MOST_ENTRIES", 3)
    for number in range(4):
        (tmp_path / str(number)).touch()
    with pytest.raises(CaughtupError, match="more than 3 files"):
        LocalStore().entries(str(tmp_path))


@pytest.mark.parametrize(
    "uri", ["/data/a b", "file:/data/a b/", "file:///data/a b", "file://host/data/a b"]
)
def test_paths_are_read_as_hadoop_reads_them(uri: str) -> None:
    store, path = open_store(read_entry(uri), {})
    assert isinstance(store, LocalStore)
    assert path == "/data/a b"


def test_an_s3_is_the_one_that_the_settings_name(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, str]] = []
    monkeypatch.setattr(fs, "S3FileSystem", lambda **arguments: given.append(arguments))
    variables = {
        "AWS_ENDPOINT_URL": "http://store:9000/",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "eu",
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "wJalr",
        "AWS_SESSION_TOKEN": "for a while",
    }
    store, path = open_store(read_entry("s3a://bucket/q/?region=us"), variables)
    assert (store.shown(path), path) == ("s3a://bucket/q", "bucket/q")
    assert given == [
        {
            "access_key": "AKIA",
            "secret_key": "wJalr",
            "session_token": "for a while",
            "region": "us",
            "scheme": "http",
            "endpoint_override": "store:9000",
        }
    ]


@pytest.mark.parametrize("variables", [None, {"AWS_REGION": "eu-central-1"}])
def test_an_s3s_uri_means_the_same_path_whoever_says_which_s3(
    variables: dict[str, str] | None,
) -> None:
    store = ArrowStore("s3a://lake/a%20team/dt=1/?region=eu-central-1", variables)
    assert store.root.rstrip("/") == "lake/a team/dt=1"
