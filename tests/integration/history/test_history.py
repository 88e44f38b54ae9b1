"""The lag history of a real cluster, written by a real Spark."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.errors import CaughtupError
from caughtup.models.lag.partition_lag import partition_lag
from caughtup.models.offsets import EndOffsets
from caughtup.pipelines.history.decoding import log_ranges
from caughtup.pipelines.history.decoding.topic_columns import own_table
from caughtup.pipelines.history.stream import HistoryJob, HistoryOptions
from caughtup.pipelines.schema import bucket
from tests.integration.conftest import MakeTopic
from tests.support.pipelines.watched import Row, Watched

pytestmark = pytest.mark.xdist_group("spark")


def facts(rows: list[Row]) -> list[tuple[Any, ...]]:
    names = ("partition", "committed", "lag", "lag_committed_view", "source")
    return [tuple(row[name] for name in names) for row in rows]


@pytest.mark.parametrize(
    "offsets",
    [
        pytest.param(50_000, id="one task", marks=pytest.mark.thorough),
        pytest.param(1, id="several tasks"),
    ],
)
def test_the_table_says_what_the_models_say_of_the_same_records(
    watched: Watched, offsets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_ranges, "_OFFSETS_A_TASK", offsets)
    watched.produce(0, 30)
    watched.produce(1, 10)
    watched.commit(0, 4)
    assert watched.run() == [], "lag without end offsets"

    watched.publish_end_offsets()
    first = watched.run()
    assert facts(first) == [(0, 4, 26, 26, "end_offset")]

    watched.commit(0, 7)
    watched.commit(0, 9)
    watched.commit_in_transaction(0, 25, abort=True)
    watched.commit_in_transaction(1, 3, abort=False)
    watched.publish_garbage()
    watched.publish_end_offsets()
    rows = watched.run()

    assert rows[:1] == first, "what was written stays"
    assert 25 in [value.offset for _, value in watched.commits("read_uncommitted") if value]
    assert 25 not in [row["committed"] for row in rows]
    assert {(row["partition"], row["committed"]) for row in rows} == {
        (0, 4),
        (0, 7),
        (0, 9),
        (1, 3),
    }
    last: dict[int, Row] = {row["partition"]: row for row in rows}
    expected = {key.partition: value for key, value in watched.commits("read_committed")}
    assert sorted(expected) == sorted(last) == [0, 1]
    for partition, commit in expected.items():
        row, ends = last[partition], watched.ends[partition]
        assert commit is not None
        lag = partition_lag(commit.offset, ends, commit.commit_timestamp_ms)
        assert (row["committed"], row["commit_timestamp_ms"]) == (
            commit.offset,
            commit.commit_timestamp_ms,
        )
        assert (row["lag"], row["lag_committed_view"]) == (lag.lag, lag.lag_committed_view)
        assert row["has_commit"] == lag.has_commit
        assert row["as_of_ms"] == max(ends.as_of_ms, commit.commit_timestamp_ms)
        assert (
            EndOffsets(
                row["start_offset"], row["last_stable_offset"], row["end_offset"], ends.as_of_ms
            )
            == ends
        )
    # The aborted transaction's record and marker, then the committed one's.
    assert last[0]["end_offset"] == 32
    assert last[1]["end_offset"] == 12


@pytest.mark.thorough
def test_a_deleted_group_ends_with_a_row_without_a_commit(watched: Watched) -> None:
    watched.produce(0, 30)
    watched.publish_end_offsets()
    watched.commit(0, 12)
    assert facts(watched.run()) == [(0, 12, 18, 18, "commit")]
    watched.delete_group()
    watched.produce(0, 5)
    watched.publish_end_offsets()
    rows = watched.run()
    assert [row["has_commit"] for row in rows] == [True, False]
    assert (rows[-1]["committed"], rows[-1]["commit_timestamp"]) == (None, None)
    assert rows[-1]["lag"] == 30


@pytest.mark.thorough
def test_a_group_is_in_one_part_of_a_day_and_a_trigger_makes_one_file_of_it(
    watched: Watched,
) -> None:
    watched.produce(0, 30)
    watched.produce(1, 30)
    watched.publish_end_offsets()
    watched.commit(0, 1)
    watched.commit(1, 2)
    (day,) = {row["date"] for row in watched.run()}
    part = [("date", "=", str(day)), ("group_bucket", "=", str(bucket(watched.group)))]
    table = DeltaTable(f"{watched.options.output}/lag")
    assert len(table.file_uris(file_pruning_predicate=part)) == 1
    rows = table.to_pyarrow_table(filters=[("group", "=", watched.group)]).to_pylist()
    assert len(rows) == 2


def test_what_cannot_be_decoded_is_counted_and_shown(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.publish_garbage()
    watched.publish_garbage()
    watched.run()
    said = [
        one.getMessage()
        for one in caplog.records
        if one.name == "caughtup.pipelines.history.stream"
    ]
    (line,) = [line for line in said if not line.startswith("there is no topic")]
    assert line.startswith("records that cannot be decoded or are gone: 2, such as ")
    assert watched.end_offsets in line


def test_what_cannot_be_decoded_is_kept_whole(watched: Watched) -> None:
    watched.publish_end_offsets()
    watched.publish_garbage()
    watched.run()
    (row,) = watched.quarantined()
    assert (row["topic"], row["log_partition"]) == (watched.end_offsets, 0)
    assert (row["key"], row["value"]) == (b"garbage", b"{not json")
    assert row["log_offset"] == 2, "after the looks at two partitions"
    assert row["why"]
    assert row["until_offset"] is None


@pytest.mark.thorough
def test_what_is_gone_before_it_is_read_is_noted_with_its_range(
    watched: Watched, make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    policy = {"cleanup.policy": "compact,delete"}
    watched.end_offsets = make_topic("end-offsets", config=policy)
    watched.options = replace(watched.options, topics={"end_offsets": watched.end_offsets})
    watched.publish_end_offsets()
    watched.run()
    watched.publish_end_offsets()
    admin = AdminClient(watched.client)
    upto = Position(watched.end_offsets, 0, 3)
    admin.delete_records([upto])[Position(watched.end_offsets, 0)].result(30)
    watched.run()

    (row,) = watched.quarantined()
    assert (row["log_offset"], row["until_offset"]) == (2, 3)
    assert (row["key"], row["why"]) == (None, "deleted before it was read")
    assert f"such as {watched.end_offsets}-0 offset 2: deleted before it was read" in caplog.text
    read = watched.rows(own_table("end_offsets"), "log_offset")
    assert [one["log_offset"] for one in read] == [0, 1, 3]


@pytest.mark.thorough
def test_a_topic_that_is_made_anew_is_read_on_and_noted(
    watched: Watched, cluster: EmbeddedCluster
) -> None:
    for _ in range(3):
        watched.publish_end_offsets()
    watched.run()
    admin = AdminClient(watched.client)
    admin.delete_topics([watched.end_offsets])[watched.end_offsets].result(30)
    wait_until_gone(admin, watched.end_offsets)
    create_topics(cluster, {watched.end_offsets: 1}, {"cleanup.policy": "compact"})
    watched.publish_end_offsets()
    watched.run()
    watched.publish_end_offsets()
    watched.run()

    (row,) = watched.quarantined()
    assert (row["log_offset"], row["until_offset"]) == (0, 2)
    assert row["why"] == "the log ended at 6 and then at 2: the topic was recreated"
    read = watched.rows(own_table("end_offsets"), "as_of", "log_offset")
    assert [one["log_offset"] for one in read] == [0, 1, 2, 3, 4, 5, 2, 3]


def wait_until_gone(admin: AdminClient, topic: str) -> None:
    deadline = time.monotonic() + 60
    while topic in admin.list_topics(timeout=30).topics:
        assert time.monotonic() < deadline, f"{topic} is still there"
        time.sleep(0.2)


def test_a_topic_that_is_not_there_yet_is_said_and_not_created(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    topic = f"absent-{uuid.uuid4().hex[:8]}"
    watched.commit(0, 1)
    watched.options = replace(watched.options, topics={"end_offsets": topic})
    assert watched.run() == []
    assert f"there is no topic {topic} yet" in caplog.text
    assert topic not in AdminClient(watched.client).list_topics(timeout=30).topics


class Refused(NamedTuple):
    """Options that can't work, and what the error has to say."""

    change: Callable[[HistoryOptions, Path], HistoryOptions]
    code: str
    words: str


@pytest.mark.parametrize(
    "refused",
    [
        Refused(lambda o, file: replace(o, output=str(file / "x")), "output_unwritable", "/x"),
        Refused(lambda o, _: replace(o, output="nowhere://x/y"), "output_unwritable", "nowhere"),
        Refused(lambda o, file: replace(o, checkpoint=str(file)), "output_unwritable", "plain"),
        Refused(
            lambda o, _: replace(o, bootstrap_servers="127.0.0.1:1"),
            "kafka_unreachable",
            "no answer from 127.0.0.1:1: ",
        ),
        Refused(
            lambda o, _: replace(o, kafka={"auto.offset.reset": "latest"}),
            "bad_kafka_property",
            "auto.offset.reset",
        ),
        Refused(
            lambda o, _: replace(o, kafka={"security.protocol": "nonsense"}),
            "bad_kafka_property",
            "security.protocol",
        ),
    ],
    ids=lambda refused: f"{refused.code} {refused.words}",
)
def test_what_cannot_work_is_refused_in_one_line(
    watched: Watched, tmp_path: Path, refused: Refused
) -> None:
    file = tmp_path / "plain"
    file.write_text("a file, where a directory is needed")
    with pytest.raises(CaughtupError) as caught:
        HistoryJob(watched.spark, refused.change(watched.options, file))
    assert caught.value.code == refused.code
    assert refused.words in caught.value.message
    assert len(caught.value.message.splitlines()) == 1
    assert watched.spark.streams.active == []
