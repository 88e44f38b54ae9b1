"""The classic coordinator in virtual time: when rebalances begin and end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from caughtup.models.simulation.coordinator import ClassicCoordinator, GroupState
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.virtual_time import VirtualTime

TIMINGS = Timings(
    heartbeat_interval_ms=3_000,
    session_timeout_ms=45_000,
    rebalance_timeout_ms=300_000,
    initial_rebalance_delay_ms=3_000,
    request_ms=2,
    poll_ms=50,
    decide_ms=6,
)
#: From the last JoinGroup until members have their assignments.
DECIDED_MS = 2 * TIMINGS.request_ms + TIMINGS.decide_ms


class Member:
    def __init__(self, group: Group, member_id: str, instance_id: str | None = None) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.answers = True
        self._group = group

    def prepare(self) -> None:
        self._group.prepared.append((self._group.time.now_ms, self.member_id))

    def subscription(self) -> str:
        return f"{self.member_id} at {self._group.time.now_ms}"

    def assigned(self, generation: int, assignment: Any) -> None:
        self._group.assigned.append((self._group.time.now_ms, generation, self.member_id))
        self._group.told.append(assignment)


class Group:
    """A coordinator, and what its members were told when."""

    def __init__(self, timings: Timings = TIMINGS) -> None:
        self.time = VirtualTime()
        self.prepared: list[tuple[int, str]] = []
        self.assigned: list[tuple[int, int, str]] = []
        self.told: list[str] = []
        self.leaders: list[str] = []
        self.coordinator = ClassicCoordinator(self.time, self._decide, timings)

    def _decide(self, leader: str, said: Mapping[str, Any]) -> Mapping[str, Any]:
        self.leaders.append(leader)
        return said

    def joined(self, *members: str) -> list[Member]:
        """Let members join an empty group, and run until they are stable."""
        return self.joined_with([Member(self, name) for name in members])

    def joined_with(self, found: list[Member]) -> list[Member]:
        """Let these join an empty group, and run until they are stable."""
        for member in found:
            self.coordinator.join(member)
        self.time.run(3_000 + 2 + DECIDED_MS)
        return found


def test_an_empty_group_waits_once_more_for_each_new_member() -> None:
    group = Group()
    group.coordinator.join(Member(group, "a"))
    group.time.run(2_000)
    group.coordinator.join(Member(group, "b"))
    group.time.run(60_000)
    decided_ms = 2_000 + 2 + 3_000 + DECIDED_MS
    assert group.assigned == [(decided_ms, 1, "a"), (decided_ms, 1, "b")]
    assert group.leaders == ["a"]
    assert group.coordinator.state is GroupState.STABLE


def test_members_join_again_at_their_next_heartbeat() -> None:
    group = Group()
    group.joined("a", "b")
    stable_ms = group.time.now_ms
    group.time.run(stable_ms + 4_000)
    group.coordinator.join(Member(group, "c"))
    group.time.run(60_000)
    beat_ms = stable_ms + 6_000 + TIMINGS.poll_ms
    assert group.prepared == [(beat_ms, "a"), (beat_ms, "b")]
    assert group.assigned[2:] == [
        (beat_ms + 2 + DECIDED_MS, 2, member) for member in ("a", "b", "c")
    ]


def test_who_asks_of_its_own_accord_joins_at_once() -> None:
    group = Group()
    group.joined("a", "b")
    stable_ms = group.time.now_ms
    group.coordinator.rejoin_now("b")
    group.time.run(60_000)
    assert group.prepared == [(stable_ms, "b"), (stable_ms + 3_000 + TIMINGS.poll_ms, "a")]


def test_a_member_that_falls_silent_is_out_a_session_timeout_after_its_last_heartbeat() -> None:
    group = Group()
    _, b, _ = group.joined("a", "b", "c")
    stable_ms = group.time.now_ms
    group.time.run(stable_ms + 7_000)
    b.answers = False
    group.coordinator.falls_silent("b")
    group.time.run(stable_ms + 6_000 + 45_000 - 1)
    assert group.coordinator.state is GroupState.STABLE
    group.time.run(stable_ms + 60_000)
    assert group.coordinator.members == ["a", "c"]
    assert [member for _, generation, member in group.assigned if generation == 2] == ["a", "c"]


def test_a_dead_member_holds_up_a_rebalance_until_its_session_ends() -> None:
    group = Group()
    _, b = group.joined("a", "b")
    stable_ms = group.time.now_ms
    b.answers = False
    group.coordinator.falls_silent("b")
    group.coordinator.join(Member(group, "b again"))
    group.time.run(stable_ms + 44_999)
    assert group.coordinator.state is GroupState.PREPARING
    group.time.run(stable_ms + 45_000 + DECIDED_MS)
    assert group.coordinator.members == ["a", "b again"]
    assert group.coordinator.state is GroupState.STABLE


def test_the_next_member_leads_when_the_leader_leaves() -> None:
    group = Group()
    group.joined("a", "b")
    group.coordinator.leave("a")
    group.time.run(60_000)
    assert group.leaders == ["a", "b"]


def test_a_leader_that_dies_before_it_decides_leaves_the_group_waiting_for_its_session() -> None:
    group = Group()
    a, _ = [Member(group, name) for name in "ab"]
    group.coordinator.join(a)
    group.time.run(3_003)
    assert group.coordinator.state is GroupState.COMPLETING
    a.answers = False
    group.coordinator.falls_silent("a")
    group.coordinator.join(Member(group, "c"))
    group.time.run(3_002 + 45_000 + 100)
    assert group.leaders == ["c"]
    assert group.coordinator.members == ["c"]


def test_an_empty_group_starts_anew() -> None:
    group = Group()
    group.joined("a")
    group.coordinator.leave("a")
    group.time.run(group.time.now_ms + 10)
    assert group.coordinator.state is GroupState.EMPTY
    since_ms = group.time.now_ms
    group.coordinator.join(Member(group, "b"))
    group.time.run(60_000)
    assert group.assigned[-1] == (since_ms + 2 + 3_000 + DECIDED_MS, 2, "b")


def static(group: Group) -> list[Member]:
    return group.joined_with([Member(group, name, f"static {name}") for name in "ab"])


@pytest.mark.parametrize("name", ["a", "b"], ids=["leader", "follower"])
def test_a_static_member_that_is_back_in_time_has_its_assignment_and_nobody_joins_again(
    name: str,
) -> None:
    """Kafka's coordinator: it doesn't affect the selected protocol and triggers no rebalance."""
    group = Group()
    members = dict(zip("ab", static(group), strict=True))
    first = dict(zip("ab", group.told, strict=True))
    members[name].answers = False
    group.coordinator.falls_silent(name)
    group.time.run(group.time.now_ms + 40_000)
    group.coordinator.join(Member(group, f"{name} again", f"static {name}"))
    joined_ms = group.time.now_ms + TIMINGS.request_ms
    group.time.run(200_000)
    assert group.prepared == []
    assert group.assigned[2:] == [(joined_ms + 2 * TIMINGS.request_ms, 1, f"{name} again")]
    assert group.told[-1] == first[name]
    assert group.coordinator.leader == ("a again" if name == "a" else "a")
    assert sorted(group.coordinator.members) == sorted({"a", "b"} - {name} | {f"{name} again"})


def test_a_static_member_that_is_late_is_a_new_one() -> None:
    group = Group()
    _, b = static(group)
    b.answers = False
    group.coordinator.falls_silent("b")
    group.time.run(group.time.now_ms + 60_000)
    assert group.coordinator.members == ["a"]
    assert group.coordinator.generation == 2
    group.coordinator.join(Member(group, "b again", "static b"))
    group.time.run(group.time.now_ms + 60_000)
    assert group.coordinator.generation == 3


def test_a_rebalance_does_not_wait_for_a_static_member_longer_than_it_may_nor_throw_it_out() -> (
    None
):
    """Only dynamic members that haven't joined again are removed when the waiting ends."""
    timings = replace(TIMINGS, rebalance_timeout_ms=10_000)
    group = Group(timings)
    _, b = static(group)
    b.answers = False
    group.coordinator.falls_silent("b")
    group.coordinator.join(Member(group, "c"))
    group.time.run(group.time.now_ms + 15_000)
    assert group.coordinator.state is GroupState.STABLE
    assert sorted(group.coordinator.members) == ["a", "b", "c"]
    group.coordinator.join(Member(group, "b again", "static b"))
    group.time.run(group.time.now_ms + 1_000)
    assert group.assigned[-1][1:] == (2, "b again")


def test_a_static_member_that_is_back_while_the_leader_decides_makes_another_rebalance() -> None:
    """The leader knows it by its old id, so that what it decides couldn't be given to it."""
    group = Group()
    static(group)
    group.coordinator.rejoin_now("a")
    group.coordinator.rejoin_now("b")
    group.time.run(group.time.now_ms + TIMINGS.request_ms + 1)
    assert group.coordinator.state is GroupState.COMPLETING
    group.coordinator.join(Member(group, "b again", "static b"))
    group.time.run(group.time.now_ms + 60_000)
    assert group.coordinator.generation == 3
    assert group.assigned[-1][1:] == (3, "b again")
