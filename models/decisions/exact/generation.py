"""Exact mode: what was found when a leader's decision was made again, and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caughtup.models.assignment.decision import Decision

#: Kafka's assignor unless another is configured, as scenarios call it and as Kafka does.
KAFKAS = "high_availability"
ASSIGNOR = "HighAvailabilityTaskAssignor"
#: The assignors that a leader may have, as scenarios call them and as Kafka 4.3 does.
CLASSES: Mapping[str, str] = {
    KAFKAS: ASSIGNOR,
    "sticky": "LegacyStickyTaskAssignor",
    "public_sticky": "StickyTaskAssignor",
    "fallback_prior": "FallbackPriorTaskAssignor",
}
#: What followers call their assignor.
FOLLOWER = "FollowingTaskAssignor"
#: Doubts or differences that are named; of more it is told how many.
_NAMED = 20
#: What a recomputation can find.
RESULTS = ("match", "mismatch", "undetermined")


@dataclass(frozen=True, slots=True)
class ExactResult:
    """What the recomputation found: ``match``, ``mismatch`` or ``undetermined``, and why.

    ``told`` is what a follower says that it did and why, "" for others.
    """

    result: str
    why: str
    decision: Decision | None
    assignor: str = ASSIGNOR
    told: str = ""

    @property
    def plans(self) -> bool:
        """Return whether the decision's movements are what the leader has planned.

        A follower's plan is the recommendation that it follows.
        """
        return self.result == "match" and self.assignor != FOLLOWER


def in_words(texts: Sequence[str]) -> str:
    """Join what is to be said, or the first of it where a large group has much to say."""
    more = len(texts) - _NAMED
    return "; ".join([*texts[:_NAMED], *([f"and {more:,} more"] if more > 0 else [])])
