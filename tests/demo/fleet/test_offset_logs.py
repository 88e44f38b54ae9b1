"""Generated logs of ``__consumer_offsets``: each of its kind, and every record readable."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from caughtup.demo.fleet.offset_commits import RawRecord
from caughtup.demo.fleet.offset_logs import LOGS, GroupOffset, Shape, records
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.polls.batch import decode_batch
from caughtup.models.wire.consumer_offsets import OffsetKey, decode_key
from caughtup.models.wire.record_keys import RecordType

NOW_MS = 1_790_000_000_000


def of(kind: str, shape: Shape) -> list[RawRecord]:
    made = list(records(kind, shape, 50, NOW_MS))
    return [record for record in made if isinstance(record, RawRecord)]


@pytest.mark.parametrize("kind", LOGS)
def test_every_record_can_be_read_and_stands_where_its_group_is_kept(kind: str) -> None:
    made = of(kind, Shape(4_000, 20, 100))
    batch = decode_batch([(record.key, record.value) for record in made])
    assert not batch.errors
    assert batch.records == {RecordType.OFFSET_COMMIT: 4_000, RecordType.GROUP_METADATA: 20}
    assert len(batch.groups) == 20
    homes = {record.key: record.partition for record in made[20:]}
    for raw, home in homes.items():
        assert raw is not None
        key = decode_key(raw)
        assert isinstance(key, OffsetKey)
        assert home == coordinator_partition(key.group, 50)


def test_values_are_of_all_versions_with_tombstones_among_them() -> None:
    batch = decode_batch([(r.key, r.value) for r in of("compacted", Shape(4_000, 40, 100))])
    versions = Counter(
        None if value is None else value[1] for value in batch.commits.records.values()
    )
    assert versions[4] > versions[3] > versions[1] > versions[None] > 0
    metadata = {commit.metadata for commit in batch.commits.by_key().values() if commit}
    assert len(metadata) == 2
    batch = decode_batch([(r.key, r.value) for r in of("compacted", Shape(400, 4, 100, 3))])
    assert {value and value[1] for value in batch.commits.records.values()} == {3}


def test_of_a_percentage_of_groups_the_commits_are_in_transactions() -> None:
    shape = Shape(4_000, 40, 100, transactional=25)
    made = list(records("interleaved", shape, 50, NOW_MS))
    sent = Counter(
        (record.group, record.in_transaction) for record in made if isinstance(record, GroupOffset)
    )
    assert len(sent) == 40
    assert set(sent.values()) == {100}
    assert sum(in_transaction for _, in_transaction in sent) == 10
    plain = decode_batch([(r.key, r.value) for r in made if isinstance(r, RawRecord)])
    assert plain.records == {RecordType.GROUP_METADATA: 40}


def test_a_compacted_log_has_each_key_once_and_the_others_again_and_again() -> None:
    shape = Shape(4_000, 10, 100)
    keys = {kind: [record.key for record in of(kind, shape)[10:]] for kind in LOGS}
    for kind in ("compacted", "scattered"):
        assert len(set(keys[kind])) == 1_000
        once = [record.key for record in of(kind, Shape(1_000, 10, 100))[10:]]
        assert Counter(Counter(once).values()) == {1: 1_000}
    assert Counter(Counter(keys["interleaved"]).values()) == {4: 1_000}

    def neighbours(kind: str) -> int:
        """Count the records whose group is that of the record before."""
        return sum((a or b"")[:-4] == (b or b"")[:-4] for a, b in pairwise(keys[kind]))

    assert neighbours("runs") > 3_900
    assert neighbours("compacted") > 3_500
    assert neighbours("scattered") < 1_000
    assert neighbours("interleaved") < 1_000


def test_the_same_records_come_each_time() -> None:
    shape = Shape(500, 5, 100)
    assert of("compacted", shape) == of("compacted", shape)
