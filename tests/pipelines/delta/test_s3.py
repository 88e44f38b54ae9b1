"""The tables on an S3 over HTTP, which fails before it takes a commit, and after."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.store import Store, store_of
from caughtup.pipelines.delta.upkeep import UpkeepOptions, keep_up
from caughtup.pipelines.history.tables import LAYOUTS
from tests.support.pipelines.by_hand import GROUPS, records_of, write_batch
from tests.support.pipelines.delta import counted, new_tables, rows_of, unseen
from tests.support.pipelines.s3 import BUCKET, SECRET, Between, options, s3_server
from tests.support.pipelines.s3 import between as s3_between

pytestmark = pytest.mark.heavy

BATCHES = 3


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("s3") / "log") as url:
        yield url


@pytest.fixture
def between(s3: str, tmp_path: Path) -> Iterator[Between]:
    with s3_between(s3, tmp_path / "between") as found:
        yield found


@pytest.fixture
def root(between: Between) -> Store:
    # As Spark has it.
    hadoop = {
        "fs.s3a.access.key": "AKIA",
        "fs.s3a.secret.key": SECRET,
        "fs.s3a.endpoint": between.url,
        "fs.s3a.endpoint.region": "us-east-1",
    }
    place = store_of(f"s3a://{BUCKET}/{uuid.uuid4().hex}", hadoop.get, {})
    # Tests don't wait for a store as long as a job does.
    return Store(place.uri, {**place.options, "retry_timeout": "3s", "max_retries": "2"})


def versions(root: Store, s3: str, table: str, *key: str) -> None:
    """See that each version has whole batches, each row once; read past what fails."""
    last = new_tables(root)[table].version()
    for version in range(last + 1):
        rows = counted(rows_of(root.uri, table, version, options(s3)), *key)
        assert max(rows.values(), default=1) == 1
        assert table != "commits" or rows.total() % len(GROUPS) == 0


def test_tables_are_written_kept_up_and_read_there(root: Store, s3: str) -> None:
    names = [layout.name for layout in LAYOUTS]
    tables = new_tables(root)
    for batch in range(BATCHES):
        write_batch(tables, batch, records_of(batch))
    found = keep_up(root, names, UpkeepOptions(date(2026, 11, 23)), unseen)
    assert found.problems == []
    assert sum(table.files_before for table in found.tables) > 0
    write_batch(tables, BATCHES, records_of(BATCHES))
    rows = rows_of(root.uri, "commits", None, options(s3))
    assert len(rows) == (BATCHES + 1) * len(GROUPS)
    versions(root, s3, "commits", "log_offset")
    assert len(rows_of(root.uri, "end_offsets", None, options(s3))) == BATCHES + 1


def ended(root: Store, batch: int) -> list[str]:
    """Write a batch, again each time that it fails, as a job that is started again does."""
    said: list[str] = []
    while True:
        try:
            write_batch(new_tables(root), batch, records_of(batch))
        except CaughtupError as error:
            said.append(error.message)
            if len(said) > 20:
                raise
        else:
            return said


@pytest.mark.thorough
@pytest.mark.parametrize("fault", ["lost", "503"])
def test_a_store_that_fails_after_it_took_each_commit_has_each_row_once(
    root: Store, between: Between, s3: str, fault: str
) -> None:
    between.fail("/_delta_log/", fault, once=True)
    new_tables(root)
    said = [message for batch in range(BATCHES) for message in ended(root, batch)]
    assert between.stop_failing() >= 3 * BATCHES
    assert not any("\n" in message or SECRET in message for message in said)
    rows = rows_of(root.uri, "commits", None, options(s3))
    assert len(rows) == BATCHES * len(GROUPS)
    for table, key in (("commits", "log_offset"), ("end_offsets", "log_offset")):
        versions(root, s3, table, key)


@pytest.mark.thorough
def test_a_store_that_is_away_is_said_in_one_line_and_nothing_is_lost(
    root: Store, between: Between, s3: str
) -> None:
    tables = new_tables(root)
    write_batch(tables, 0, records_of(0))
    between.fail("/commits/_delta_log/", "no 503")
    with pytest.raises(CaughtupError, match=r"can't write .*/commits: ") as caught:
        write_batch(tables, 1, records_of(1))
    assert "\n" not in caught.value.message
    assert SECRET not in caught.value.message
    assert between.stop_failing() > 0
    write_batch(new_tables(root), 1, records_of(1))
    assert len(rows_of(root.uri, "commits", None, options(s3))) == 2 * len(GROUPS)
