"""Generations → decisions → recommended assignments, with the reason for every move."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Mapping
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import faust
import msgspec

from caughtup.agents.clock import now_ms
from caughtup.agents.health import Health
from caughtup.agents.kept_channel import KeptChannel
from caughtup.agents.outbox import Outbox
from caughtup.agents.publisher import OwnTopicWriter
from caughtup.agents.recommendation_records import encode
from caughtup.agents.signing import Signer
from caughtup.agents.streaming import done_in_turns
from caughtup.models.deciding import DecidedGeneration
from caughtup.models.errors import CaughtupError
from caughtup.models.state import ClusterState
from caughtup.models.undecided import UndecidedGeneration, WaitingGeneration, decide_if_due

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


class Decided(NamedTuple):
    """A decision, and the bytes of its record, or why they can't be had; neither without one."""

    generation: DecidedGeneration | WaitingGeneration
    value: bytes | None
    refusal: CaughtupError | None


class Recommender:
    """Decides what is due, and writes recommendations and events of movements."""

    def __init__(
        self,
        state: ClusterState,
        recommendations: OwnTopicWriter,
        movements: OwnTopicWriter,
        signer: Signer,
    ) -> None:
        self._state = state
        self._signer = signer
        self._recommendations = recommendations
        self._movements = movements
        self._outbox = Outbox(state.set_aside)

    async def decide(self) -> None:
        """Decide all that is due, and return once what follows from it is written.

        A large group takes seconds: a thread does it, and others have their turn meanwhile.
        """
        state = self._state
        for undecided in state.due(now_ms()):
            generation, at_ms, news = undecided.generation, now_ms(), False
            with state.applications.deciding(generation.group, at_ms, generation):
                decided = await asyncio.to_thread(_decide, state.cluster, undecided, at_ms)
                record = None if decided is None else state.applications.settle(decided.generation)
                if decided is not None and record is not None:
                    self._put(record, decided)
                    log.info("%s", summary(record))
                    news = True
            if news:
                # On the topic before anything that follows from it: at a restart, what was
                # decided is read back, and what is missing of its movements is written then.
                await self._outbox.flush()
                await self._tell_movements()
        await self._tell_movements()

    async def publish_again(self) -> None:
        """Publish the newest recommendation of each group again: its topic was made anew."""
        for group, record in self._state.applications.newest_published():
            value = await asyncio.to_thread(encode, record)
            headers = self._signer.headers(group, value)
            self._outbox.put(self._recommendations, group.encode(), value, headers=headers)
        await self._outbox.flush()

    def _put(self, record: Mapping[str, Any], decided: Decided) -> None:
        group, topic = record["group"], self._recommendations
        if decided.value is not None:
            written = partial(self._state.applications.count_published, group)
            headers = self._signer.headers(group, decided.value)
            self._outbox.put(
                topic, group.encode(), decided.value, headers=headers, on_written=written
            )
        elif (refusal := decided.refusal) is not None:
            self._state.set_aside.add(
                topic.name, group.encode(), refusal.code, refusal.message, now_ms()
            )

    async def _tell_movements(self) -> None:
        await done_in_turns(self._put_movements())
        await self._outbox.flush()

    def _put_movements(self) -> Generator[None, None, None]:
        now = now_ms()
        for event in self._state.applications.movement_events(now):
            with self._state.faults.isolated("movements", event["group"], now):
                value = msgspec.json.encode(event)
                self._outbox.put(self._movements, event["group"].encode(), value)
            yield


def recommend(
    app: faust.App,
    wakeups: KeptChannel,
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
    recommender = Recommender(state, recommendations, movements, signer)

    @app.agent(wakeups, name="recommend")
    async def decide(woken: faust.StreamT[Wakeup]) -> None:
        async for wakeup in woken:
            if not health.is_alive:
                continue
            # While a large group was decided, many more may have come.
            reasons = {wakeup, *wakeups.take_waiting()}
            if Wakeup.RECREATED in reasons:
                await recommender.publish_again()
            await recommender.decide()
            if Wakeup.GROUPS in reasons and state.applications.awaited():
                hurry.set()

    @app.timer(interval=_PATIENCE_LOOK_SECONDS)
    async def look_again() -> None:
        """Wake the agent for generations whose end offsets never come."""
        if state.applications.awaited():
            await wakeups.put(Wakeup.TIME)


def _decide(cluster: str, undecided: UndecidedGeneration, now_ms: int) -> Decided | None:
    """Decide a generation if it is due, and write the record down."""
    decided = decide_if_due(cluster, undecided, now_ms)
    if decided is None:
        return None
    if isinstance(decided, WaitingGeneration) or decided.record is None or decided.read_back:
        return Decided(decided, None, None)
    try:
        return Decided(decided, encode(decided.record), None)
    except CaughtupError as error:
        return Decided(decided, None, error)


def summary(record: Mapping[str, Any]) -> str:
    """Say in one line what was decided."""
    leader = record["leader"]
    why = f" ({leader['why']})" if leader["why"] else ""
    return (
        f"{record['group']} generation {record['generation']}: "
        f"{len(record['movements'])} movements, leader {leader['result']}{why}"
    )
