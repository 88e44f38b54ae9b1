"""Which copies of a scenario may take their task over, in as many words as there are lags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from caughtup.models.assignment.catch_up import RUNNING, UNKNOWN, is_caught_up
from caughtup.models.assignment.configs import Configs
from caughtup.models.assignment.scenario_lags import greatest_lags

_DEFAULT_LAG = Configs().acceptable_recovery_lag
#: A copy by process and task, as their ids' text.
Copy = tuple[str, str]


class CaughtUpCopies(NamedTuple):
    """Copies that are caught up: these ones, and those on all processes of some tasks.

    ``everywhere`` names tasks that even a process with nothing is caught up on, ``but_for`` the
    copies of those tasks whose lag isn't known.
    """

    copies: frozenset[Copy] = frozenset()
    everywhere: frozenset[str] = frozenset()
    but_for: frozenset[Copy] = frozenset()

    def has(self, process: str, task: str) -> bool:
        """Tell whether a copy is among them."""
        copy = process, task
        return copy in self.copies or (task in self.everywhere and copy not in self.but_for)

    def are_among(self, others: CaughtUpCopies) -> bool:
        """Tell whether others have all of these."""
        return (
            self.everywhere <= others.everywhere
            and all(others.has(*copy) for copy in self.copies)
            and not any(self.has(*copy) and not others.has(*copy) for copy in others.but_for)
        )

    def with_others(self, others: CaughtUpCopies) -> CaughtUpCopies:
        """Return these and others."""
        return CaughtUpCopies(
            self.copies | others.copies,
            self.everywhere | others.everywhere,
            frozenset(
                copy
                for copy in self.but_for | others.but_for
                if not self.has(*copy) and not others.has(*copy)
            ),
        )


NONE_CAUGHT_UP = CaughtUpCopies()


def caught_up_copies(scenario: Mapping[str, Any]) -> CaughtUpCopies:
    """Name the copies that are caught up. Whether a running one is among them means nothing."""
    acceptable = acceptable_recovery_lag(scenario)
    everywhere = frozenset(
        task
        for task, lag in greatest_lags(scenario).items()
        if lag not in (RUNNING, UNKNOWN) and is_caught_up(lag, acceptable)
    )
    copies, but_for = set(), set()
    for process, client in scenario["clients"].items():
        for task, lag in client["lags"].items():
            if lag == UNKNOWN:
                but_for.add((process, task))
            elif lag != RUNNING and is_caught_up(lag, acceptable):
                copies.add((process, task))
    return CaughtUpCopies(
        frozenset(copies), everywhere, frozenset(c for c in but_for if c[1] in everywhere)
    )


def acceptable_recovery_lag(scenario: Mapping[str, Any]) -> int:
    """Return the lag at which a copy counts as caught up, in offsets."""
    lag: int = scenario["config"].get("acceptable.recovery.lag", _DEFAULT_LAG)
    return lag
