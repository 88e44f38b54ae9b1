"""Groups whose coordinator assigns: when members hear of it, and when they let go and are given."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.ids import TaskId
from caughtup.models.simulation.heartbeats import HeartbeatCoordinator, Tasks
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.virtual_time import VirtualTime

TIMINGS = Timings(
    heartbeat_interval_ms=5_000,
    session_timeout_ms=45_000,
    initial_rebalance_delay_ms=3_000,
    request_ms=2,
    poll_ms=50,
)
TASKS = [TaskId(0, number) for number in range(6)]


class Member:
    def __init__(self, group: Group, member_id: str) -> None:
        self._group = group
        self.member_id = member_id
        self.answers = True

    def given(self, _epoch: int, tasks: Tasks) -> None:
        numbers = "".join(str(task.partition) for task in sorted(tasks.active))
        self._group.told.append((self._group.time.now_ms, self.member_id, numbers))


class Group:
    """A coordinator that deals tasks in turn, and what its members were given when."""

    def __init__(self) -> None:
        self.time = VirtualTime()
        self.told: list[tuple[int, str, str]] = []
        self.epochs: list[int] = []
        self.coordinator = HeartbeatCoordinator(
            self.time, self._deal, TIMINGS, lambda epoch, _: self.epochs.append(epoch)
        )

    def _deal(self, members: Mapping[str, Tasks]) -> Mapping[str, Tasks]:
        return {
            member: Tasks(frozenset(TASKS[place :: len(members)]))
            for place, member in enumerate(sorted(members))
        }

    def join(self, name: str) -> Member:
        member = Member(self, name)
        self.coordinator.join(member, f"process {name}")
        return member


def test_who_starts_together_is_assigned_together_after_the_initial_delay() -> None:
    group = Group()
    group.join("a")
    group.time.run(1_000)
    group.join("b")
    group.time.run(20_000)
    assert group.epochs == [2]
    assert [(name, numbers) for _, name, numbers in group.told] == [("a", "024"), ("b", "135")]
    # Each hears of it by its own heartbeat, 5 s after its first one.
    assert [at_ms for at_ms, _, _ in group.told] == [5_004, 6_004]
    assert group.coordinator.stable


def test_tasks_are_let_go_of_before_they_are_given_to_who_came() -> None:
    group = Group()
    for name in "ab":
        group.join(name)
    group.time.run(30_000)
    group.told.clear()
    group.join("c")
    group.time.run(60_000)
    let_go = {name: at_ms for at_ms, name, _ in reversed(group.told) if name != "c"}
    last = [one for one in group.told if one[1] == "c"][-1]
    assert last[2] == "25"
    assert last[0] > max(let_go.values())
    assert group.told[-1][1:] in {("a", "03"), ("b", "14"), ("c", "25")}
    assert group.coordinator.stable


def test_who_falls_silent_is_out_a_session_after_its_last_heartbeat() -> None:
    group = Group()
    group.join("a")
    b = group.join("b")
    group.time.run(30_000)
    b.answers = False
    group.coordinator.falls_silent("b")
    group.time.run(30_000 + 39_000)
    assert group.coordinator.members == ["a", "b"]
    group.time.run(30_000 + 51_000)
    assert group.coordinator.members == ["a"]
    assert group.told[-1][1:] == ("a", "012345")


def test_a_target_is_computed_once_a_second_at_most() -> None:
    group = Group()
    group.join("a")
    group.time.run(30_000)
    before = len(group.epochs)
    for name in "bcd":
        group.join(name)
    group.time.run(30_500)
    assert group.epochs[before:] == [2]
    group.time.run(60_000)
    assert group.epochs[before:] == [2, 4]
    assert group.coordinator.stable
