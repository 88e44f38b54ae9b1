"""Decide generations, and publish recommendations, learned configs and events of movements."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from functools import partial

import faust

from caughtup.agents.clock import now_ms
from caughtup.agents.kept_channel import KeptChannel, Wakeup
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_in_turns
from caughtup.agents.recent.words import task_movements
from caughtup.agents.recommendations.signing import Signer
from caughtup.agents.topics.outbox import Outbox
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.models.decisions.deciding import DecisionContext, decide_if_due
from caughtup.models.decisions.learned_configs import learned_record
from caughtup.models.decisions.life import GenerationLife, State
from caughtup.models.decisions.recommendation import encode_recommendation
from caughtup.models.errors import CaughtupError
from caughtup.models.records.keys import encode_group
from caughtup.models.records.learned_configs import FORMAT as LEARNED
from caughtup.models.records.movements import TASKS
from caughtup.models.records.recommendations import RecommendationRecord
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

_PATIENCE_LOOK_SECONDS = 1.0

#: An encoded recommendation, or why it cannot be encoded.
Written = bytes | CaughtupError


def recommend(
    app: faust.App,
    wakeups: KeptChannel[Wakeup],
    state: ClusterState,
    health: Health,
    recommendations: TopicWriter,
    learned: TopicWriter,
    movements: TopicWriter,
    hurry: asyncio.Event,
    signer: Signer,
    turn: asyncio.Lock,
) -> None:
    """Register the agent: whenever it is woken, it decides the generations that are due.

    It decides nothing while this instance stands by, or while it first reads
    ``__consumer_offsets``: most generations there are past. It holds ``turn`` meanwhile.
    """
    recommender = Recommender(state, recommendations, learned, movements, signer)

    @app.agent(wakeups, name="recommend")
    async def decide(woken: faust.StreamT[Wakeup]) -> None:
        async for wakeup in woken:
            if not health.is_alive:
                continue
            # Many wakeups may have come while a large group was decided.
            reasons = {wakeup, *wakeups.take_waiting()}
            async with turn:
                if Wakeup.RECREATED in reasons:
                    await recommender.publish_again()
                await recommender.decide()
            if Wakeup.GROUPS in reasons and state.applications.awaited():
                hurry.set()

    @app.timer(interval=_PATIENCE_LOOK_SECONDS)  # type: ignore[untyped-decorator]
    async def look_again() -> None:
        """Wake the agent for generations that have waited too long for end offsets."""
        if state.applications.awaited():
            await wakeups.put(Wakeup.TIME)


class Recommender:
    """Decides the generations that are due. It outlives restarts of its agent."""

    def __init__(
        self,
        state: ClusterState,
        recommendations: TopicWriter,
        learned: TopicWriter,
        movements: TopicWriter,
        signer: Signer,
    ) -> None:
        self._state = state
        self._recommendations = recommendations
        self._learned = learned
        self._movements = movements
        self._signer = signer
        self._outbox = Outbox(state.set_aside)

    async def decide(self) -> None:
        """Decide all generations that are due; return once their records are written.

        A decision, the configs that explain it and the movements that follow are one transaction. A
        large group takes seconds, in a thread.
        """
        state = self._state
        for undecided, known in state.due(now_ms()):
            generation, at_ms, news = undecided.generation, now_ms(), False
            group = generation.group
            with state.applications.deciding(group, at_ms, generation):
                life, written = await asyncio.to_thread(
                    _decide, state.cluster, undecided, known, at_ms
                )
                news_of = state.applications.settle(life)
                if life.decision is not None and life.decision.learned is not None:
                    self._put_learned(group)
                if written is not None and news_of is not None:
                    count = partial(state.applications.count_published, group)
                    self._publish(group, written, count)
                    log.info("%s", summary(news_of))
                    news = True
            if news:
                # Without transactions, the recommendation goes first: after a restart it is read
                # back, and missing movements are written from it.
                await self._tell_movements()
        await self._tell_movements()

    async def publish_again(self) -> None:
        """Publish the learned configs and newest recommendations again: a topic was recreated."""
        for group, _ in self._state.applications.learned.each():
            self._put_learned(group)
        for group, newest in self._state.applications.newest_published():
            self._publish(group, await asyncio.to_thread(_write, newest))
            await self._outbox.flush()  # one large recommendation is a transaction
        await self._outbox.flush()

    def _publish(
        self, group: str, written: Written, on_written: Callable[[], None] | None = None
    ) -> None:
        topic, key = self._recommendations, encode_group(group)
        if isinstance(written, CaughtupError):
            self._state.set_aside.add(topic.name, key, written.code, written.message, now_ms())
            return
        headers = self._signer.headers(group, written)
        self._outbox.put(topic, key, written, headers=headers, on_written=on_written)

    def _put_learned(self, group: str) -> None:
        """Queue a group's learned configs, which go before the decisions that they explain."""
        known = self._state.applications.learned.newest(group)
        if known is not None:
            value = LEARNED.encode(learned_record(group, known))
            self._outbox.put(self._learned, encode_group(group), value)

    async def _tell_movements(self) -> None:
        await done_in_turns(self._put_movements())
        await self._outbox.flush()

    def _put_movements(self) -> Generator[None, None, None]:
        now, told = now_ms(), []
        for event in self._state.applications.movement_events(now):
            with self._state.faults.isolated("movements", event.group, now):
                value = TASKS.encode(event)
                self._outbox.put(self._movements, encode_group(event.group), value)
                told.append(event)
            yield
        for happening in task_movements(told):
            self._state.recent.happenings.note(happening)


def _decide(
    cluster: str, undecided: GenerationLife, known: DecisionContext, now_ms: int
) -> tuple[GenerationLife, Written | None]:
    """Return a generation in its next state, and its encoded recommendation if it has a new one."""
    life = decide_if_due(cluster, undecided, known, now_ms)
    if life is undecided or life.decision is None or life.state is State.PUBLISHED:
        return life, None
    recommended = life.decision.recommendation
    return life, None if recommended is None else _write(recommended)


def _write(recommended: RecommendationRecord) -> Written:
    try:
        return encode_recommendation(recommended)
    except CaughtupError as error:
        return error


def summary(recommended: RecommendationRecord) -> str:
    """Describe a recommendation in one line, for the log."""
    leader = recommended.leader
    why = f" ({leader.why})" if leader.why else ""
    return (
        f"{recommended.group} generation {recommended.generation}: "
        f"{len(recommended.movements)} movements, leader {leader.result}{why}"
    )
