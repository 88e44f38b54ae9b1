"""Any sequence of looks: nothing raises, and no end is told that wasn't one."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.controllers import reverted, target
from caughtup.models.reassignments.tracker import (
    OBSERVATIONS,
    OLDER_MS,
    ReassignmentTracker,
)
from caughtup.models.records.reassignment_lines import EndedReassignment
from caughtup.models.records.reassignments import (
    ClusterRecord,
    ReassignmentRecord,
)
from caughtup.models.verdicts import OUTCOMES
from tests.support.controllers.kraft import cancelled, isr_changed, reassigned
from tests.support.controllers.partition_state import PartitionState
from tests.support.reassignments.observations import ORDERS, any_observations, observed
from tests.support.sizes import daily

PARTITIONS = (ORDERS, TopicPartition("orders", 1))
ids = st.integers(-1, 4)
brokers = st.lists(ids, max_size=5).map(tuple)
offsets = st.dictionaries(ids, st.integers(0, 9), max_size=3)
times = st.integers(0, 60).map(lambda minutes: minutes * 60_000)
epochs = st.none() | st.integers(0, 3)
observations = any_observations(PARTITIONS, ids, offsets=offsets, times=times, epochs=epochs)
clusters = st.builds(
    ClusterRecord,
    as_of_ms=times,
    brokers=st.none(),
    quorum_leader=st.none() | ids,
    quorum_epoch=epochs,
    software=st.none() | st.sampled_from([(3, 7), (4, 2), (4, 3), (9, 0)]),
    zookeeper=st.booleans(),
)
ends = st.tuples(
    st.sampled_from(PARTITIONS), st.none() | brokers, brokers, times, st.none() | epochs
)
unlisted = st.tuples(st.sampled_from(PARTITIONS), times)


@settings(max_examples=daily(80, 400), print_blob=True, deadline=None)
@given(st.lists(st.one_of(observations, observations, clusters, ends, unlisted), max_size=40))
def test_no_sequence_of_observations_raises_or_is_called_completed_without_its_target(
    events: list[Any],
) -> None:
    tracker = ReassignmentTracker()
    told: list[EndedReassignment] = []
    for event in events:
        before = {name: each.latest for name, each in tracker.ongoing.items()}
        end, shown = None, None
        if isinstance(event, ClusterRecord):
            tracker.apply_cluster(event)
        elif isinstance(event, ReassignmentRecord):
            end, shown = tracker.apply(event), set(reverted(event))
        elif len(event) == 2:
            tracker.unlisted(*event)
        else:
            end, shown = tracker.end(*event), set(event[1] or ())
        if end is not None:
            told.append(end)
            last = before[end.topic_partition]
            assert end.outcome in OUTCOMES.words
            assert end.target == target(last)
            assert (end.outcome == "completed") <= (shown == set(target(last)))
            assert (end.outcome == "cancelled") <= (shown == set(end.original))
            assert (end.outcome == "vanished") == (end.replicas is None)
        for each in tracker.ongoing.values():
            taken = [observation.as_of_ms for observation in each.observations]
            assert taken == sorted(set(taken))
            assert 0 < len(taken) <= OBSERVATIONS
            assert max(each.since_ms, each.progressed_ms) <= taken[-1]
            assert each.phase(tracker.cluster) in {"U", "A", "B", "completing", "propagating"}
    assert tracker.ended == told[-tracker.kept :]
    assert tracker.ended_counts.total() == len(told)


ALIVE = range(7)
POLL_MS = 2_000
replicas = st.lists(st.sampled_from(ALIVE), min_size=1, max_size=4, unique=True).map(tuple)
#: What happens between two polls. ``isr``: who gets in sync, or falls out where that's negative.
happenings = st.one_of(
    st.tuples(st.just("reassign"), replicas),
    st.tuples(st.just("isr"), replicas),
    st.tuples(st.just("shrink"), replicas),
    st.tuples(st.just("cancel"), st.none()),
    st.tuples(st.just("delete"), st.none()),
    st.tuples(st.just("create"), replicas),
    st.tuples(st.just("lead"), st.sampled_from(ALIVE)),
)
#: Between two polls up to three things happen; the metadata is up to two polls old.
polls = st.tuples(
    st.lists(happenings, max_size=3), st.integers(0, 2), st.sampled_from([1, 1, 1, 30])
)


class World:
    """A partition as its controller has it over time, and as an older metadata cache shows it."""

    def __init__(self, first: tuple[int, ...], release: tuple[int, int]) -> None:
        self.release = release
        self.state: PartitionState | None = PartitionState(first, first, first[0])
        #: (poll, generation of the topic, state), everything there ever was.
        self.was: list[tuple[int, int, PartitionState | None]] = [(0, 0, self.state)]
        self._generation = 0

    def happen(self, what: str, given: Any, poll: int) -> None:
        state = self.state
        if what == "create" and state is None:
            self._generation += 1
            state = PartitionState(given, given, given[0])
        elif what == "delete":
            state = None
        elif state is not None:
            state = self._changed(state, what, given)
        self.state = state
        self.was.append((poll, self._generation, state))

    def _changed(self, state: PartitionState, what: str, given: Any) -> PartitionState:
        if what == "reassign":
            return reassigned(state, given, ALIVE, self.release)
        if what == "cancel":
            return cancelled(state, ALIVE, self.release) or state
        if what == "lead":
            living = [broker for broker in ALIVE if broker != state.leader]
            return isr_changed(state, state.isr, living, self.release)
        inside = set(state.isr)
        wanted = inside | set(given) if what == "isr" else inside - set(given)
        isr = tuple(replica for replica in state.replicas if replica in wanted)
        return isr_changed(state, isr, ALIVE, self.release) if isr else state

    def shown(self, poll: int, least: int) -> PartitionState | None:
        """Return the state as it was at the end of a poll, at the earliest number ``least``.

        Never that of an earlier topic of the name: nothing but its id would tell it.
        """
        last = max(number for number, (at, _, _) in enumerate(self.was) if at <= max(0, poll))
        _, generation, state = self.was[max(last, least)]
        return state if generation == self._generation else None


@settings(max_examples=daily(80, 600), print_blob=True, deadline=None)
@given(
    first=replicas,
    release=st.sampled_from([(3, 7), (4, 2), (4, 3)]),
    walk=st.lists(polls, max_size=25),
)
def test_a_controllers_walk_is_told_as_it_was_though_the_metadata_is_older(
    first: tuple[int, ...], release: tuple[int, int], walk: list[Any]
) -> None:
    """Deleted and created again, retargeted, cancelled, led by others: ends that were, or none."""
    world, tracker = World(first, release), ReassignmentTracker()
    tracker.apply_cluster(ClusterRecord(2, 0, software=release))
    name = PARTITIONS[0]
    began, now_ms, poll, honest = 0, 0, 0, True
    quiet = [([], 0, 1)] * 3 + [([], 0, OLDER_MS // POLL_MS)] * 2
    for events, age, lasts in [*walk, *quiet]:
        poll, now_ms = poll + 1, now_ms + POLL_MS * lasts
        for event in events:
            world.happen(*event, poll)
        followed = name in tracker.ongoing
        # Brokers have seen one begin before it ends, or its first observation was exact.
        least = began if followed and not honest else 0
        state, seen = world.state, world.shown(poll - (age if lasts == 1 else 0), least)
        end, then = None, began
        if state is not None and state.in_progress:
            end = tracker.apply(observed(state, seen, now_ms))
            if not followed or end is not None:
                began, honest = len(world.was) - 1, age == 0 or lasts > 1
        elif followed and seen is not None:
            end = tracker.end(name, seen.replicas, seen.isr, now_ms, seen.leader_epoch)
        elif followed and state is None:
            end = tracker.end(name, None, (), now_ms)
        if end is not None:
            assert_it_was_so(world, end, then)
    assert (name in tracker.ongoing) == bool(world.state and world.state.in_progress)


def assert_it_was_so(world: World, end: EndedReassignment, began: int) -> None:
    """Hold an outcome against all there was since it was first observed."""
    since = world.was[began:]
    still = [set(s.replicas) for _, _, s in since if s is not None and not s.in_progress]
    first_generation = since[0][1]
    if end.outcome == "completed":
        assert set(end.target) in still
    elif end.outcome == "cancelled":
        assert set(end.original) in still
    elif end.outcome == "vanished":
        gone = any(s is None or g != first_generation for _, g, s in since)
        assert gone
    elif end.outcome == "reverted-partial":
        assert end.replicas is not None
        assert set(end.replicas) in still
