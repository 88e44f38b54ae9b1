"""Checkpoints on an S3 over HTTP, by what the settings say of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyarrow import fs

from caughtup.agents.checkpoints.reading import CheckpointLooks
from caughtup.agents.configuration.s3_access import s3_variables
from caughtup.agents.settings import Settings
from tests.support.checkpoints import Checkpoint
from tests.support.pipelines.s3 import BUCKET, SECRET, s3_server

pytestmark = pytest.mark.thorough
NOW_MS = 1_700_000_100_000


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("s3") / "log") as url:
        yield url


@pytest.fixture
def folder(s3: str, tmp_path: Path) -> Path:
    """Checkpoints in a folder, and the same on the S3."""
    folder = tmp_path / "checkpoints"
    for number in range(2):
        made = Checkpoint(folder / f"q{number}")
        made.batch(number, NOW_MS, {"orders": {0: 10 * number + 1}})
    there = fs.S3FileSystem(
        access_key="AKIA",
        secret_key=SECRET,
        region="us-east-1",
        scheme="http",
        endpoint_override=s3.removeprefix("http://"),
    )
    fs.copy_files(
        str(folder),
        f"{BUCKET}/checkpoints",
        source_filesystem=fs.LocalFileSystem(),
        destination_filesystem=there,
    )
    return folder


def looks(uri: str, s3: str, secret: Path) -> CheckpointLooks:
    settings = Settings(
        s3_endpoint=s3, s3_region="us-east-1", s3_access_key="AKIA", s3_secret_key_file=secret
    )
    return CheckpointLooks([uri], partial(s3_variables, settings))


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_they_are_read_as_in_a_folder(
    s3: str, folder: Path, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    (folder / "secret").write_text(SECRET)
    uri = f"{scheme}://{BUCKET}/checkpoints"
    reading = looks(f"{uri}/?region=us-east-1", s3, folder / "secret")
    there = reading.look({}, NOW_MS)
    assert there.problems == {}
    here = CheckpointLooks([str(folder)]).look({}, NOW_MS)
    ends = {group: look.batches[-1].offsets for group, (_, look) in here.queries.items()}
    assert {group: look.batches[-1].offsets for group, (_, look) in there.queries.items()} == ends
    assert sorted(place for place, _ in there.queries.values()) == [f"{uri}/q0", f"{uri}/q1"]

    (folder / "secret").unlink()
    gone = reading.look({}, NOW_MS)
    assert {place: one.reason for place, one in gone.problems.items()} == {uri: "unreadable"}
    (folder / "secret").write_text("rotated")
    assert sorted(reading.look({}, NOW_MS).queries) == ["spark:q0", "spark:q1"]


def test_a_store_that_does_not_answer_and_a_bucket_that_is_not_there_are_problems(
    s3: str, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(SECRET)
    for uri, address in ((f"s3://{BUCKET}/x", "http://127.0.0.1:1"), ("s3://nobodys/x", s3)):
        (problem,) = looks(uri, address, tmp_path / "secret").look({}, NOW_MS).problems.values()
        assert problem.reason in ("unreadable", "not_found")
        assert SECRET not in problem.message
        assert "\n" not in problem.message
