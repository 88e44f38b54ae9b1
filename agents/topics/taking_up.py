"""What the service published before a restart, taken up again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from caughtup.agents.topics.decoding import taking
from caughtup.models.records.decoding import TOO_MANY, RefusedError, require_past
from caughtup.models.records.fields import builtins_of
from caughtup.models.records.movements import PartitionMovementRecord, read_movement
from caughtup.models.records.recommendations import read_recommendation_record
from caughtup.models.records.topics import MOVEMENTS, RECOMMENDATIONS
from caughtup.models.state.cluster import ClusterState

#: What is smaller takes a few milliseconds to read.
_LARGE_BYTES = 1 << 16


def take_published(
    state: ClusterState, key: bytes | None, value: bytes | None, clock_ms: int | None = None
) -> None:
    """Take one record of caughtup-recommended-assignments, unless it is refused.

    ``clock_ms``: what to hold its times against.
    """
    with taking(state, RECOMMENDATIONS, key, clock_ms) as clock:
        _keep(state, *read_recommendation_record(key, value, clock))


async def take_published_aside(state: ClusterState, key: bytes | None, value: bytes | None) -> None:
    """Take one as ``take_published`` does; a thread reads it where that takes long."""
    if len(value or b"") < _LARGE_BYTES:
        take_published(state, key, value)
        return
    with taking(state, RECOMMENDATIONS, key) as clock:
        found = await asyncio.to_thread(read_recommendation_record, key, value, clock)
        _keep(state, *found)


def _keep(state: ClusterState, group: str, record: Mapping[str, Any] | None) -> None:
    if not state.applications.apply_published(group, record):
        raise RefusedError(TOO_MANY, "recommendations for too many groups are kept")


def take_movement(
    state: ClusterState, key: bytes | None, value: bytes | None, clock_ms: int | None = None
) -> None:
    """Take one record of caughtup-movements, unless it is refused.

    ``clock_ms``: what to hold its time against.
    """
    with taking(state, MOVEMENTS, key, clock_ms) as clock:
        record = read_movement(key, value)
        require_past(record.at_ms, clock)
        if isinstance(record, PartitionMovementRecord):
            state.partition_movements.restore(builtins_of(record))
        else:
            state.applications.movements.restore(builtins_of(record))
