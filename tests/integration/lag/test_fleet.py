"""A fleet that a broker wrote, of members that speak the group protocol, and one that we encoded.

Times, member ids, topic ids and who leads are their writers' own; all else is the same.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from click.testing import CliRunner

from caughtup.agents.main import main
from caughtup.agents.topics.reports import end_offsets
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.fleet.offset_commits import RawRecord, make_offsets_topic, write_records
from caughtup.demo.fleet.protocol import play_fleet
from caughtup.demo.fleet.raw_records import read_back
from caughtup.demo.fleet.records import fleet_records, write_end_offsets
from caughtup.demo.fleet.timeline import FleetSettings, fleet_events, fleet_topics, log_end
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.batch import decode_batch
from caughtup.models.records.topics import END_OFFSETS, with_prefix
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.group_metadata import (
    GroupMember,
    GroupMetadata,
    decode_assignment,
    decode_subscription,
)
from caughtup.models.wire.user_data import decode_assignment_info, decode_subscription_info
from tests.integration.conftest import MakeCluster

pytestmark = pytest.mark.thorough

SETTINGS = FleetSettings(
    groups=10, partitions=6, interval_ms=300_000, span_ms=1_800_000, deleted_percent=30, makes=10
)
OFFSETS_PARTITIONS = 4


def histories(records: Iterable[RawRecord]) -> dict[str, list[Any]]:
    """Return each group's history in the order of its log: generations, commits, tombstones."""
    found: dict[str, list[Any]] = defaultdict(list)
    for record in records:
        batch = decode_batch([(record.key, record.value)])
        assert not batch.errors, batch.samples
        assert not batch.skipped
        for key, commit in batch.commits.by_key().items():
            place = key.topic, key.partition
            decoded = commit and (commit.offset, commit.leader_epoch, commit.metadata)
            assert commit is None or commit.topic_id is not None
            history = found[key.group]
            # Members commit side by side, and a hash map gives the commits of a deleted group.
            if not history or not isinstance(history[-1], dict) or place in history[-1]:
                history.append({})
            history[-1][place] = decoded
        for group, metadata in batch.groups.items():
            found[group].append(metadata and generation(metadata))
    return found


def generation(metadata: GroupMetadata) -> tuple[Any, ...]:
    members = sorted(map(member_said, metadata.members), key=lambda member: member["client_id"])
    assert (metadata.leader is None) == (not members)
    leads = metadata.leader is None or metadata.leader in {m.member_id for m in metadata.members}
    return metadata.generation, metadata.protocol_type, metadata.protocol, leads, members


def member_said(member: GroupMember) -> dict[str, Any]:
    subscription = decode_subscription(member.subscription)
    assignment = decode_assignment(member.assignment)
    said, given = subscription.user_data, assignment.user_data
    decoded = None
    if given is not None:
        info = decode_assignment_info(given)
        decoded = (info.active, info.standby, info.next_rebalance_ms)
    return {
        "client_id": member.client_id,
        "host": member.client_host,
        "timeouts": (member.rebalance_timeout_ms, member.session_timeout_ms),
        "instance": member.group_instance_id,
        "subscription": subscription,
        "info": said and decode_subscription_info(said),
        "partitions": assignment.partitions,
        "tasks": decoded,
    }


def test_a_broker_and_our_encoders_write_the_same_fleet(make_cluster: MakeCluster) -> None:
    properties = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
    encoded = list(chain.from_iterable(fleet_records(fleet_events(SETTINGS), OFFSETS_PARTITIONS)))

    cluster = make_cluster(broker_properties=properties)
    create_topics(cluster, fleet_topics(SETTINGS))
    played: list[int] = []
    play_fleet(cluster, fleet_events(SETTINGS), played.append)
    by_broker = list(chain.from_iterable(read_back(cluster)))

    expected = histories(encoded)
    assert histories(by_broker) == expected
    assert len(by_broker) == len(encoded)
    assert {r.key: r.partition for r in by_broker} == {r.key: r.partition for r in encoded}
    assert sum(played) == sum(
        len(part) for one in expected.values() for part in one if isinstance(part, dict)
    ) - sum(SETTINGS.partitions for one in expected.values() if one[-1] is None)
    assert any(one[-1] is None for one in expected.values()), "no group was deleted"


def test_encoded_records_come_back_from_a_broker_as_they_were(make_cluster: MakeCluster) -> None:
    properties = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
    encoded = list(chain.from_iterable(fleet_records(fleet_events(SETTINGS), OFFSETS_PARTITIONS)))
    cluster = make_cluster(broker_properties=properties)
    make_offsets_topic(cluster)
    write_records(cluster, encoded)
    back = list(chain.from_iterable(read_back(cluster)))
    assert sorted(back, key=lambda record: record[:2]) == sorted(encoded, key=lambda r: r[:2])


@pytest.mark.thorough
def test_end_offsets_are_what_the_service_reads(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster()
    write_end_offsets(cluster, SETTINGS, 600_000)
    state = ClusterState("generated", {})
    records = list(chain.from_iterable(read_back(cluster, with_prefix(END_OFFSETS))))
    assert len(records) == SETTINGS.partitions * 3
    for record in records:
        end_offsets.apply_record(state, record.key, record.value)
    for topic, count in fleet_topics(SETTINGS).items():
        for number in range(count):
            history = state.ends.history(TopicPartition(topic, number))
            assert history is not None
            assert history.latest.end_offset == log_end(SETTINGS, topic, number, SETTINGS.span_ms)
            assert history.latest.as_of_ms == SETTINGS.start_ms + SETTINGS.span_ms


def test_a_coordinator_that_refuses_is_named_in_one_line(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()  # without the topics that the fleet commits
    with pytest.raises(CaughtupError, match=r"^group_failed: OffsetCommit of .* with error 3$"):
        play_fleet(cluster, fleet_events(SETTINGS))


@pytest.mark.thorough
def test_the_command_keeps_what_the_broker_wrote(tmp_path: Path) -> None:
    output = tmp_path / "generated"
    size = ["--groups", "4", "--partitions", "3", "--minutes", "20", "--deleted", "50"]
    arguments = ["bench", "fleet", *size, "--by", "protocol", "--output", str(output)]
    result = CliRunner().invoke(main, [*arguments, "--format", "json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    table = pyarrow.parquet.read_table(output)
    assert figures["records"] == table.num_rows > 0
    assert (figures["by"], figures["errors"], figures["others"]) == ("protocol", 0, 0)
    assert set(table["topic"].to_pylist()) == {"__consumer_offsets"}
