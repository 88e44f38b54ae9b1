"""Generations → decisions → recommended assignments, with the reason for every move."""

from __future__ import annotations

import asyncio

import faust

from caughtup.agents.kept_channel import KeptChannel
from caughtup.agents.process.health import Health
from caughtup.agents.process.wakeups import Wakeup
from caughtup.agents.recommendations.recommender import Recommender
from caughtup.agents.recommendations.signing import Signer
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.models.state.cluster import ClusterState

_PATIENCE_LOOK_SECONDS = 1.0


def recommend(
    app: faust.App,
    wakeups: KeptChannel,
    state: ClusterState,
    health: Health,
    recommendations: TopicWriter,
    learned: TopicWriter,
    movements: TopicWriter,
    hurry: asyncio.Event,
    signer: Signer,
) -> None:
    """Register the recommend agent: woken when something changed, it decides what is due.

    Nothing is decided while the log is still read: what comes then is mostly the past. Nor is it
    by an instance that stands by.
    """
    recommender = Recommender(state, recommendations, learned, movements, signer)

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

    @app.timer(interval=_PATIENCE_LOOK_SECONDS)  # type: ignore[untyped-decorator]
    async def look_again() -> None:
        """Wake the agent for generations whose end offsets never come."""
        if state.applications.awaited():
            await wakeups.put(Wakeup.TIME)
