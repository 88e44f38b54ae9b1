"""What a group's record says: its kind, its members, and a Streams application's tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.groups import generation as generation_module
from caughtup.models.groups.generation import (
    StreamsGeneration,
    decode_assignments,
    group_type,
    read_streams_generation,
)
from caughtup.models.groups.membership import ClassicGroup, classic_membership, read_classic_groups
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.polls.batch import Record
from caughtup.models.wire.group_metadata import (
    ConsumerAssignment,
    GroupMetadata,
    decode_assignment,
    decode_group_metadata,
)
from tests.support.groups.records import GROUP, START_MS, consumer_generation
from tests.support.groups.streams import HANDING_OVER, RUNNING, WARMING, Member, generation, process

JOINED = {"left": 0, "right": 0, "clicks": 1}


def metadata(record: Record) -> GroupMetadata:
    assert record[1] is not None
    return decode_group_metadata(record[1])


def streams(
    *members: Member, sources: dict[str, int] | None = None, known: dict[str, int] | None = None
) -> StreamsGeneration:
    record = generation(3, *members, sources=sources)
    found = read_streams_generation(GROUP, metadata(record), known or {})
    assert found is not None
    return found


def tasks(*names: str) -> set[TaskId]:
    return {TaskId.parse(name) for name in names}


def test_groups_are_told_apart_by_their_protocols() -> None:
    plain = GroupMetadata("consumer", 1, "range", None, 0, ())
    assert group_type(plain) == "classic"
    assert group_type(replace(plain, protocol="stream")) == "streams"
    assert group_type(replace(plain, protocol_type="connect", protocol="sessioned")) == "connect"
    assert group_type(replace(plain, protocol_type="connect", protocol="stream")) == "connect"
    assert group_type(replace(plain, protocol=None)) == "classic"


@pytest.mark.parametrize(
    "record", [consumer_generation(1, {"c": ()}), generation(1), consumer_generation(1, {})]
)
def test_other_groups_and_empty_ones_have_no_streams_generation(record: Record) -> None:
    assert read_streams_generation(GROUP, metadata(record), {}) is None


@pytest.mark.parametrize("version", range(7, 12))
def test_every_version_of_the_members_user_data_is_read(version: int) -> None:
    record = generation(3, *HANDING_OVER, version=version)
    found = read_streams_generation(GROUP, metadata(record), {})
    assert found is not None
    assert (found.generation, found.as_of_ms, found.skipped) == (3, START_MS, ())
    assert found.leader == "a-StreamThread-1-consumer"
    a, b = found.clients.values()
    assert (a.name, a.capacity, a.active(), a.standby()) == ("a", 1, tasks("0_0"), set())
    assert (b.name, b.active(), b.standby()) == ("b", set(), tasks("0_1"))
    assert b.offset_sums == {TaskId(0, 1): 45_000}
    assert found.source_topics == {"orders-in": 0}


def test_clients_stand_in_the_order_of_their_process_ids() -> None:
    found = streams(Member("z", 1), Member("a", (1 << 128) - 1), Member("m", 2))
    assert list(found.clients) == [process((1 << 128) - 1), process(1), process(2)]


def test_threads_of_a_process_are_one_client_in_the_order_of_their_ids() -> None:
    found = streams(
        Member("a", 1, sums={"0_1": 5}, active=("0_1",), thread=2),
        Member("a", 1, sums={"0_0": 7}, active=("0_0",), standby=("0_2",), thread=1),
    )
    (client,) = found.clients.values()
    assert client.capacity == 2
    assert [member.member_id for member in client.members] == [
        "a-StreamThread-1-consumer",
        "a-StreamThread-2-consumer",
    ]
    assert client.active() == tasks("0_0", "0_1")
    assert client.standby() == tasks("0_2")
    assert client.offset_sums == {TaskId(0, 0): 7, TaskId(0, 1): 5}
    assert list(found.members()) == list(client.members)


def test_a_task_of_several_source_topics_stands_for_each_of_its_partitions() -> None:
    found = streams(Member("a", 1, active=("1_0", "0_1", "0_0")), sources=JOINED)
    assert found.source_topics == JOINED
    (client,) = found.clients.values()
    assert client.active() == tasks("0_0", "0_1", "1_0")
    assert found.sources(TaskId(0, 1)) == [TopicPartition("left", 1), TopicPartition("right", 1)]
    assert found.sources(TaskId(9, 0)) == []


def test_source_topics_are_learned_from_standbys_too() -> None:
    assert streams(Member("a", 1, standby=("0_0",)), sources=JOINED).source_topics == {
        "left": 0,
        "right": 0,
    }


def test_a_topic_withheld_altogether_is_known_from_earlier_generations() -> None:
    waiting = Member("a", 1, owned=("1_0",), active=("0_0",))
    assert streams(waiting, sources=JOINED).all_tasks() == tasks("0_0")
    found = streams(waiting, sources=JOINED, known={"clicks": 1, "gone": 4})
    assert found.all_tasks() == tasks("0_0", "1_0")
    assert found.source_topics == JOINED | {"gone": 4}


def test_what_this_generation_says_of_a_topic_wins_over_earlier_ones() -> None:
    assert streams(Member("a", 1, active=("0_0",)), known={"orders-in": 5}).source_topics == {
        "orders-in": 0
    }


def test_tasks_held_back_are_among_all_tasks() -> None:
    assert streams(*HANDING_OVER).all_tasks() == tasks("0_0", "0_1")


def test_what_a_client_owned_or_said_it_ran_is_its_previous_active() -> None:
    found = streams(
        Member("a", 1, ("0_0",), {"0_0": 3, "0_1": RUNNING, "0_2": 9}, ("0_0", "0_1")),
    )
    (client,) = found.clients.values()
    assert found.previous_active(client) == tasks("0_0", "0_1")


def test_the_next_rebalance_is_the_earliest_and_names_who_carries_it() -> None:
    assert streams(Member("a", 1), Member("b", 2)).next_rebalance() is None
    later, sooner = START_MS + 900, START_MS + 800
    found = streams(
        Member("a", 1, probe_at_ms=later), Member("b", 2), Member("c", 3, probe_at_ms=sooner)
    )
    due = found.next_rebalance()
    assert due is not None
    assert (due[0], due[1].client_id) == (sooner, "c-StreamThread-1-consumer")


def test_a_rebalance_that_is_due_at_once_is_due_since_the_generation_began() -> None:
    at_once = streams(Member("a", 1, probe_at_ms=START_MS + 900), Member("b", 2, probe_at_ms=0))
    (carrier,) = at_once.clients[process(2)].members
    assert at_once.next_rebalance() == (START_MS, carrier)


@pytest.mark.parametrize("garbage", [b"", b"\x00", bytes(4), b"\x00\x00\x00\x63\x00\x00\x00\x63"])
def test_a_member_with_unreadable_user_data_is_left_out_and_named(garbage: bytes) -> None:
    found = streams(HANDING_OVER[0], Member("b", 2, user_data=garbage))
    assert list(found.clients) == [process(1)]
    (skipped,) = found.skipped
    assert skipped.startswith("b-StreamThread-1-consumer: ")


def test_a_member_without_streams_user_data_is_left_out_and_named() -> None:
    """A plain consumer can say that its protocol is called ``stream``."""
    record = consumer_generation(1, {"fake": ()}, protocol="stream")
    found = read_streams_generation(GROUP, metadata(record), {})
    assert found is not None
    assert found.clients == {}
    assert found.skipped == ("fake: no_user_data: the subscription has no Kafka Streams user data",)
    assert found.next_rebalance() is None
    assert found.all_tasks() == set()


def test_members_are_known_in_the_order_in_which_the_coordinator_names_them() -> None:
    found = streams(Member("b", 2, active=("0_0",)), Member("c", 1), Member("a", 1))
    assert found.arrival == tuple(f"{name}-StreamThread-1-consumer" for name in "bca")


def test_of_two_members_with_one_id_the_last_counts_as_it_does_for_kafka() -> None:
    first, last = Member("a", 1, active=("0_0",)), Member("a", 2, active=("0_1",))
    found = streams(first, Member("b", 3), last)
    assert list(found.clients) == [process(2), process(3)]
    assert found.arrival == (first.client_id, Member("b", 3).client_id)
    record = consumer_generation(1, {"c": ()})
    twice = replace(metadata(record), members=metadata(record).members * 2)
    assert len(classic_membership(twice, decode_assignments(twice))[0].members) == 1


def test_what_members_were_assigned_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For who is in the group, and for its generation, alike."""
    decoded: list[bytes] = []

    def counted(data: bytes) -> ConsumerAssignment:
        decoded.append(data)
        return decode_assignment(data)

    monkeypatch.setattr(generation_module, "decode_assignment", counted)
    found = read_classic_groups({GROUP: metadata(generation(1, *WARMING))})[GROUP]
    assert isinstance(found, ClassicGroup)
    assert found.generation is not None
    assert len(found.membership.members) == len(decoded) == len(WARMING)
