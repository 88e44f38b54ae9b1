"""A Connect group in virtual time: workers come and go, the leader decides and remembers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from caughtup.models.connect.assignors import decide_eager, decide_incremental
from caughtup.models.connect.decision import (
    MAX_DELAY_MS,
    NO_MEMORY,
    ConnectDecision,
    Round,
    owned_after,
)
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.simulation.coordinator import ClassicCoordinator
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.time_line import Activity, TimeLine
from caughtup.models.simulation.virtual_time import Event, VirtualTime
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks

#: A Connect worker's own defaults where they differ from a consumer's.
WORKER_TIMINGS = Timings(session_timeout_ms=10_000, rebalance_timeout_ms=60_000)


#: A worker's name and its work.
_Subscription = tuple[str, ConnectorsAndTasks]


class Worker:
    """A worker; its member id is its name and the number of its starts.

    ``eager``: it stops all of its work before it joins again, as with protocol 0. Connect has no
    static members.
    """

    instance_id: str | None = None

    def __init__(self, group: ConnectRun, name: str, *, eager: bool) -> None:
        self._group = group
        self._eager = eager
        self._starts = 0
        self._again: Event | None = None
        self.name = name
        self.member_id = name
        self.answers = False
        self.owned = NOTHING

    def start(self) -> None:
        """Start without work, as a new member."""
        self._starts += 1
        self.member_id = f"{self.name}-{self._starts}"
        self.answers = True

    def begin(self, work: ConnectorsAndTasks) -> None:
        """Run some work at the start of the simulation."""
        self._run(work)

    def stop(self) -> None:
        """Stop, and stop all work."""
        self.answers = False
        self._cancel()
        self._run(NOTHING)

    def prepare(self) -> None:
        """Stop all work before joining again, if the protocol is eager."""
        if self._eager:
            self._run(NOTHING)

    def subscription(self) -> _Subscription:
        """Return the worker's name and its work."""
        return self.name, self.owned

    def assigned(self, _generation: int, decision: ConnectDecision) -> None:
        """Stop and start work, and join again: at once after a revocation, else after the delay."""
        self._cancel()
        told = decision.workers[self.name]
        self._run(owned_after(self.owned, told))
        if told.revoked:
            self._group.ask(self.member_id)
        elif decision.delay_ms:
            self._again = self._group.time.after(decision.delay_ms, self._ask_again)

    def _ask_again(self) -> None:
        self._again = None
        self._group.ask(self.member_id)

    def _cancel(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None

    def _run(self, work: ConnectorsAndTasks) -> None:
        before, after = set(items(self.owned)), set(items(work))
        for item in sorted(before - after):
            self._group.does(item, self.name, None)
        for item in sorted(after - before):
            self._group.does(item, self.name, Activity.PROCESSING)
        self.owned = work


def items(work: ConnectorsAndTasks) -> Iterable[str]:
    """Yield connectors and tasks as text."""
    yield from work.connectors
    yield from map(str, work.tasks)


class ConnectRun:
    """A group of workers. ``connectors``, which may change, maps each to its number of tasks.

    ``decisions`` are all of the leaders' decisions, in order. ``epoch_ms`` is the leader's clock at
    the start; ``eager`` is protocol 0.
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
        self.decisions: list[ConnectDecision] = []
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
        """Start a worker, which joins the group without work."""
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

        The leader led before: it remembers what it assigned, and no delay.
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
        """Kill a worker: the group notices it by the session timeout."""
        self.line.mark(self.time.now_ms, "kill", f"{name} is killed")
        self.workers[name].stop()
        self.coordinator.falls_silent(self.workers[name].member_id)

    def configure(self, connectors: Mapping[str, int]) -> None:
        """Set the connectors; the leader reads them and requests a rebalance."""
        self.connectors = dict(connectors)
        self.line.mark(self.time.now_ms, "configure", f"{len(connectors)} connectors")
        if self.coordinator.leader is not None:
            self.ask(self.coordinator.leader)

    def does(self, item: str, worker: str, activity: Activity | None) -> None:
        """Record what a worker's connector or task does."""
        self.line.does(self.time.now_ms, item, worker, activity)

    def ask(self, member_id: str) -> None:
        """Make a member request a rebalance."""
        self.coordinator.rejoin_now(member_id)

    def _completed(self, generation: int, members: list[str]) -> None:
        self.line.mark(
            self.time.now_ms, "rebalance", f"generation {generation}: {len(members)} workers"
        )

    def _decide(
        self, leader: str, subscriptions: Mapping[str, _Subscription]
    ) -> Mapping[str, ConnectDecision]:
        round_ = Round(
            self._epoch_ms + self.time.now_ms, dict(self.connectors), _latest(subscriptions)
        )
        if self._eager:
            decision = decide_eager(round_)
        else:
            if leader != self._leader:
                self._leader, self._memory = leader, NO_MEMORY
            decision, self._memory = decide_incremental(round_, self._memory, self._max_delay_ms)
        self.decisions.append(decision)
        return dict.fromkeys(subscriptions, decision)


def _latest(subscriptions: Mapping[str, _Subscription]) -> dict[str, ConnectorsAndTasks]:
    """Return each worker's subscription by its name; a worker that started again counts once."""
    return dict(subscriptions.values())
