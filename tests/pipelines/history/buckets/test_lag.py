"""Lag as whole columns, beside the same fold in plain Python with the models' own arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caughtup.pipelines.history.buckets import lag_columns
from caughtup.pipelines.history.buckets.lag import STATE, state_folder
from caughtup.pipelines.history.buckets.tables import KNOWN_COMMITS, KNOWN_ENDS, bucket_parts
from caughtup.pipelines.history.decoding.batches import (
    COMMITS,
    SAMPLES,
    by_bucket,
    pack,
    with_names,
)
from caughtup.pipelines.history.decoding.commit_columns import COMMIT_COLUMNS
from caughtup.pipelines.schema import BUCKETS
from tests.support.pipelines.lag_fold import LagRow, PartitionState
from tests.support.pipelines.partition_events import COMMIT, END_OFFSET, Event
from tests.support.pipelines.parts import as_file

ENDS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("present", pa.bool_()),
        ("start_offset", pa.int64()),
        ("last_stable_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("readable_end_offset", pa.int64()),
        ("as_of_ms", pa.int64()),
        ("log_offset", pa.int64()),
    ]
)
#: Offsets beyond what a float can hold.
FAR = 2**62 + 1
#: A time beyond which no calendar goes, nearly.
LATE_MS = 253_402_000_000_000
SCENARIOS, FEW = 2_000, 60
SEED = 8


def commit_row(event: Event) -> dict[str, Any]:
    return {
        "group": event.group,
        "topic": event.topic,
        "partition": event.partition,
        "present": event.present,
        "committed": event.committed if event.present else None,
        "commit_time_ms": event.time_ms,
        "log_partition": event.log_partition,
        "log_offset": event.log_offset,
        "record_time_ms": event.time_ms,
    }


def end_offset_row(event: Event) -> dict[str, Any]:
    row = {name: getattr(event, name) if event.present else None for name in ENDS.names[3:7]}
    row |= {name: getattr(event, name) for name in ("topic", "partition", "present", "log_offset")}
    return {**row, "as_of_ms": event.time_ms}


class HistoryJob:
    """Rows of batches, with what is remembered from one to the next, bucket by bucket."""

    def __init__(self) -> None:
        self.commits: list[dict[str, list[bytes]]] = [{} for _ in range(BUCKETS)]
        self.ends: dict[str, list[bytes]] = {}

    def take(self, events: Sequence[Event]) -> list[tuple[Any, ...]]:
        packs: list[dict[str, list[bytes]]] = [
            {**self.commits[bucket], **self.ends} for bucket in range(BUCKETS)
        ]
        rows = [commit_row(event) for event in events if event.kind == COMMIT]
        commits = pa.RecordBatch.from_pylist(rows, schema=COMMIT_COLUMNS)
        for bucket, own in by_bucket(commits, commits.column("group"), BUCKETS):
            packs[bucket][COMMITS] = [pack([with_names(own)])]
        rows = [end_offset_row(event) for event in events if event.kind == END_OFFSET]
        if rows:
            samples = with_names(pa.RecordBatch.from_pylist(rows, schema=ENDS))
            for bucket in range(BUCKETS):
                packs[bucket][SAMPLES] = [pack([samples])]
            self.ends = {KNOWN_ENDS: []}
        return [row for bucket in range(BUCKETS) for row in self._take(bucket, packs[bucket])]

    def _take(self, bucket: int, packs: dict[str, list[bytes]]) -> list[tuple[Any, ...]]:
        found = []
        for part in bucket_parts(bucket, packs, BUCKETS):
            if part[:2] == (STATE, state_folder("commits", bucket, BUCKETS)):
                self.commits[bucket] = {KNOWN_COMMITS: [as_file(part.rows)]}
            elif part[:2] == (STATE, state_folder("ends", bucket, BUCKETS)):
                self.ends[KNOWN_ENDS].append(as_file(part.rows))
            elif part.table == "lag":
                assert part.folder.endswith(f"/group_bucket={bucket}")
                rows = pq.read_table(pa.BufferReader(as_file(part.rows)))
                found += lag_rows(rows, bucket)
        return found


def lag_rows(table: pa.Table, bucket: int) -> list[tuple[Any, ...]]:
    rows = []
    for name in ("as_of", "commit_timestamp"):
        times = table.column(name).cast(pa.int64()).to_pylist()
        ms = pa.array([None if time is None else time // 1000 for time in times], pa.int64())
        table = table.set_column(table.column_names.index(name), name, ms)
    rows = zip(*(column.to_pylist() for column in table), strict=True)
    return [(*row, bucket) for row in rows]


def folded(batches: Sequence[Sequence[Event]]) -> list[LagRow]:
    """Fold each group's events on each partition: groups know nothing of each other's clocks."""
    parts: list[dict[str, list[Event]]] = [{} for _ in batches]
    for batch, by_topic in zip(batches, parts, strict=True):
        for event in batch:
            by_topic.setdefault(event.topic, []).append(event)
    rows = []
    for group, topic, partition in sorted(
        {(e.group, e.topic, e.partition) for batch in batches for e in batch if e.kind == COMMIT}
    ):
        state = PartitionState(topic, partition)
        for by_topic in parts:
            rows.extend(
                state.observe(
                    event
                    for event in by_topic.get(topic, ())
                    if event.partition == partition and event.group in (group, "")
                )
            )
    return rows


def scenario(random: Random, topic: str) -> list[Event]:
    """A partition's events: commits of two groups and end offsets, with clocks that go back at times."""
    base = random.choice((0, 0, FAR))
    events = []
    for kind in (COMMIT, END_OFFSET):
        time_ms, end = random.choice((0, 0, 0, LATE_MS)) + random.randrange(50), 0
        for log_offset in range(random.randrange(12)):
            time_ms = max(0, time_ms + random.choice((0, 1, 5, 40, 20_000, -30)))
            present = random.random() < 0.85
            if kind == COMMIT:
                what: dict[str, Any] = {"group": random.choice("ab")}
                what["committed"] = base + random.randrange(60) if present else 0
            elif present:
                end = max(0, end + random.choice((0, 0, 1, 10, -5)))
                stable, start = random.randint(0, end), random.randint(0, end)
                readable = random.choice((None, random.randint(0, stable)))
                what = {"end_offset": base + end, "last_stable_offset": base + stable}
                what |= {"start_offset": base + start}
                what |= {"readable_end_offset": None if readable is None else base + readable}
            else:
                what = {}
            events.append(Event(kind, topic, 3, 0, log_offset, time_ms, present=present, **what))
    return events


def cut(random: Random, scenarios: Sequence[Sequence[Event]]) -> list[list[Event]]:
    """Cut each log into three batches, and shuffle those."""
    batches: list[list[Event]] = [[], [], []]
    for events in scenarios:
        for kind in (COMMIT, END_OFFSET):
            log = [event for event in events if event.kind == kind]
            cuts = sorted(random.randint(0, len(log)) for _ in range(2))
            for batch, part in zip(
                batches, (log[: cuts[0]], log[cuts[0] : cuts[1]], log[cuts[1] :]), strict=True
            ):
                batch.extend(part)
    for batch in batches:
        random.shuffle(batch)
    return batches


def rows_of(batches: Sequence[Sequence[Event]]) -> list[tuple[Any, ...]]:
    """Return the batches' rows by group, topic and partition, and as they came."""
    history = HistoryJob()
    return sorted((row for batch in batches for row in history.take(batch)), key=itemgetter(1, 2))


@pytest.mark.parametrize("widest", [1 << 62, 0], ids=["as it is", "times beyond any number"])
def test_the_rows_are_those_of_the_fold_however_the_records_are_cut(
    widest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag_columns, "_WIDEST", widest)
    random = Random(SEED)
    scenarios = [scenario(random, f"topic-{number}") for number in range(SCENARIOS)]
    batches = cut(random, scenarios)
    expected = [tuple(row) for row in folded(batches)]
    assert len(expected) > SCENARIOS, "a scenario makes some rows"
    assert rows_of(batches) == expected, f"seed {SEED}"


@pytest.mark.heavy
def test_few_records_make_the_same_rows_as_among_many() -> None:
    random = Random(SEED)
    for number in range(FEW):
        batches = cut(random, [scenario(random, "orders")])
        expected = [tuple(row) for row in folded(batches)]
        assert rows_of(batches) == expected, f"seed {SEED}, scenario {number}"


def test_of_a_commit_and_end_offsets_of_one_time_the_end_offsets_count_first() -> None:
    history = HistoryJob()
    sample = Event(
        END_OFFSET, "orders", 0, 0, 0, 5, present=True, end_offset=9, last_stable_offset=9
    )
    commit = Event(COMMIT, "orders", 0, 0, 0, 5, "billing", present=True, committed=4)
    ((_, group, _, _, committed, *_, lag, _, source, _),) = history.take([commit, sample])
    assert (group, committed, lag, source) == ("billing", 4, 5, COMMIT)


def test_times_from_first_to_last_of_many_groups_fit() -> None:
    """Key and time as one number would overflow."""
    groups = [f"group-{number}" for number in range(200_000)]
    sample = Event(END_OFFSET, "orders", 0, 0, 0, LATE_MS, present=True, end_offset=9)
    commits = [
        Event(COMMIT, "orders", 0, 0, at, 5, group, present=True, committed=4)
        for at, group in enumerate(groups)
    ]
    found = HistoryJob().take([*commits, sample])
    assert sorted(row[1] for row in found) == sorted(groups)


def test_end_offsets_of_what_several_groups_committed_long_ago_make_a_row_for_each() -> None:
    history = HistoryJob()
    groups = [f"group-{number}" for number in range(40)]
    commits = [
        Event(COMMIT, "orders", 0, 0, at, 5, group, present=True, committed=at)
        for at, group in enumerate(groups)
    ]
    assert history.take(commits) == []
    sample = Event(END_OFFSET, "orders", 0, 0, 0, LATE_MS, present=True, end_offset=99)
    found = history.take([sample])
    assert sorted((row[4], row[1]) for row in found) == list(enumerate(groups))
