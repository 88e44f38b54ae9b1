"""A thread's restore consumer: shares, actives before standbys, changelogs that grow."""

from __future__ import annotations

from caughtup.models.ids import TaskId
from caughtup.models.simulation.streams.restoration import Restoration
from caughtup.models.simulation.streams.shared_state import ChangelogEnds
from caughtup.models.simulation.streams.topology import Changelog
from caughtup.models.simulation.virtual_time import VirtualTime

A, B, S = TaskId(0, 0), TaskId(0, 1), TaskId(0, 2)


class Thread:
    """A restore consumer of 1,000 offsets a second, and what it said when."""

    def __init__(self, **ends: Changelog) -> None:
        self.time = VirtualTime()
        tasks = {"a": A, "b": B, "s": S}
        self.ends = ChangelogEnds(
            self.time,
            {tasks[name]: changelog for name, changelog in ends.items()},
            lambda _: self.restoration.replan(),
        )
        self.restored: list[tuple[int, TaskId]] = []
        self.caught_up: list[tuple[int, TaskId, bool]] = []
        self.restoration = Restoration(
            self.time,
            self.ends,
            1_000,
            lambda task: self.restored.append((self.time.now_ms, task)),
            lambda task, at_end: self.caught_up.append((self.time.now_ms, task, at_end)),
        )


def test_actives_share_what_the_thread_restores() -> None:
    thread = Thread(a=Changelog(1_000), b=Changelog(3_000))
    thread.restoration.add(A, 0, active=True)
    thread.restoration.add(B, 0, active=True)
    thread.time.run(10_000)
    # Each at half the rate until a is there, then b has all of it: 1,000 + 2,000 offsets.
    assert thread.restored == [(2_000, A), (4_000, B)]
    assert thread.restoration.restoring == []
    assert thread.restoration.read == 4_000


def test_a_state_on_disk_needs_only_what_is_missing() -> None:
    thread = Thread(a=Changelog(5_000))
    thread.restoration.add(A, 4_500, active=True, start_ms=200)
    thread.time.run(10_000)
    assert thread.restored == [(700, A)]


def test_a_standby_waits_for_the_actives_of_its_thread() -> None:
    thread = Thread(a=Changelog(1_000), s=Changelog(2_000))
    thread.restoration.add(S, 0, active=False)
    thread.time.run(500)
    assert thread.restoration.position(S) == 500
    thread.restoration.add(A, 0, active=True)
    thread.time.run(1_500)
    assert thread.restored == [(1_500, A)]
    assert thread.restoration.position(S) == 500
    thread.time.run(10_000)
    assert thread.caught_up == [(3_000, S, True)]


def test_a_standby_chases_a_changelog_that_grows_and_then_follows_it() -> None:
    thread = Thread(s=Changelog(1_000, per_second=500))
    thread.ends.grow(S, grows=True)
    thread.restoration.add(S, 0, active=False)
    thread.time.run(10_000)
    # 1,000 behind, and half a thousand less each second.
    assert thread.caught_up == [(2_000, S, True)]
    assert thread.restoration.position(S) == 1_000 + 500 * 10
    assert thread.restoration.remove(S) == 6_000


def test_a_changelog_that_grows_faster_is_never_reached() -> None:
    thread = Thread(s=Changelog(1_000, per_second=1_500))
    thread.ends.grow(S, grows=True)
    thread.restoration.add(S, 0, active=False)
    thread.time.run(100_000)
    assert thread.caught_up == []
    thread.ends.grow(S, grows=False)
    thread.time.run(1_000_000)
    assert thread.caught_up == [(100_000 + 51_000, S, True)]


def test_a_standby_that_was_there_falls_behind_while_an_active_restores() -> None:
    thread = Thread(a=Changelog(1_000), s=Changelog(0, per_second=100))
    thread.ends.grow(S, grows=True)
    thread.restoration.add(S, 0, active=False)
    thread.time.run(1_000)
    thread.restoration.add(A, 0, active=True)
    thread.time.run(10_000)
    # A second of 100 offsets, restored at 1,000 a second while 100 more come each second.
    assert thread.restored == [(2_000, A)]
    assert thread.caught_up == [(0, S, True), (1_000, S, False), (2_112, S, True)]
