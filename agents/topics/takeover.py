"""What an instance does once it is elected, before it counts as the active one."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.retained import read_own
from caughtup.agents.topics.taking_up import take_movement, take_published_aside
from caughtup.models.records.topics import MOVEMENTS, RECOMMENDATIONS
from caughtup.models.state.cluster import ClusterState

#: Recommendations of a group that count: a follower may have followed one before the last.
_KEPT = 4
_TURN_SECONDS = 0.01

_Record = tuple[bytes | None, bytes | None]


async def take_over(settings: Settings, state: ClusterState) -> None:
    """Take up what was published so far, by whichever instance: none of it is said again.

    Raises UserError when it can't be read.
    """
    published, movements = await asyncio.gather(
        asyncio.to_thread(_last_of_each, settings, state, RECOMMENDATIONS),
        asyncio.to_thread(_all, settings, state, MOVEMENTS),
    )
    turn = time.monotonic()
    for topic, records in ((RECOMMENDATIONS, published), (MOVEMENTS, movements)):
        for key, value in records:
            if topic == RECOMMENDATIONS:
                await take_published_aside(state, key, value)
            else:
                take_movement(state, key, value)
            if time.monotonic() - turn > _TURN_SECONDS:
                await asyncio.sleep(0)
                turn = time.monotonic()
    state.applications.take_up_published()
    state.applications.leave_the_past()
    # What ended while another instance counted is counted.
    state.reassignments.ended_counts.clear()


def _all(settings: Settings, state: ClusterState, name: str) -> list[_Record]:
    return list(read_own(settings, state, name, Progress()))


def _last_of_each(settings: Settings, state: ClusterState, name: str) -> list[_Record]:
    last: dict[bytes | None, deque[bytes | None]] = {}
    for key, value in read_own(settings, state, name, Progress()):
        last.setdefault(key, deque(maxlen=_KEPT)).append(value)
    return [(key, value) for key, values in last.items() for value in values]
