"""The six cases of the document on incremental cooperative rebalancing, round by round.

Its AC0 is the connector ``A`` here, AT1 and AT2 are ``A-0`` and ``A-1``; BC0 is ``B`` and BT1
``B-0``. Each round has the workers' work after it, and the leader's delay: according to the
document, and as Kafka 4.3.1 decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

#: ``scheduled.rebalance.max.delay.ms``, the document's d.
D_MS = 300_000
CONNECTORS = {"A": 2, "B": 1}
#: The start of the third to sixth case, which is the end of the document's second.
SETTLED = {"W1": "A A-0", "W2": "B A-1", "W3": "B-0"}


@dataclass(frozen=True)
class RoundOutcome:
    """The workers' work after a round, and the delay in ms; None if the document lacks it."""

    after: dict[str, str] | None
    delay_ms: int = 0


@dataclass(frozen=True)
class CaseRound:
    """A round: what happened before it and when, its leader, and its outcome.

    ``workers``: those that join it; new ones join without work. ``kafka``: the outcome with 4.3.1;
    None if it is the document's.
    """

    number: str
    event: str
    time_ms: int
    leader: str
    workers: tuple[str, ...]
    document: RoundOutcome
    kafka: RoundOutcome | None = None

    @property
    def decided(self) -> RoundOutcome:
        """The outcome with Kafka 4.3.1."""
        return self.kafka or self.document


EVERYONE = ("W1", "W2", "W3")
W2_IS_AWAY = CaseRound(
    number="3.1",
    event="W2 leaves",
    time_ms=0,
    leader="W1",
    workers=("W1", "W3"),
    document=RoundOutcome({"W1": "A A-0", "W3": "B-0"}, D_MS),
)
W2_IS_BACK = CaseRound(
    number="4.2",
    event="W2 is back in time",
    time_ms=100_000,
    leader="W1",
    workers=EVERYONE,
    document=RoundOutcome({"W1": "A A-0", "W2": "", "W3": "B-0"}, D_MS - 100_000),
)
CASES: dict[str, tuple[CaseRound, ...]] = {
    "the first worker joins": (
        CaseRound(
            number="1.1",
            event="W1 joins",
            time_ms=0,
            leader="W1",
            workers=("W1",),
            document=RoundOutcome({"W1": "A B A-0 A-1 B-0"}),
        ),
    ),
    "two workers join one": (
        CaseRound(
            number="1.1",
            event="W1 joins",
            time_ms=0,
            leader="W1",
            workers=("W1",),
            document=RoundOutcome({"W1": "A B A-0 A-1 B-0"}),
        ),
        CaseRound(
            number="2.1",
            event="W2 and W3 join; the leader revokes three from W1",
            time_ms=10,
            leader="W1",
            workers=EVERYONE,
            document=RoundOutcome({"W1": "A A-0", "W2": "", "W3": ""}),
            kafka=RoundOutcome({"W1": "B B-0", "W2": "", "W3": ""}),
        ),
        CaseRound(
            number="2.2",
            event="W1 has given them up, and joins again at once",
            time_ms=20,
            leader="W1",
            workers=EVERYONE,
            document=RoundOutcome({"W1": "A A-0", "W2": "B A-1", "W3": "B-0"}),
            kafka=RoundOutcome({"W1": "B B-0", "W2": "A A-0", "W3": "A-1"}),
        ),
    ),
    "a worker leaves": (
        W2_IS_AWAY,
        CaseRound(
            number="3.2",
            event="the delay is over",
            time_ms=D_MS,
            leader="W1",
            workers=("W1", "W3"),
            document=RoundOutcome({"W1": "A B A-0", "W3": "A-1 B-0"}),
            kafka=RoundOutcome({"W1": "A A-0 A-1", "W3": "B B-0"}),
        ),
    ),
    "a worker bounces": (
        replace(W2_IS_AWAY, number="4.1"),
        W2_IS_BACK,
        CaseRound(
            number="4.3",
            event="the delay is over",
            time_ms=D_MS,
            leader="W1",
            workers=EVERYONE,
            document=RoundOutcome(None),
            kafka=RoundOutcome(SETTLED),
        ),
    ),
    "the leader leaves": (
        CaseRound(
            number="5.1",
            event="W1 leaves",
            time_ms=0,
            leader="W3",
            workers=("W2", "W3"),
            document=RoundOutcome(None),
            kafka=RoundOutcome({"W2": "B A-0 A-1", "W3": "A B-0"}),
        ),
    ),
    "the leader bounces while another worker's work waits": (
        replace(W2_IS_AWAY, number="6.1"),
        replace(W2_IS_BACK, number="6.2"),
        CaseRound(
            number="6.3",
            event="W1, the leader, leaves",
            time_ms=150_000,
            leader="W3",
            workers=("W2", "W3"),
            document=RoundOutcome({"W2": "", "W3": "B-0"}, D_MS - 150_000),
            kafka=RoundOutcome({"W2": "A A-0 A-1", "W3": "B B-0"}),
        ),
        CaseRound(
            number="6.4",
            event="W1 is back",
            time_ms=170_000,
            leader="W3",
            workers=EVERYONE,
            document=RoundOutcome({"W1": "", "W2": "", "W3": "B-0"}, D_MS - 170_000),
            kafka=RoundOutcome({"W1": "", "W2": "A A-1", "W3": "B B-0"}),
        ),
        CaseRound(
            number="6.5",
            event="the delay is over; for Kafka: W2 has given up a task, and joins again at once",
            time_ms=D_MS,
            leader="W3",
            workers=EVERYONE,
            document=RoundOutcome({"W1": "B A-1", "W2": "A A-0", "W3": "B-0"}),
            kafka=RoundOutcome({"W1": "A-0", "W2": "A A-1", "W3": "B B-0"}),
        ),
    ),
}
