"""The state of copies at the next rebalance: its scenario, and which copies are caught up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from caughtup.models.assignment.client_state import RUNNING, UNKNOWN, is_caught_up
from caughtup.models.assignment.compact import CompactScenario
from caughtup.models.assignment.scenario import Client
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import CopyKey, ProcessId, TaskId
from caughtup.models.tasks.positions import TaskPosition


def project(
    generation: StreamsGeneration,
    scenario: CompactScenario,
    positions: Mapping[CopyKey, TaskPosition],
) -> CompactScenario | None:
    """Return the scenario of a rebalance that would happen now, with the copies that clients have.

    ``scenario`` is the one of the generation; ``positions`` reported before the generation are
    ignored, and a copy without a later one keeps its lag. A task that isn't assigned because its
    owner has yet to revoke it counts as the owner's. None if the tasks or the processes differ.
    """
    running = {task for client in generation.clients.values() for task in client.active()}
    if not running <= scenario.tasks.keys():
        return None
    unassigned = scenario.tasks.keys() - running
    acceptable = scenario.acceptable_recovery_lag
    before = scenario.greatest_lags
    greatest = {task: _lag(lag, None, acceptable, is_active=False) for task, lag in before.items()}
    reported: dict[str, dict[TaskId, TaskPosition]] = {}
    for (process_id, task), position in positions.items():
        if position.at_ms >= generation.as_of_ms:
            reported.setdefault(process_id, {})[task] = position
    clients: dict[ProcessId, Client] = {}
    for process, client in generation.clients.items():
        then = scenario.clients.get(process)
        if then is None:
            return None
        active = client.active() | (then.previous_active & unassigned)
        news = reported.get(str(process), {})
        lags = {}
        for task in sorted({*then.lags, *news, *active}):
            lag = then.lags.get(task, before.get(task))
            if lag is None:
                continue  # a stateless task
            lag = _lag(lag, news.get(task), acceptable, is_active=task in active)
            if lag != greatest.get(task):
                lags[task] = lag
        clients[process] = replace(
            then,
            previous_active=frozenset(active),
            previous_standby=frozenset(client.standby()),
            lags=lags,
        )
    return replace(scenario, greatest_lags=greatest, clients=clients)


def _lag(then: int, position: TaskPosition | None, acceptable: int, *, is_active: bool) -> int:
    """Return the lag of a copy now, in offsets or Kafka's sentinels."""
    if position is not None and position.role == "active" and is_active:
        return RUNNING
    if position is not None and position.lag is not None:
        return position.lag
    if is_active and is_caught_up(then, acceptable):
        return RUNNING
    # A client that ran the task until this rebalance has its complete state.
    return 0 if then == RUNNING else then


class CaughtUpCopies(NamedTuple):
    """The caught-up copies: ``copies``, and every copy of the tasks in ``everywhere``.

    On those tasks even a process without state is caught up; but copies of them whose lag is
    ``unknown`` don't count. So this has no more entries than the scenario has lags.
    """

    copies: frozenset[CopyKey] = frozenset()
    everywhere: frozenset[TaskId] = frozenset()
    unknown: frozenset[CopyKey] = frozenset()

    def has(self, copy: CopyKey) -> bool:
        """Return whether a copy is among them."""
        return copy in self.copies or (copy.task in self.everywhere and copy not in self.unknown)

    def are_among(self, others: CaughtUpCopies) -> bool:
        """Return whether ``others`` contain all of these."""
        return (
            self.everywhere <= others.everywhere
            and all(others.has(copy) for copy in self.copies)
            and not any(self.has(copy) and not others.has(copy) for copy in others.unknown)
        )

    def with_others(self, others: CaughtUpCopies) -> CaughtUpCopies:
        """Return the union of these and ``others``."""
        return CaughtUpCopies(
            self.copies | others.copies,
            self.everywhere | others.everywhere,
            frozenset(
                copy
                for copy in self.unknown | others.unknown
                if not self.has(copy) and not others.has(copy)
            ),
        )


NONE_CAUGHT_UP = CaughtUpCopies()


def caught_up_copies(scenario: CompactScenario) -> CaughtUpCopies:
    """Return the caught-up copies of a scenario; running ones may or may not be among them."""
    acceptable = scenario.acceptable_recovery_lag
    everywhere = frozenset(
        task
        for task, lag in scenario.greatest_lags.items()
        if lag not in (RUNNING, UNKNOWN) and is_caught_up(lag, acceptable)
    )
    copies, unknown = set(), set()
    for process_id, client in scenario.clients.items():
        process = str(process_id)
        for task, lag in client.lags.items():
            if lag == UNKNOWN:
                unknown.add(CopyKey(process, task))
            elif lag != RUNNING and is_caught_up(lag, acceptable):
                copies.add(CopyKey(process, task))
    return CaughtUpCopies(
        frozenset(copies), everywhere, frozenset(c for c in unknown if c.task in everywhere)
    )
