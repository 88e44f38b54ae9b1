"""Generations → decisions → recommended assignments, with the reason for every move."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from enum import Enum
from typing import Any

import faust
import msgspec

from caughtup.agents.clock import now_ms
from caughtup.agents.health import Health
from caughtup.agents.outbox import Outbox
from caughtup.agents.publisher import OwnTopicWriter
from caughtup.agents.signing import Signer
from caughtup.models.deciding import decide_generation
from caughtup.models.state import ClusterState

log = logging.getLogger(__name__)

_PATIENCE_LOOK_SECONDS = 1.0


class Wakeup(Enum):
    """What may have made a decision due: a generation, the end offsets it awaits, or time.

    Or positions that applications report, by which copies have caught up since. Or the topic of
    recommendations was made anew.
    """

    GROUPS = "groups"
    POSITIONS = "positions"
    END_OFFSETS = "end_offsets"
    TIME = "time"
    RECREATED = "recreated"


def recommend(
    app: faust.App,
    wakeups: faust.ChannelT,
    state: ClusterState,
    health: Health,
    recommendations: OwnTopicWriter,
    movements: OwnTopicWriter,
    hurry: asyncio.Event,
    signer: Signer,
) -> None:
    """Register the recommend agent: woken when something changed, it decides what is due.

    Nothing is decided while the log is still read: what comes then is mostly the past. Nor is it
    by an instance that stands by.
    """
    outbox = Outbox()

    async def tell_movements() -> None:
        now = now_ms()
        for event in state.applications.movement_events(now):
            with state.faults.isolated("movements", event["group"], now):
                outbox.put(movements, event["group"].encode(), msgspec.json.encode(event))
        await outbox.flush()

    def publish(group: str, record: Mapping[str, Any]) -> None:
        value = msgspec.json.encode(record)
        headers = signer.headers(group, value)
        outbox.put(recommendations, group.encode(), value, headers=headers)

    @app.agent(wakeups, name="recommend")
    async def decide(woken: faust.StreamT[Wakeup]) -> None:
        async for wakeup in woken:
            if not health.is_alive:
                continue
            if wakeup is Wakeup.RECREATED:
                for group, record in state.applications.newest_published():
                    publish(group, record)
                await outbox.flush()
            for due in state.due(now_ms()):
                generation, at_ms, news = due.generation, now_ms(), False
                with state.applications.deciding(generation.group, at_ms, generation):
                    # A large group takes long to decide; others have their turn meanwhile.
                    decided = await asyncio.to_thread(decide_generation, state.cluster, due, at_ms)
                    record = state.applications.settle(decided)
                    if record is not None:
                        publish(record["group"], record)
                        log.info("%s", summary(record))
                        news = True
                if news:
                    # On the topic before anything that follows from it: at a restart, what was
                    # decided is read back, and what is missing of its movements is written then.
                    await outbox.flush()
                    await tell_movements()
            await tell_movements()
            if wakeup is Wakeup.GROUPS and state.applications.awaited():
                hurry.set()

    @app.timer(interval=_PATIENCE_LOOK_SECONDS)
    async def look_again() -> None:
        """Wake the agent for generations whose end offsets never come."""
        if state.applications.awaited():
            await wakeups.put(Wakeup.TIME)


def summary(record: Mapping[str, Any]) -> str:
    """Say in one line what was decided."""
    leader = record["leader"]
    why = f" ({leader['why']})" if leader["why"] else ""
    return (
        f"{record['group']} generation {record['generation']}: "
        f"{len(record['movements'])} movements, leader {leader['result']}{why}"
    )
