"""Generations whose leader's decision was changed: what no assignor would have decided."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from caughtup.models.groups.generation import StreamsClient, StreamsGeneration, StreamsMember
from caughtup.models.ids import TaskId, TopicPartition

#: The kinds of changes.
KINDS = ("exchange", "drop", "promote")


def changed(
    generation: StreamsGeneration, rng: random.Random, kind: str
) -> StreamsGeneration | None:
    """Return a generation with one change of a kind; None if it has nothing to change.

    ``exchange``: two actives of two processes change places. ``drop``: a standby or a warm-up is
    left out. ``promote``: a standby or a warm-up changes places with its active.
    """
    members = [one for one in generation.members() if one.assignment is not None]
    if kind == "exchange":
        actives = [(member, task) for member in members for task in _active(member)]
        pairs = [
            (one, other)
            for one in actives
            for other in actives
            if one[0].process < other[0].process
        ]
        if not pairs:
            return None
        (here, mine), (there, other) = rng.choice(pairs)
        return _with(generation, _swapped(here, mine, other), _swapped(there, other, mine))
    standbys = [(member, task) for member in members for task in _standby(member)]
    if not standbys:
        return None
    member, task = rng.choice(standbys)
    if kind == "drop":
        return _with(generation, _without(member, task))
    runner = next((one for one in members if task in _active(one)), None)
    if runner is None or runner.process == member.process:
        return None
    return _with(generation, _promoted(member, task), _demoted(runner, task))


def changes(
    generation: StreamsGeneration, rng: random.Random, count: int
) -> Iterator[tuple[str, StreamsGeneration]]:
    """Yield up to ``count`` changed generations of each kind, with the kind."""
    for kind in KINDS:
        for _ in range(count):
            found = changed(generation, rng, kind)
            if found is not None:
                yield kind, found


def _active(member: StreamsMember) -> tuple[TaskId, ...]:
    assert member.assignment is not None
    return tuple(member.assignment.active)


def _standby(member: StreamsMember) -> dict[TaskId, tuple[TopicPartition, ...]]:
    assert member.assignment is not None
    return {task: tuple(partitions) for task, partitions in member.assignment.standby.items()}


def _given(
    member: StreamsMember,
    active: tuple[TaskId, ...],
    standby: dict[TaskId, tuple[TopicPartition, ...]],
) -> StreamsMember:
    assert member.assignment is not None
    given = replace(member.assignment, active=active, standby=standby)
    return replace(member, assignment=given)


def _swapped(member: StreamsMember, task: TaskId, other: TaskId) -> StreamsMember:
    standby = _standby(member)
    if other in standby:
        standby[task] = standby.pop(other)
    active = tuple(other if one == task else one for one in _active(member))
    return _given(member, active, standby)


def _without(member: StreamsMember, task: TaskId) -> StreamsMember:
    standby = {one: own for one, own in _standby(member).items() if one != task}
    return _given(member, _active(member), standby)


def _promoted(member: StreamsMember, task: TaskId) -> StreamsMember:
    member = _without(member, task)
    return _given(member, (*_active(member), task), _standby(member))


def _demoted(member: StreamsMember, task: TaskId) -> StreamsMember:
    active = tuple(one for one in _active(member) if one != task)
    return _given(member, active, {**_standby(member), task: ()})


def _with(generation: StreamsGeneration, *members: StreamsMember) -> StreamsGeneration:
    by_id = {one.member_id: one for one in members}
    clients = {
        process: StreamsClient(
            process, tuple(by_id.get(one.member_id, one) for one in client.members)
        )
        for process, client in generation.clients.items()
    }
    return replace(generation, clients=clients)
