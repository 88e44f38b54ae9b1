"""How long a follower has waited for a recommendation, and how often it followed one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from caughtup.models.assignors.followed_recommendation import FollowedRecommendation
from caughtup.models.assignors.follower import FollowerDecision, Objection, Patience
from caughtup.models.ids import ProcessId


@dataclass(frozen=True, slots=True)
class Heard:
    """The newest recommendation, at least ``age_ms`` old, or why there is none; and the waiting.

    ``waited`` and ``repeated`` as for ``follow``.
    """

    newest: FollowedRecommendation | Objection
    age_ms: int = 0
    waited: int = 0
    repeated: int = 0


class Waiting:
    """Counts the rebalances that waiting brought, and not those that others brought at once.

    Source: ``caughtup.GroupFollower``. Times are in ms on a clock that never goes back.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._processes: frozenset[ProcessId] = frozenset()
        self._repeated: tuple[str, int] | None = None
        self._counted_ms = 0.0
        #: Follow-ups that passed without a recommendation that holds.
        self.waited = 0

    def begin(self, processes: Iterable[ProcessId], now_ms: float) -> None:
        """Begin a rebalance; with other processes than before the waiting starts anew."""
        there = frozenset(processes)
        if there != self._processes:
            self._processes = there
            self.waited, self._repeated = 0, None
            self._counted_ms = now_ms - self._patience.follow_up_ms

    def repeated(self, decision_id: str | None) -> int:
        """Tell how often a decision was followed before, beyond the first time."""
        known = self._repeated
        return known[1] if known is not None and known[0] == decision_id else 0

    def count(self, decision: FollowerDecision, now_ms: float) -> None:
        """Take what the rebalance came to."""
        due = now_ms - self._counted_ms >= self._patience.follow_up_ms / 2
        if decision.decision_id is not None:
            known = self._repeated
            first = known is None or known[0] != decision.decision_id
            if first or due:
                before = 0 if known is None or first else known[1] + 1
                self._repeated = (decision.decision_id, before)
                self._counted_ms = now_ms
            self.waited = 0
        elif due and self.waited < self._patience.follow_ups:
            self.waited += 1
            self._counted_ms = now_ms
