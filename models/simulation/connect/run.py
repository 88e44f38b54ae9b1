"""A Connect group as it runs in virtual time: workers come and go, its leader decides and remembers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caughtup.models.connect.decision import Decision
from caughtup.models.connect.eager import decide_eager
from caughtup.models.connect.incremental import decide_incremental
from caughtup.models.connect.round import MAX_DELAY_MS, NO_MEMORY, Round
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.simulation.connect.worker import Worker
from caughtup.models.simulation.coordinator import ClassicCoordinator
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.time_line import Activity, TimeLine
from caughtup.models.simulation.virtual_time import VirtualTime
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks

#: A Connect worker's own defaults where they differ from a consumer's.
WORKER_TIMINGS = Timings(session_timeout_ms=10_000, rebalance_timeout_ms=60_000)


class ConnectRun:
    """A group of workers. ``connectors`` are connector → number of tasks, and may be changed.

    ``decisions`` are all that leaders decided, in order. ``epoch_ms`` is the leader's clock at the
    story's start; ``eager`` is protocol 0.
    """

    def __init__(
        self,
        connectors: Mapping[str, int],
        *,
        max_delay_ms: int = MAX_DELAY_MS,
        timings: Timings = WORKER_TIMINGS,
        eager: bool = False,
        epoch_ms: int = 1,
    ) -> None:
        self.time = VirtualTime()
        self.line = TimeLine()
        self.connectors = dict(connectors)
        self.workers: dict[str, Worker] = {}
        self.decisions: list[Decision] = []
        self._eager = eager
        self._epoch_ms = epoch_ms
        self._max_delay_ms = max_delay_ms
        self._leader: str | None = None
        self._memory = NO_MEMORY
        self.coordinator = ClassicCoordinator(self.time, self._decide, timings, self._completed)

    @property
    def items(self) -> list[str]:
        """All connectors and tasks that are configured, sorted."""
        tasks = (
            str(ConnectorTaskId(name, number))
            for name, count in self.connectors.items()
            for number in range(count)
        )
        return sorted((*self.connectors, *tasks))

    def start(self, name: str) -> None:
        """Start a worker, without work: it joins the group."""
        worker = self.workers.get(name)
        if worker is None:
            worker = self.workers[name] = Worker(self, name, eager=self._eager)
        self.line.mark(self.time.now_ms, "start", f"{name} starts")
        worker.start()
        self.coordinator.join(worker)

    def resume(
        self, owned: Mapping[str, ConnectorsAndTasks], leader: str, generation: int = 1
    ) -> None:
        """Begin with workers that are in a stable group and run what they own.

        The leader has led before: what it assigned it remembers, and no delay.
        """
        for name, work in owned.items():
            worker = self.workers[name] = Worker(self, name, eager=self._eager)
            worker.start()
            worker.begin(work)
        self._leader = self.workers[leader].member_id
        round_ = Round(self._epoch_ms, dict(self.connectors), dict(owned))
        if not self._eager:
            _, self._memory = decide_incremental(round_, NO_MEMORY, self._max_delay_ms)
        self.coordinator.resume(self.workers.values(), generation, self._leader)

    def stop(self, name: str) -> None:
        """Stop a worker in order: it leaves the group."""
        self.line.mark(self.time.now_ms, "stop", f"{name} stops")
        self.workers[name].stop()
        self.coordinator.leave(self.workers[name].member_id)

    def kill(self, name: str) -> None:
        """Kill a worker: the group learns of it by the session timeout."""
        self.line.mark(self.time.now_ms, "kill", f"{name} is killed")
        self.workers[name].stop()
        self.coordinator.falls_silent(self.workers[name].member_id)

    def configure(self, connectors: Mapping[str, int]) -> None:
        """Set the connectors: the leader reads of it and asks for a rebalance."""
        self.connectors = dict(connectors)
        self.line.mark(self.time.now_ms, "configure", f"{len(connectors)} connectors")
        if self.coordinator.leader is not None:
            self.ask(self.coordinator.leader)

    def does(self, item: str, worker: str, activity: Activity | None) -> None:
        """Note what a worker's connector or task does."""
        self.line.does(self.time.now_ms, item, worker, activity)

    def ask(self, member_id: str) -> None:
        """Let a member ask for a rebalance."""
        self.coordinator.rejoin_now(member_id)

    def _completed(self, generation: int, members: list[str]) -> None:
        self.line.mark(
            self.time.now_ms, "rebalance", f"generation {generation}: {len(members)} workers"
        )

    def _decide(self, leader: str, said: Mapping[str, Any]) -> Mapping[str, Any]:
        round_ = Round(self._epoch_ms + self.time.now_ms, dict(self.connectors), _latest(said))
        if self._eager:
            decision = decide_eager(round_)
        else:
            if leader != self._leader:
                self._leader, self._memory = leader, NO_MEMORY
            decision, self._memory = decide_incremental(round_, self._memory, self._max_delay_ms)
        self.decisions.append(decision)
        return dict.fromkeys(said, decision)


def _latest(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what each worker said under its name; a worker that started again counts once."""
    return dict(said.values())
