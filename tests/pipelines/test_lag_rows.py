"""Lag rows made by Spark, beside the same fold in plain Python with the models' own arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from caughtup.pipelines.events import COMMIT, END_OFFSET, Event
from caughtup.pipelines.lag_rows import LAST_COMMITS, LAST_ENDS, lag_rows, last_commits, last_ends
from caughtup.pipelines.table_writer import TableWriter
from caughtup.pipelines.tables import LAG
from tests.support.lag_fold import LagRow, PartitionState

COMMITS = (
    "group string, topic string, partition int, present boolean, committed bigint, "
    "commit_time_ms bigint, log_partition int, log_offset bigint"
)
ENDS = (
    "topic string, partition int, present boolean, start_offset bigint, last_stable_offset bigint, "
    "end_offset bigint, readable_end_offset bigint, as_of_ms bigint, log_offset bigint"
)
#: Offsets beyond what a float can hold.
FAR = 2**62 + 1
SCENARIOS = 400
SEED = 8


def commit_row(event: Event) -> tuple[Any, ...]:
    committed = event.committed if event.present else None
    where = (event.group, event.topic, event.partition)
    return (*where, event.present, committed, event.time_ms, event.log_partition, event.log_offset)


def look_row(event: Event) -> tuple[Any, ...]:
    offsets: tuple[int | None, ...] = (None,) * 4
    if event.present:
        offsets = (event.start_offset, event.last_stable_offset, event.end_offset)
        offsets += (event.readable_end_offset,)
    where = (event.topic, event.partition, event.present)
    return (*where, *offsets, event.time_ms, event.log_offset)


class History:
    """Rows of batches, with what is remembered from one to the next."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self.spark = spark
        self.writer = TableWriter(spark, directory)
        self.commits = spark.createDataFrame([], LAST_COMMITS)
        self.ends = spark.createDataFrame([], LAST_ENDS)

    def take(self, events: Sequence[Event]) -> list[tuple[Any, ...]]:
        commits = self._frame([commit_row(e) for e in events if e.kind == COMMIT], COMMITS)
        ends = self._frame([look_row(e) for e in events if e.kind == END_OFFSET], ENDS)
        left = last_commits(commits, self.commits)
        together = partial(self.writer.together, LAG)
        rows = lag_rows(commits, ends, self.commits, self.ends, left, together)
        found = rows.selectExpr(
            *("unix_millis(as_of)", "group", "topic", "partition", "committed", "has_commit"),
            *("unix_millis(commit_timestamp)", "end_offset", "last_stable_offset"),
            *("start_offset", "lag", "lag_committed_view", "source", "group_bucket"),
        ).collect()
        self.commits = self._kept(left, LAST_COMMITS)
        self.ends = self._kept(last_ends(ends, self.ends), LAST_ENDS)
        return [tuple(row) for row in found]

    def _frame(self, rows: list[tuple[Any, ...]], shape: str) -> DataFrame:
        return self.spark.createDataFrame(rows, shape)

    def _kept(self, frame: DataFrame, shape: Any) -> DataFrame:
        return self.spark.createDataFrame(frame.select(*shape.names).collect(), shape)


def folded(batches: Sequence[Sequence[Event]]) -> list[LagRow]:
    """Fold each group's events on each partition: groups know nothing of each other's clocks."""
    every = [event for batch in batches for event in batch]
    rows = []
    for group, topic, partition in sorted(
        {(e.group, e.topic, e.partition) for e in every if e.kind == COMMIT}
    ):
        state = PartitionState(topic, partition)
        for batch in batches:
            rows.extend(
                state.observe(
                    e
                    for e in batch
                    if (e.topic, e.partition) == (topic, partition) and e.group in (group, "")
                )
            )
    return rows


def scenario(random: Random, topic: str) -> list[Event]:
    """A partition's events: commits of two groups and looks, with clocks that go back at times."""
    base = random.choice((0, 0, FAR))
    events = []
    for kind in (COMMIT, END_OFFSET):
        time_ms, end = random.randrange(50), 0
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


@pytest.mark.timeout(600)
def test_the_rows_are_those_of_the_fold_however_the_records_are_cut(
    spark: SparkSession, tmp_path: Any
) -> None:
    random = Random(SEED)
    scenarios = [scenario(random, f"topic-{number}") for number in range(SCENARIOS)]
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

    history = History(spark, str(tmp_path))
    found = [row for batch in batches for row in history.take(batch)]

    expected = [tuple(row) for row in folded(batches)]
    assert len(expected) > SCENARIOS, "a scenario makes some rows"
    assert sorted(map(repr, found)) == sorted(map(repr, expected)), f"seed {SEED}"


def test_a_commit_and_a_look_at_the_same_time_count_the_look_first(
    spark: SparkSession, tmp_path: Any
) -> None:
    history = History(spark, str(tmp_path))
    look = Event(END_OFFSET, "orders", 0, 0, 0, 5, present=True, end_offset=9, last_stable_offset=9)
    commit = Event(COMMIT, "orders", 0, 0, 0, 5, "billing", present=True, committed=4)
    ((_, group, _, _, committed, *_, lag, _, source, _),) = history.take([commit, look])
    assert (group, committed, lag, source) == ("billing", 4, 5, COMMIT)
