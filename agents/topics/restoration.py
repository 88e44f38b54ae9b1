"""Restore what was published so far from own topics, before an instance counts as active."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from caughtup.agents.clock import now_ms
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.applying import AppliedTopic
from caughtup.agents.topics.consumer import ConsumerRecord
from caughtup.agents.topics.read_to_end import Accepts, read_service_topic
from caughtup.models.clocks import OTHER_INSTANCE_MS
from caughtup.models.decisions.applications import MOST_VALUES
from caughtup.models.decisions.learned_configs import LearnedUntil, read_learned
from caughtup.models.decisions.recommendation import read_recommendation
from caughtup.models.records.decoding import RefusedError, require_past
from caughtup.models.records.keys import decode_group
from caughtup.models.records.movements import (
    ConnectMovementRecord,
    PartitionMovementRecord,
    TaskMovementRecord,
    read_movement,
)
from caughtup.models.records.recommendations import RecommendationRecord
from caughtup.models.records.topics import LEARNED_CONFIGS, MOVEMENTS, RECOMMENDATIONS
from caughtup.models.security.signing import HEADER, FindForgery
from caughtup.models.state.cluster import ClusterState

_TURN_SECONDS = 0.01

_Record = tuple[bytes | None, bytes | None]


def _decode_recommendation(
    key: bytes | None, value: bytes | None, _: int | None, clock_ms: int
) -> tuple[str, RecommendationRecord | None]:
    return read_recommendation(key, value, clock_ms)


def _decode_movement(
    key: bytes | None, value: bytes | None, _: int | None, clock_ms: int
) -> PartitionMovementRecord | TaskMovementRecord | ConnectMovementRecord:
    record = read_movement(key, value)
    require_past(record.at_ms, clock_ms)
    return record


def _decode_learned(
    key: bytes | None, value: bytes | None, _: int | None, clock_ms: int
) -> tuple[str, LearnedUntil | None]:
    return read_learned(key, value, clock_ms)


def _apply_movement(
    state: ClusterState,
    record: PartitionMovementRecord | TaskMovementRecord | ConnectMovementRecord,
) -> bool:
    if isinstance(record, PartitionMovementRecord):
        state.reassignment_events.restore(record)
    elif isinstance(record, ConnectMovementRecord):
        return state.connect.published_until(record.group, record.at_ms)
    else:
        state.applications.movements.restore(record)
    return True


#: The newest recommendations of each group.
recommendations = AppliedTopic(
    RECOMMENDATIONS,
    _decode_recommendation,
    lambda state, decoded: state.applications.apply_published(*decoded),
    "the service keeps no more groups' recommendations",
    ahead_ms=OTHER_INSTANCE_MS,
)
#: The learned configs of each application.
learned_configs = AppliedTopic(
    LEARNED_CONFIGS,
    _decode_learned,
    lambda state, decoded: state.applications.learned.restore(*decoded),
    "the service keeps no more groups' configs",
    ahead_ms=OTHER_INSTANCE_MS,
)
#: The events of movements.
movements = AppliedTopic(MOVEMENTS, _decode_movement, _apply_movement, ahead_ms=OTHER_INSTANCE_MS)


class Published(NamedTuple):
    """What any instance has published: the records of each topic, in order."""

    learned: list[_Record]
    recommendations: list[_Record]
    movements: list[_Record]


async def restore_published(
    settings: Settings, state: ClusterState, find_forgery: FindForgery | None
) -> None:
    """Restore what any instance has published, so that none of it is published again.

    As ``read_published`` and ``apply_published``, of all groups. Raises UserError.
    """
    await apply_published(state, await read_published(settings, state, find_forgery))
    state.applications.log_read_to_end()
    # Reassignments that ended before were counted by the instance that was active.
    state.reassignments.ended_counts.clear()


async def read_published(
    settings: Settings, state: ClusterState, find_forgery: FindForgery | None
) -> Published:
    """Read what any instance has published.

    ``find_forgery`` is None if recommendations are not signed. Otherwise a recommendation without a
    valid signature does not count, and its generation is decided. Raises UserError when a topic
    cannot be read.
    """
    accepts = None if find_forgery is None else partial(_is_genuine, state, find_forgery)
    read = await asyncio.gather(
        asyncio.to_thread(_last_of_each, settings, state, LEARNED_CONFIGS, None),
        asyncio.to_thread(_last_of_each, settings, state, RECOMMENDATIONS, accepts),
        asyncio.to_thread(_all, settings, state, MOVEMENTS),
    )
    return Published(*read)


async def apply_published(
    state: ClusterState, published: Published, of: Callable[[str], bool] | None = None
) -> None:
    """Apply what was published, of all groups or only those ``of`` which this instance takes.

    Movements of partitions belong to no group, and are applied each time.
    """
    turn = time.monotonic()
    topics: tuple[AppliedTopic[Any], ...] = (learned_configs, recommendations, movements)
    for topic, records in zip(topics, published, strict=True):
        for key, value in records:
            if of is None or _is_of(of, topic is movements, key, value):
                await topic.apply_in_turn(state, key, value)
            if time.monotonic() - turn > _TURN_SECONDS:
                await asyncio.sleep(0)
                turn = time.monotonic()
    state.applications.restore_published()


def _is_of(
    of: Callable[[str], bool], may_be_partitions: bool, key: bytes | None, value: bytes | None
) -> bool:
    """Return whether to apply a record; one that cannot be read is, so that it counts as refused."""
    try:
        if may_be_partitions:
            record = read_movement(key, value)
            return isinstance(record, PartitionMovementRecord) or of(record.group)
        return of(decode_group(key))
    except RefusedError:
        return True


def _all(settings: Settings, state: ClusterState, name: str) -> list[_Record]:
    return list(read_service_topic(settings, state, name, Progress()))


def _is_genuine(state: ClusterState, find_forgery: FindForgery, record: ConsumerRecord) -> bool:
    """Return whether a recommendation has a valid signature; count it as refused if not.

    A record whose key is no group is left to the decoder. So is a tombstone: it needs no signature,
    since it causes a decision instead of replacing one.
    """
    key, value = record.key, record.value
    try:
        group = decode_group(key)
    except RefusedError:
        return True
    if value is None:
        return True
    signature = record.headers.get(HEADER)
    signed = signature if isinstance(signature, bytes) else None
    objection = find_forgery(group, value, signed)
    if objection is not None:
        state.refused.refuse(RECOMMENDATIONS, key, objection.code, objection.message, now_ms())
    return objection is None


def _last_of_each(
    settings: Settings, state: ClusterState, name: str, accepts: Accepts | None
) -> list[_Record]:
    last: dict[bytes | None, deque[bytes | None]] = {}
    for key, value in read_service_topic(settings, state, name, Progress(), accepts):
        last.setdefault(key, deque(maxlen=MOST_VALUES)).append(value)
    return [(key, value) for key, values in last.items() for value in values]
