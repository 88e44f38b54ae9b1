"""A large group on a real event loop: others have their turn, and it costs as much as it is large.

Not by the clock: by what the loop's thread calls. ``caughtup bench loop`` has the times.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from caughtup.agents.assessor import Assessor
from caughtup.agents.clock import now_ms
from caughtup.agents.offsets.agent import Changes
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_in_turns, in_turns
from caughtup.agents.recommendations import agent as recommender
from caughtup.agents.recommendations.agent import Recommender
from caughtup.agents.recommendations.signing import Signer
from caughtup.agents.topics.restoration import movements, recommendations
from caughtup.agents.web.metrics.exposition import exposition
from caughtup.agents.web.page.parts import whole_steps
from caughtup.demo.fleet.large_group import CHANGELOG, END_OFFSET, GROUP, LargeGroup
from caughtup.models.decisions import deciding
from caughtup.models.decisions.life import State
from caughtup.models.groups import membership
from caughtup.models.offsets import EndOffsets
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.polls.batch import Record, decode_batch
from caughtup.models.state.cluster import ClusterState
from tests.support.own_topics.kept_topic import KeptTopic

#: Members and tasks of the smaller group, and how many times more the larger one has.
FEW, TIMES = 40, 4


class Calls:
    """Counts what the thread that it is entered in calls, by what was going on."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    @contextmanager
    def counted(self, what: str) -> Iterator[None]:
        count = 0

        def profile(frame: FrameType, event: str, argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.of[what] += count


class Service:
    """The parts of the service that a group goes through, but for Kafka."""

    def __init__(self, group: LargeGroup, calls: Calls) -> None:
        told = ApplicationParameters(dict(group.config), {0: (CHANGELOG,)})
        self.state = ClusterState("cluster-1", {GROUP: told})
        self.recommendations, self.movements = KeptTopic("recommendations"), KeptTopic("movements")
        self.learned = KeptTopic("learned-configs")
        self._recommender = Recommender(
            self.state,
            self.recommendations,  # type: ignore[arg-type]
            self.learned,  # type: ignore[arg-type]
            self.movements,  # type: ignore[arg-type]
            Signer(None, "cluster-1"),
        )
        self._group = group
        self._calls = calls
        self._health = Health(ready=True)

    async def take(self, generation: Record) -> None:
        """Read a generation, and decide it once the ends of its logs were looked at."""
        changes = await asyncio.to_thread(lambda: Changes.of(decode_batch([generation])))
        self._look(now_ms() - 60_000)
        with self._calls.counted("applying a generation"):
            self.state.apply_batch(changes.batch, now_ms(), changes.groups)
        with self._calls.counted("finding it not due"):
            await self._recommender.decide()
        self._look(now_ms())
        with self._calls.counted("deciding, settling, telling movements"):
            await self._recommender.decide()

    def _look(self, at_ms: int) -> None:
        for partition in self._group.partitions():
            self.state.apply_ends(partition, EndOffsets(0, END_OFFSET, END_OFFSET, at_ms))

    async def serve(self) -> None:
        """Assess the group, and answer a scrape and the page."""
        self.state.apply_batch(decode_batch(list(self._group.commits(now_ms()))), now_ms())
        with self._calls.counted("assessing"):
            await Assessor(self.state, self._health)._round()
        with self._calls.counted("a scrape"):
            async for _ in in_turns(exposition(self.state, self._health)):
                pass
        with self._calls.counted("the page"):
            await done_in_turns(whole_steps(self.state, self._health, now_ms()))

    async def restarted(self, generation: Record) -> Service:
        """Read back what was published, and take the newest generation up."""
        again = Service(self._group, self._calls)
        for key, value in self.recommendations.sent:
            recommendations.apply_record(again.state, key, value)
        for key, value in self.movements.sent:
            movements.apply_record(again.state, key, value)
        await again.take(generation)
        return again


async def story(size: int) -> tuple[Calls, Service]:
    """Let a group start, grow by a quarter and outlive a restart of the service."""
    calls, group = Calls(), LargeGroup(size, size, standbys=1)
    service = Service(group, calls)
    await service.take(group.rebalance(now_ms()))
    await service.serve()
    group.join(size // 4)
    newest = group.rebalance(now_ms())
    await service.take(newest)
    await service.serve()
    again = await service.restarted(newest)
    await again.serve()
    return calls, again


@pytest.fixture(autouse=True)
def _pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caughtup.agents.assessor._PAUSE_SECONDS", 0)


async def test_what_the_loops_thread_does_grows_as_the_group_and_not_as_its_square() -> None:
    few, _ = await story(FEW)
    many, service = await story(TIMES * FEW)
    known = service.state.applications[GROUP]
    assert known.latest is not None
    assert known.latest.state is State.PUBLISHED
    assert known.exact_counts == {"match": 1}
    assert service.recommendations.sent == []
    print({what: (few.of[what], many.of[what]) for what in sorted(few.of)})
    for what, count in few.of.items():
        assert many.of[what] < 1.5 * TIMES * count, what


async def test_what_takes_long_is_on_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[str, set[int]] = {}

    def watch(module: Any, name: str) -> None:
        work: Callable[..., Any] = getattr(module, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            threads.setdefault(name, set()).add(threading.get_ident())
            return work(*args, **kwargs)

        monkeypatch.setattr(module, name, watched)

    watch(membership, "read_streams_generation")
    watch(membership, "classic_membership")
    watch(deciding, "gather_inputs")
    watch(deciding, "learn")
    watch(deciding, "recommendation")
    watch(deciding, "read_back")
    watch(deciding, "project")
    watch(deciding, "assigned_copies")
    watch(recommender, "encode_recommendation")
    await story(FEW)
    assert len(threads) == 9
    assert all(threading.get_ident() not in used for used in threads.values())
