"""A rebalance of a group: what caused it, how sure that is, and what it cost."""

from __future__ import annotations

from typing import Literal

from caughtup.models.records.fields import ABSENT, Absent, Part, or_none

CauseKind = Literal[
    "joined",
    "left",
    "session_timed_out",
    "poll_interval_exceeded",
    "static_member_returned",
    "resubscribed",
    "topic_grew",
    "topic_appeared",
    "topic_vanished",
    "assignor_changed",
    "protocol_converted",
    "scheduled",
    "follow_up",
    "coordinator_moved",
    "requested",
]
#: What each cause is, in words after the client or topic that it is about.
CAUSES: dict[CauseKind, str] = {
    "joined": "joined",
    "left": "left",
    "session_timed_out": "sent no heartbeat for its session timeout",
    "poll_interval_exceeded": "did not poll for max.poll.interval.ms",
    "static_member_returned": "returned (static member)",
    "resubscribed": "changed its subscription",
    "topic_grew": "got more partitions",
    "topic_appeared": "appeared and matches the subscription",
    "topic_vanished": "was deleted",
    "assignor_changed": "the assignor changed",
    "protocol_converted": "the group changed its protocol",
    "scheduled": "the rebalance that was due (probing or follow-up)",
    "follow_up": "partitions that had been revoked were assigned",
    "coordinator_moved": "the group's coordinator moved",
    "requested": "a member requested it; no member joined or left",
}
#: ``certain``: the records say so; ``likely``: nothing else explains the times in them;
#: ``possible``: they don't contradict it.
Sureness = Literal["certain", "likely", "possible"]
SURENESS: tuple[Sureness, ...] = ("certain", "likely", "possible")


class Cause(Part, omit_defaults=True):
    """A cause of a rebalance, and the evidence for it in a sentence (``why``).

    ``client`` (``client.id``), ``member`` and ``host`` are of the member that caused it, and
    ``topic`` is the topic.
    """

    kind: CauseKind
    sure: Sureness
    client: str | Absent = ABSENT
    member: str | Absent = ABSENT
    host: str | Absent = ABSENT
    topic: str | Absent = ABSENT
    why: str = ""

    @property
    def about(self) -> str | None:
        """The client, or the id of a member without a ``client.id``, else the topic; None for neither."""
        if isinstance(self.client, Absent):
            return or_none(self.topic)
        return self.client or or_none(self.member)

    @property
    def text(self) -> str:
        """The cause in words: ``orders-c joined``."""
        words = CAUSES[self.kind]
        return words if self.about is None else f"{self.about} {words}"


class GroupRebalance(Part, kw_only=True, omit_defaults=True):
    """A rebalance, which began ``generation`` (or epoch); ``causes`` has at least one, the surest first.

    ``after``: the generation or epoch before it on the same protocol, absent for the first one.
    ``moved`` is how many of the ``partitions`` got another member; both are absent while the names of
    topics aren't known. ``unfinished`` counts generations before it that ended before they had an
    assignment. ``stood_still_seconds`` is the longest time that one of the partitions that had to stop
    was without a commit: at most as long as it stood still and the time between two commits.
    ``lost_seconds`` is the sum over all of them, and ``unsettled`` counts those without a commit since.
    Both are absent while no partition has one.
    """

    generation: int
    causes: list[Cause]
    members: int
    partitions: int | Absent = ABSENT
    moved: int | Absent = ABSENT
    at_ms: int | Absent = ABSENT
    unfinished: int = 0
    stood_still_seconds: float | Absent = ABSENT
    lost_seconds: float | Absent = ABSENT
    unsettled: int = 0
    after: int | Absent = ABSENT

    @property
    def cause(self) -> Cause:
        """The surest cause."""
        return self.causes[0]

    @property
    def cause_texts(self) -> list[str]:
        """The causes in words, with how sure they are unless that is certain."""
        return [
            one.text if one.sure == "certain" else f"{one.text} ({one.sure})" for one in self.causes
        ]


class RebalanceStorm(Part):
    """Rebalances without end: how many in the last ten minutes, and what causes most of them.

    ``client`` is that of the member that caused most of them, absent if it isn't one member.
    """

    rebalances: int
    cause: CauseKind
    of_cause: int
    client: str | Absent = ABSENT
