"""Which copies of a scenario may take their task over, in as many words as there are lags."""

from __future__ import annotations

from typing import NamedTuple

from caughtup.models.assignment.catch_up import RUNNING, UNKNOWN, is_caught_up
from caughtup.models.assignment.compact import CompactScenario
from caughtup.models.ids import CopyKey, TaskId


class CaughtUpCopies(NamedTuple):
    """Copies that are caught up: these ones, and those on all processes of some tasks.

    ``everywhere`` names tasks that even a process with nothing is caught up on, ``but_for`` the
    copies of those tasks whose lag isn't known.
    """

    copies: frozenset[CopyKey] = frozenset()
    everywhere: frozenset[TaskId] = frozenset()
    but_for: frozenset[CopyKey] = frozenset()

    def has(self, copy: CopyKey) -> bool:
        """Return whether a copy is among them."""
        return copy in self.copies or (copy.task in self.everywhere and copy not in self.but_for)

    def are_among(self, others: CaughtUpCopies) -> bool:
        """Return whether others have all of these."""
        return (
            self.everywhere <= others.everywhere
            and all(others.has(copy) for copy in self.copies)
            and not any(self.has(copy) and not others.has(copy) for copy in others.but_for)
        )

    def with_others(self, others: CaughtUpCopies) -> CaughtUpCopies:
        """Return these and others."""
        return CaughtUpCopies(
            self.copies | others.copies,
            self.everywhere | others.everywhere,
            frozenset(
                copy
                for copy in self.but_for | others.but_for
                if not self.has(copy) and not others.has(copy)
            ),
        )


NONE_CAUGHT_UP = CaughtUpCopies()


def caught_up_copies(scenario: CompactScenario) -> CaughtUpCopies:
    """Name the copies that are caught up. Whether a running one is among them means nothing."""
    acceptable = scenario.acceptable_recovery_lag
    everywhere = frozenset(
        task
        for task, lag in scenario.greatest_lags.items()
        if lag not in (RUNNING, UNKNOWN) and is_caught_up(lag, acceptable)
    )
    copies, but_for = set(), set()
    for process_id, client in scenario.clients.items():
        process = str(process_id)
        for task, lag in client.lags.items():
            if lag == UNKNOWN:
                but_for.add(CopyKey(process, task))
            elif lag != RUNNING and is_caught_up(lag, acceptable):
                copies.add(CopyKey(process, task))
    return CaughtUpCopies(
        frozenset(copies), everywhere, frozenset(c for c in but_for if c.task in everywhere)
    )
