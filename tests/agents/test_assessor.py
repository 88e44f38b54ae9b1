"""What the assessor does beside its rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from caughtup.agents.assessor import Assessor
from caughtup.agents.process.health import Health
from caughtup.models.polls.batch import decode_batch
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.group_decisions import AT_ONCE
from tests.support.groups.coordinator import AT_MS, PlayedGroup, know, read


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


async def test_a_group_that_appears_within_a_round_keeps_its_decision() -> None:
    state, first = ClusterState("c", {}), PlayedGroup("a", topics={"t": (b"t" * 16, 1)})
    know(state, first)
    first.join("m", ["t"])
    read(state, first.take())
    late, decided = PlayedGroup("b", topics=first.topics), []
    assess = state.assess

    def assess_while_it_appears(*given: Any) -> Iterator[object]:
        if not decided:
            late.join("m", ["t"])
            read(state, late.take())
            decided.append(state.group_decisions.last("b"))
        yield from assess(*given)

    state.assess = assess_while_it_appears  # type: ignore[method-assign]
    async with Assessor(state, Health(ready=True)), asyncio.timeout(20):
        while "b" not in state.assessments.verdicts:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert decided[0] is not None
    assert state.group_decisions.last("b") == decided[0]
    assert sum(state.group_decisions.counts("b").values()) == 1
