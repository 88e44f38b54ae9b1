"""A Connect worker in virtual time: it stops what it is told to, starts the rest, and waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from caughtup.models.connect.decision import Decision
from caughtup.models.connect.worker import owned_after
from caughtup.models.simulation.time_line import Activity
from caughtup.models.simulation.virtual_time import Event, VirtualTime
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks


class Group(Protocol):
    """What a worker needs of the group that it is in."""

    time: VirtualTime

    def does(self, item: str, worker: str, activity: Activity | None) -> None:
        """Note what a worker's connector or task does."""

    def ask(self, member_id: str) -> None:
        """Ask for a rebalance on behalf of a member."""


class Worker:
    """A worker, whose member id is its name and how often it has started.

    ``eager``: it stops all of its work before it joins again, as with protocol 0. Connect has no
    static members.
    """

    instance_id: str | None = None

    def __init__(self, group: Group, name: str, *, eager: bool) -> None:
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
        """Run some work at a story's start."""
        self._run(work)

    def stop(self) -> None:
        """End, and all of its work with it."""
        self.answers = False
        self._cancel()
        self._run(NOTHING)

    def prepare(self) -> None:
        """Give up all work before joining again, where the protocol is eager."""
        if self._eager:
            self._run(NOTHING)

    def subscription(self) -> tuple[str, ConnectorsAndTasks]:
        """Describe what the worker has, under its name."""
        return self.name, self.owned

    def assigned(self, _generation: int, decision: Decision) -> None:
        """Stop and start work. Who had to stop any joins again at once, else after the delay."""
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
    """Return connectors and tasks as people write them."""
    yield from work.connectors
    yield from map(str, work.tasks)
