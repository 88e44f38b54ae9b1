"""Verdicts, on lag, copies, reassignments, decisions and more: their words, order and colours.

The terminal, the page, metrics and dashboards use these. After a change of a ``chart`` run ``make
dashboards``, after one of a ``sign`` or ``meaning`` look at the page. How urgent an alert is stands
in the alerts' template, ``agents/cli/rules/caughtup.rules.yml``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

#: Green needs no attention, yellow should be watched or is unknown, red needs attention now.
Colour = Literal["green", "yellow", "red"]


class Term(NamedTuple):
    """A verdict's word, its colour and sign for people, and its colour in Grafana's charts.

    ``meaning``: what the page says instead of the word, where it says more than that.
    """

    word: str
    colour: Colour
    sign: str
    chart: str = "text"
    meaning: str = ""


class Vocabulary:
    """The verdicts of one kind; ``unassessed`` is the word for a missing one."""

    def __init__(self, unassessed: str, *terms: Term) -> None:
        """Make a vocabulary of ``terms``, the best first."""
        self.terms = terms
        self.words = tuple(term.word for term in terms)
        self.colours: dict[str, Colour] = {term.word: term.colour for term in terms}
        self.unassessed = unassessed
        self._ranks = {word: rank for rank, word in enumerate(self.words)}

    def severity(self, word: str | None) -> int:
        """Return the severity of a verdict, greater for worse; None counts as unassessed.

        An unknown word, which a newer service may send, is the worst.
        """
        return self._ranks.get(self.unassessed if word is None else word, len(self._ranks))


LAG = Vocabulary(
    "unknown",
    Term("ok", "green", "✓", "green"),
    Term("unknown", "yellow", "?", "text"),
    Term("slow", "yellow", "△", "yellow"),
    Term("rewound", "yellow", "↺", "purple"),
    Term("blocked", "red", "‖", "semi-dark-purple"),
    Term("diverging", "red", "▲", "orange"),
    Term("stalled", "red", "◆", "semi-dark-red"),
    Term("stopped", "red", "■", "red"),
)
#: The verdicts on copies that restore.
COPIES = Vocabulary(
    "unknown",
    Term("caught_up", "green", "✓", "green", "caught up"),
    Term("warming", "yellow", "→", "blue"),
    Term("waiting", "yellow", "…", "yellow"),
    Term("unknown", "yellow", "?", "text"),
    Term("stranded", "red", "■", "purple"),
    Term("flapping", "red", "↺", "orange"),
    Term("stalled", "red", "◆", "red"),
    Term("chasing", "red", "▲", "semi-dark-red"),
)
#: The results of comparing a leader's decision with Kafka's assignor.
DECISIONS = Vocabulary(
    "not yet",
    Term("match", "green", "✓", "green", "the same as Kafka's own assignor"),
    Term(
        "consistent",
        "green",
        "≈",
        "blue",
        "as Kafka's own assignor does by some inputs within their bounds",
    ),
    Term("undetermined", "yellow", "?", "text", "not known: an input is missing"),
    Term("mismatch", "red", "✗", "red", "differently from Kafka's own assignor"),
)
#: How a reassignment ended.
OUTCOMES = Vocabulary(
    "",
    Term("completed", "green", "✓"),
    Term("cancelled", "yellow", "↺"),
    Term("superseded", "yellow", "→"),
    Term("reverted-partial", "red", "✖"),
    Term("vanished", "red", "∅"),
)
#: How a status of Connect contradicts the assignment or the configuration.
CONTRADICTIONS = Vocabulary(
    "",
    Term("fewer_tasks", "yellow", "△", meaning="no tasks"),
    Term("not_running", "yellow", "◌", meaning="does not run"),
    Term("unassigned", "red", "∅"),
    Term("zombie", "red", "☠"),
    Term("failed", "red", "✖"),
)
#: Of a stream of the data pipeline on Spark.
STREAMS = Vocabulary(
    "",
    Term("running", "green", "✓"),
    Term("stopped", "yellow", "■"),
    Term("late", "red", "▲"),
    Term("failed", "red", "✖"),
)
#: The states of open transactions: Kafka's, and that one hangs.
TRANSACTIONS = Vocabulary(
    "unknown",
    Term("PrepareCommit", "green", "✓", meaning="being committed"),
    Term("PrepareAbort", "green", "✓", meaning="being aborted"),
    Term("PrepareEpochFence", "green", "✓", meaning="being aborted"),
    Term("Ongoing", "yellow", "→", meaning="open"),
    Term("unknown", "yellow", "?", meaning="open, its coordinator is not known"),
    Term("hanging", "red", "■", meaning="hangs: no coordinator will end it"),
)
REASSIGNMENTS = Vocabulary(
    "measuring",
    Term("completing", "green", "✓", "green"),
    Term("tail", "green", "⇥", "semi-dark-green"),
    Term("moving", "green", "→", "blue"),
    Term("measuring", "yellow", "…", "text"),
    Term("unknown", "yellow", "?", "text"),
    Term("slow", "yellow", "△", "yellow"),
    Term("diverging", "yellow", "▲", "semi-dark-orange"),
    Term("blocked", "red", "■", "orange"),
    Term("throttled out", "red", "⊘", "orange"),
    Term("stalled", "red", "◆", "red"),
    Term("dead target", "red", "✖", "semi-dark-red"),
    Term("no source", "red", "✖", "dark-red"),
)
#: The verdicts of reassignments that don't end without an operator's action. One that is diverging
#: is yellow all the same: its data flow, and less traffic alone would let it end.
ENDLESS = frozenset(
    ("no source", "dead target", "stalled", "throttled out", "blocked", "diverging")
)
#: The verdicts of reassignments that name no trouble: it goes on, or too little is known yet.
UNTROUBLED = frozenset(("completing", "tail", "moving", "measuring", "unknown"))
