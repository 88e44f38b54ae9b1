"""What the assessor does beside its rounds."""

from __future__ import annotations

import asyncio

from caughtup.agents.assessor import Assessor
from caughtup.agents.process.health import Health
from caughtup.models.polls.batch import decode_batch
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.group_decisions import AT_ONCE
from tests.support.groups.coordinator import AT_MS, PlayedGroup, know


async def test_a_large_group_is_decided_again_soon() -> None:
    state, group = ClusterState("c", {}), PlayedGroup("g", topics={"t": (b"t" * 16, AT_ONCE + 1)})
    know(state, group)
    group.join("a", ["t"])
    state.apply_batch(decode_batch(group.take()), AT_MS)
    assert state.group_decisions.last("g") is None
    async with Assessor(state, Health()), asyncio.timeout(20):
        while (decision := state.group_decisions.last("g")) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert decision.result == "match"
