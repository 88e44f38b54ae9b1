"""Who decided a consumer group's assignment: records as the clients write them, and hostile ones."""

from __future__ import annotations

import struct

import pytest

from caughtup.models.decisions.consumer_decision import ConsumerDecision, consumer_decision
from caughtup.models.records.fields import ABSENT
from caughtup.models.wire.group_metadata import GroupMember, GroupMetadata

Partitions = dict[str, list[int]]


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def listed(partitions: Partitions) -> bytes:
    parts = [
        text(topic) + struct.pack(f">i{len(own)}i", len(own), *own)
        for topic, own in partitions.items()
    ]
    return struct.pack(">i", len(parts)) + b"".join(parts)


def data(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def subscription(
    version: int,
    user_data: bytes | None,
    rack: str | None = None,
    owned: Partitions | None = None,
    generation: int = -1,
) -> bytes:
    written = struct.pack(">hi", version, 1) + text("t") + data(user_data)
    if version >= 1:
        written += listed(owned or {})
    if version >= 2:
        written += struct.pack(">i", generation)
    if version >= 3:
        written += struct.pack(">h", -1) if rack is None else text(rack)
    return written


def assignment(version: int, partitions: Partitions, user_data: bytes | None) -> bytes:
    return struct.pack(">h", version) + listed(partitions) + data(user_data)


def group(protocol: str, *members: tuple[bytes, bytes]) -> GroupMetadata:
    return GroupMetadata(
        "consumer",
        7,
        protocol,
        "m0",
        0,
        tuple(
            GroupMember(
                f"m{n}", None, f"client-{n}", "/127.0.0.1", 1000, 1000, subscribed, assigned
            )
            for n, (subscribed, assigned) in enumerate(members)
        ),
    )


def java(partitions: list[int], **of_subscription: object) -> tuple[bytes, bytes]:
    subscribed = subscription(3, None, **of_subscription)  # type: ignore[arg-type]
    return subscribed, assignment(3, {"t": partitions}, None)


def librdkafka(partitions: list[int], sent: bytes = b"") -> tuple[bytes, bytes]:
    return subscription(3, sent, ""), assignment(0, {"t": partitions}, sent)


def aiokafka(partitions: list[int]) -> tuple[bytes, bytes]:
    return subscription(0, b""), assignment(0, {"t": partitions}, b"")


@pytest.mark.parametrize(
    ("member", "client"),
    [(java, "kafka-clients"), (librdkafka, "librdkafka"), (aiokafka, "aiokafka")],
)
def test_each_client_is_known_by_its_leader(member: object, client: str) -> None:
    found = consumer_decision(group("range", member([0, 1]), member([2])), {"t": 3})  # type: ignore[operator]
    assert found == ConsumerDecision("range", "match", client, "client-0")


def test_librdkafka_is_known_by_what_it_sends_back_too() -> None:
    found = consumer_decision(group("cooperative-sticky", librdkafka([0], b"owned")), {"t": 1})
    assert (found.client, found.result) == ("librdkafka", "match")


def test_what_librdkafkas_cooperative_sticky_decides_otherwise_is_named() -> None:
    owner = (
        subscription(3, b"", "", owned={"t": [0, 1, 2]}, generation=6),
        assignment(0, {"t": [0, 1]}, b""),
    )
    found = consumer_decision(group("cooperative-sticky", owner, librdkafka([])), {"t": 3})
    assert found.result == "mismatch"
    assert found.why == "m0 has t-0, not t-2"


def test_of_aiokafkas_sticky_the_user_data_count() -> None:
    had = listed({"t": [0, 1, 2]}) + struct.pack(">i", 6)
    owner = subscription(0, had), assignment(0, {"t": [0, 1]}, b"")
    found = consumer_decision(group("sticky", owner, aiokafka([2])), {"t": 3})
    assert (found.client, found.result) == ("aiokafka", "match")


def test_what_hangs_on_the_order_of_a_set_is_consistent() -> None:
    had = [
        (listed({"t": own}) + struct.pack(">i", generation), now)
        for own, generation, now in (([0, 1, 2, 3], 6, [0, 1]), ([0, 1, 2, 3], 5, [2, 3]))
    ]
    members = [(subscription(0, data), assignment(0, {"t": now}, b"")) for data, now in had]
    found = consumer_decision(group("sticky", *members), {"t": 4})
    assert found.result == "consistent"
    assert (
        found.why
        == "it depends on the order of sets in the leader's process, one of which explains it"
    )


def test_only_the_leader_counts() -> None:
    found = consumer_decision(group("range", java([0, 1]), aiokafka([2])), {"t": 3})
    assert (found.client, found.result) == ("kafka-clients", "match")


def test_what_the_assignor_decides_otherwise_is_named() -> None:
    found = consumer_decision(group("range", java([0]), java([1, 2])), {"t": 3})
    assert found.result == "mismatch"
    assert found.why == "m0 has nothing, not t-1; m1 has t-1, not nothing"


def test_a_leader_that_did_not_know_all_partitions_is_consistent() -> None:
    found = consumer_decision(group("range", java([0, 1]), java([2])), {"t": 4})
    assert (found.result, found.why) == (
        "consistent",
        "the leader knew 3 partitions of t, which has 4",
    )


def test_of_sticky_the_user_data_count() -> None:
    had = listed({"t": [0, 1, 2]}) + struct.pack(">i", 6)
    owner = subscription(3, had, generation=6), assignment(3, {"t": [0, 1]}, None)
    assert consumer_decision(group("sticky", owner, java([2])), {"t": 3}).result == "match"


def test_of_cooperative_sticky_what_moves_is_held_back() -> None:
    owner = (
        subscription(3, struct.pack(">i", 6), owned={"t": [0, 1, 2]}, generation=6),
        assignment(3, {"t": [0, 1]}, None),
    )
    joins = subscription(3, struct.pack(">i", -1)), assignment(3, {}, None)
    assert consumer_decision(group("cooperative-sticky", owner, joins), {"t": 3}).result == "match"


def test_racks_that_are_not_known_leave_it_open() -> None:
    members = java([1], rack="r1"), java([0], rack="r2")
    found = consumer_decision(group("range", *members), {"t": 2})
    assert (found.result, found.why) == (
        "undetermined",
        "members have racks, and the replicas' are not known",
    )
    racks = {"t": [frozenset({"r2"}), frozenset({"r1"})]}
    assert consumer_decision(group("range", *members), {"t": 2}, racks).result == "match"


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        (group("mine", java([0])), "kafka-clients's assignor 'mine' is not reproduced"),
        (group("range", (b"\\0", b"")), "a member's record can't be read"),
        (group("range", java([999_999_999])), "the group is too large"),
        (group("range"), "the leader's client is none that is known"),
        (
            group("range", (subscription(3, None), assignment(1, {"t": [0]}, b"x"))),
            "the leader's client is none that is known",
        ),
        (
            group("sticky", java([0], owned={"t": [0]}), aiokafka([])),
            "",
        ),
    ],
)
def test_what_cannot_be_known_is_undetermined(metadata: GroupMetadata, why: str) -> None:
    found = consumer_decision(metadata, {})
    if why:
        assert found.result == "undetermined"
        assert found.why.startswith(why)
    else:
        assert found.client is not ABSENT
