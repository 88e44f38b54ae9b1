"""``caughtup history`` of tables on an S3 over HTTP, by the environment and by settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from caughtup.pipelines.delta.store import Store
from tests.support.pipelines.by_hand import GROUPS, records_of, write_batch
from tests.support.pipelines.delta import new_tables
from tests.support.pipelines.s3 import BUCKET, SECRET, options, s3_server
from tests.support.service import caughtup

pytestmark = pytest.mark.thorough
BATCHES = 2
QUESTIONS = (
    ("commits", "--since", "2020-01-01"),
    ("SELECT * FROM end_offsets ORDER BY log_offset",),
    ("SELECT count(*) AS rows FROM commits", "--at", "1"),
)


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("s3") / "log") as url:
        yield url


def test_it_answers_as_of_the_same_tables_in_a_folder(s3: str, tmp_path: Path) -> None:
    uri, folder = f"s3://{BUCKET}/history", tmp_path / "history"
    for root in (Store(uri, options(s3)), Store(str(folder))):
        for batch in range(BATCHES):
            write_batch(new_tables(root), batch, records_of(batch))
    for question in QUESTIONS:
        asking = ("history", *question, "--format", "json", "--tables")
        there = caughtup(*asking, uri, directory=tmp_path, environment=options(s3))
        here = caughtup(*asking, folder, directory=tmp_path)
        assert (there.code, here.code) == (0, 0), there.err + here.err
        assert there.lines == here.lines
        assert len(here.lines) in (1, BATCHES, len(GROUPS))
    about = caughtup(
        "history", directory=tmp_path, environment={**options(s3), "CAUGHTUP_HISTORY": uri}
    )
    (line,) = (one for one in about.out.splitlines() if one.startswith("commits "))
    assert line.split()[1] == str(BATCHES * len(GROUPS))
    (tmp_path / "secret").write_text(SECRET)
    settings = tmp_path / "s3.toml"
    settings.write_text(
        f's3_endpoint = "{s3}"\ns3_region = "us-east-1"\ns3_access_key = "AKIA"\n'
        f's3_secret_key_file = "{tmp_path}/secret"\n'
    )
    by = ("--tables", uri, "--config", settings)
    assert caughtup("history", *by, directory=tmp_path).out == about.out
    kept = caughtup(
        "pipeline", "compact", "--dry-run", *("--output", uri), *by[2:], directory=tmp_path
    )
    assert (kept.code, "commits" in kept.out) == (0, True), kept.err


def test_a_bucket_that_is_not_there_is_said_in_a_line_without_the_secret(
    s3: str, tmp_path: Path
) -> None:
    asking = ("history", "SELECT * FROM lag", "--tables", "s3://nobodys/history")
    ran = caughtup(*asking, directory=tmp_path, environment=options(s3))
    assert (ran.code, ran.out) == (1, "")
    (said,) = ran.err.splitlines()
    assert "s3://nobodys/history" in said
    assert SECRET not in said
