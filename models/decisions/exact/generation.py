"""Exact mode: what was found when a leader's decision was made again, and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from caughtup.models.assignment.decision import Decision
from caughtup.models.records.fields import ABSENT
from caughtup.models.records.recommendations import LeaderRecord, Result

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


class ExactResult(NamedTuple):
    """What was found when a leader's decision was made again, and that decision if it is known."""

    leader: LeaderRecord
    decision: Decision | None

    @property
    def plans(self) -> bool:
        """Whether the decision's movements are what the leader has planned.

        A follower's plan is the recommendation that it follows.
        """
        return self.leader.result == "match" and self.leader.assignor != FOLLOWER


def compared(result: Result, why: str, assignor: str = ASSIGNOR, told: str = "") -> LeaderRecord:
    """Return what a comparison with a leader's decision found, as it is published.

    ``told``: what the application's follower reported, "" if it reported nothing.
    """
    identical: bool | Literal["unknown"] = (
        "unknown" if result == "undetermined" else result == "match"
    )
    return LeaderRecord(assignor, identical, result, why, told or ABSENT)


def in_words(texts: Sequence[str]) -> str:
    """Join what is to be said, or the first of it where a large group has much to say."""
    more = len(texts) - _NAMED
    return "; ".join([*texts[:_NAMED], *([f"and {more:,} more"] if more > 0 else [])])
