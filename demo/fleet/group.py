"""Generate the generations of one group over time: its members and their assignments.

Kafka Streams groups are assigned by HighAvailabilityTaskAssignor, consumer groups by ranges. The
same seed generates the same story.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.scenario import Client, Scenario, parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import ProcessId
from caughtup.models.simulation.rounds import next_scenario

#: A member's offset sum of a task that it runs, Kafka Streams' sentinel.
RUNNING = -2
PROBING_INTERVAL_MS = 600_000
#: A group begins with one member; its other first members join this much later.
_OTHERS_AFTER_MS = 2_000
_DELETED_AFTER_MS = 1_000
_MOST_MEMBERS = 5
_FIRST_OFFSET = 1_000_000
#: Kafka Streams' defaults.
_CONFIG = {
    "acceptable.recovery.lag": 10_000,
    "max.warmup.replicas": 2,
    "num.standby.replicas": 0,
    "probing.rebalance.interval.ms": PROBING_INTERVAL_MS,
}


class StoryMember(NamedTuple):
    """A member of one generation; in a Streams group, a process with one stream thread.

    ``number`` identifies the client in its group. ``process`` is None for a plain consumer.
    ``offset_sums``: as reported when it joins, by the task's partition (of subtopology 0).
    ``active`` and ``standby``: its assigned partitions.
    """

    number: int
    process: ProcessId | None
    offset_sums: dict[int, int]
    active: tuple[int, ...]
    standby: tuple[int, ...]


class GroupStep(NamedTuple):
    """A generation, ``after_ms`` after the story's start; without members the group is empty.

    ``next_rebalance_ms``: when a probing rebalance is due, after the start too; None for never.
    """

    after_ms: int
    members: tuple[StoryMember, ...]
    next_rebalance_ms: int | None


class GroupStory(NamedTuple):
    """A group's generations (the last one empty), and when it is deleted (None: never)."""

    streams: bool
    steps: tuple[GroupStep, ...]
    deleted_after_ms: int | None


def make_story(
    seed: int,
    *,
    partitions: int,
    span_ms: int,
    changes: int,
    streams_percent: int,
    deleted_percent: int,
) -> GroupStory:
    """Generate a group's story: members come and go ``changes`` times in ``span_ms``."""
    rng = random.Random(seed)
    streams = rng.random() * 100 < streams_percent
    deleted = rng.random() * 100 < deleted_percent
    ended_ms = rng.randrange(span_ms * 3 // 4, span_ms) if deleted else span_ms
    memberships = list(_memberships(rng, changes, ended_ms))
    steps = list(
        _streams_steps(rng, partitions, memberships, ended_ms)
        if streams
        else _consumer_steps(partitions, memberships)
    )
    if not deleted:
        return GroupStory(streams, tuple(steps), None)
    steps.append(GroupStep(ended_ms, (), None))
    return GroupStory(streams, tuple(steps), ended_ms + _DELETED_AFTER_MS)


def position(partition: int, after_ms: int) -> int:
    """Return a partition's end offset at a time, which is also the group's position then."""
    return _FIRST_OFFSET + after_ms * (5 + partition % 20) // 1000


def _memberships(
    rng: random.Random, changes: int, ended_ms: int
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the members' numbers from each time (ms) on; at first there is only one member."""
    members = [0]
    yield 0, tuple(members)
    count = rng.randint(1, _MOST_MEMBERS - 1)
    if count > 1:
        members = list(range(count))
        yield _OTHERS_AFTER_MS, tuple(members)
    fresh = count
    earliest = min(2 * _OTHERS_AFTER_MS, ended_ms - 1)
    gaps = sorted(rng.randrange(earliest, ended_ms) for _ in range(changes))
    # No two changes at the same time: each is a generation of its own.
    for moment in accumulate(gaps, lambda before, own: max(before + 1, own)):
        if moment >= ended_ms:
            return
        if len(members) == 1 or (len(members) < _MOST_MEMBERS and rng.random() < 0.5):
            members.append(fresh)
            fresh += 1
        else:
            members.remove(rng.choice(members))
        yield moment, tuple(members)


def _consumer_steps(
    partitions: int, memberships: list[tuple[int, tuple[int, ...]]]
) -> Iterator[GroupStep]:
    """Assign ranges; the first members get one more if the division is uneven (RangeAssignor)."""
    for moment, numbers in memberships:
        each, more = divmod(partitions, len(numbers))
        ends = list(accumulate(each + (place < more) for place in range(len(numbers))))
        ranges = pairwise([0, *ends])
        members = tuple(
            StoryMember(number, None, {}, tuple(range(start, end)), ())
            for number, (start, end) in zip(numbers, ranges, strict=True)
        )
        yield GroupStep(moment, members, None)


def _streams_steps(
    rng: random.Random,
    partitions: int,
    memberships: list[tuple[int, tuple[int, ...]]],
    ended_ms: int,
) -> Iterator[GroupStep]:
    """Decide each change of members, and the probing rebalances until the next one."""
    most = 1 + max(max(numbers) for _, numbers in memberships)
    processes = [ProcessId.of(rng.getrandbits(128)) for _ in range(most)]
    scenario = _scenario(processes[0], partitions)
    ends = dict(scenario.clients[0].lags)
    untils = [moment for moment, _ in memberships[1:]] + [ended_ms]
    for (moment, numbers), until in zip(memberships, untils, strict=True):
        known = {client.process_id: client for client in scenario.clients}
        clients = (
            known.get(process) or Client(process, 1, frozenset(), frozenset(), dict(ends))
            for process in sorted(processes[number] for number in numbers)
        )
        scenario = replace(scenario, clients=tuple(clients))
        at_ms: int | None = moment
        while at_ms is not None and at_ms < until:
            decision = decide(scenario)
            due = at_ms + PROBING_INTERVAL_MS if decision.probing_rebalance_needed else None
            yield GroupStep(at_ms, _members(processes, numbers, scenario, decision, at_ms), due)
            scenario = next_scenario(scenario, decision, ends)
            at_ms = due


def _scenario(first: ProcessId, partitions: int) -> Scenario:
    lags = {f"0_{partition}": _FIRST_OFFSET for partition in range(partitions)}
    client = {"capacity": 1, "previous_active": [], "previous_standby": [], "lags": lags}
    return parse_scenario(
        {
            "assignor": "high_availability",
            "config": _CONFIG,
            "tasks": {task: {"stateful": True} for task in lags},
            "clients": {str(first): client},
        }
    )


def _members(
    processes: list[ProcessId],
    numbers: tuple[int, ...],
    scenario: Scenario,
    decision: Decision,
    at_ms: int,
) -> tuple[StoryMember, ...]:
    clients = {client.process_id: client for client in scenario.clients}
    members = []
    for number in numbers:
        process = processes[number]
        given = decision.clients[process]
        members.append(
            StoryMember(
                number,
                process,
                dict(_offset_sums(clients[process], at_ms)),
                tuple(sorted(task.partition for task in given.active)),
                tuple(sorted(task.partition for task in given.standby)),
            )
        )
    return tuple(members)


def _offset_sums(client: Client, at_ms: int) -> Iterator[tuple[int, int]]:
    """Yield the offset sums that a client reports; none for tasks without local state."""
    for task in sorted(client.previous_active | client.previous_standby):
        running = task in client.previous_active
        yield task.partition, RUNNING if running else position(task.partition, at_ms)
