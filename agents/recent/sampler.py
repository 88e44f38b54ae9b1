"""Fill the last hours in memory: look for events every 2 s, and sample figures every 10 s."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import count

from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_in_turns
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.group_lag import GroupLag, TopicLag, group_lag, topic_lags
from caughtup.models.recent.rings import STEP_MS
from caughtup.models.state.cluster import ClusterState

_LOOK_SECONDS = 2.0
_LOOKS_A_SAMPLE = STEP_MS // 2_000
#: The pause between two turns (``process/turns.py``): sampling can wait.
_PAUSE_SECONDS = 0.01


class Sampler(Service):
    """Fills ``state.recent``, once ``__consumer_offsets`` was read to its end."""

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self, state: ClusterState, health: Health, clock: Callable[[], int] = now_ms
    ) -> None:
        super().__init__()
        self._state = state
        self._health = health
        self._clock = clock
        #: By group: its ``ClusterState.at_rest`` when its lag was summed up, and the lag.
        self._at_rest: dict[str, tuple[object | None, GroupLag]] = {}

    @Service.task
    async def _run(self) -> None:
        for looks in count():
            await self.sleep(_LOOK_SECONDS)
            if self.should_stop:
                return
            if self._health.ready:
                steps = self.steps(sampling=looks % _LOOKS_A_SAMPLE == 0)
                await done_in_turns(steps, _PAUSE_SECONDS)

    def steps(self, *, sampling: bool) -> Generator[None, None, None]:
        """Look at every group and reassignment once, in steps; with ``sampling`` add their figures.

        A failure affects one group or partition only.
        """
        state = self._state
        whole = {"lag": 0, "groups_behind": 0, "warmups": 0, "restoring": 0}
        for group in state.group_names():
            now = self._clock()
            with state.faults.isolated("page", group, now):
                self._look(group, now)
                if sampling:
                    for name, figure in self._sample(group, now).items():
                        whole[name] += figure
            yield
        moving = state.reassignments.ongoing
        for partition in sorted(moving):
            with state.faults.isolated("page", str(partition), self._clock()):
                self._observe_reassignment(partition)
            yield
        if sampling:
            with state.faults.isolated("page", "reassignments", self._clock()):
                state.recent.cluster.add(self._clock(), whole | self._moving())
        groups = set(state.group_names())  # as of now: some may have appeared meanwhile
        state.recent.keep_only(groups, moving.keys())
        for group in self._at_rest.keys() - groups:
            del self._at_rest[group]

    def _look(self, group: str, now: int) -> None:
        state = self._state
        state.recent.observe(group, state.assessments.verdicts.get(group), now)
        state.rebalancing.settle(group, now)

    def _observe_reassignment(self, partition: TopicPartition) -> None:
        tracked = self._state.reassignments.ongoing.get(partition)
        if tracked is None:
            return
        assessed = self._state.reassignment_watch.find(partition, tracked)
        if assessed is not None:
            why = assessed.cause and assessed.cause.replace("-", " ")
            self._state.recent.observe_reassignment(partition, assessed.verdict, why, self._clock())

    def _sample(self, group: str, now: int) -> dict[str, int]:
        """Add a group's figures; return those that are added up for the cluster."""
        state = self._state
        has_tasks = group in state.applications or group in state.groups.streams
        lag = self._lag(group, now, has_tasks=has_tasks)
        copies = building(state.task_rows(group)) if has_tasks else None
        state.recent.sample(group, now, lag.lag, lag.positions, copies)
        fares_badly = state.recent.not_ok_since(group) is not None
        return {"lag": lag.at_least or 0, "groups_behind": int(fares_badly), **(copies or {})}

    def _lag(self, group: str, now: int, *, has_tasks: bool) -> GroupLag:
        """Return a group's lag, summed up again only if something of the group has changed."""
        state = self._state
        at_rest = state.at_rest(group)
        kept = self._at_rest.pop(group, None)
        if at_rest is None or kept is None or kept[0] is not at_rest:
            topics = list(topic_lags(state.commits, group, state.ends))
            membership = state.groups.membership(group)
            kept = at_rest, group_lag(state.commits, group, membership, state.ends, topics)
            if has_tasks:
                self._stands_still(group, topics, now)
        if at_rest is not None:
            self._at_rest[group] = kept
        return kept[1]

    def _stands_still(self, group: str, topics: Sequence[TopicLag], now: int) -> None:
        """Record which partitions of an application have lag and no new commits."""
        still = self._state.recent.standing_still(group)
        for one in topics:
            still.observe(one.topic, one.numbers, one.commit_ms, one.known & (one.lag > 0), now)
        still.keep_only({one.topic for one in topics})

    def _moving(self) -> dict[str, float]:
        """Return the number of reassignments and, if all are known, the bytes left."""
        tracker, watch = self._state.reassignments, self._state.reassignment_watch
        figures: dict[str, float] = {"reassignments": len(tracker.ongoing)}
        left = 0.0
        for partition, tracked in tracker.ongoing.items():
            assessed = watch.find(partition, tracked)
            if assessed is None or assessed.bytes_remaining is None:
                return figures
            left += assessed.bytes_remaining
        return {**figures, "bytes_left": left}


def building(copies: Iterable[TaskCopy]) -> dict[str, int]:
    """Count the copies that are being built: warm-ups, and restoring actives."""
    roles = [copy.role for copy in copies]
    return {"warmups": roles.count("warmup"), "restoring": roles.count("restoring")}
