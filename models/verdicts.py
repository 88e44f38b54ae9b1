"""Verdicts, on lag, copies, reassignments, decisions and more: their words, order and colours.

Terminal, page, metrics and dashboards take them from here; what decides them is in
``lag/verdict.py``, ``copies/warmups.py``, ``reassignments/verdict.py`` and ``learning/``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

#: Nothing to do; to be watched, or not known; to be looked at now.
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
    """Verdicts of one kind. ``unassessed`` is the word for what has none yet."""

    def __init__(self, unassessed: str, *terms: Term) -> None:
        """``terms``: the best first."""
        self.terms = terms
        self.words = tuple(term.word for term in terms)
        self.colours: dict[str, Colour] = {term.word: term.colour for term in terms}
        self.unassessed = unassessed
        self._ranks = {word: rank for rank, word in enumerate(self.words)}

    def severity(self, word: str | None) -> int:
        """Return how bad a verdict is: the more, the worse.

        None is one that isn't there yet; a word that a newer service may have is worse than all.
        """
        return self._ranks.get(self.unassessed if word is None else word, len(self._ranks))


LAG = Vocabulary(
    "unknown",
    Term("ok", "green", "✓", "green"),
    Term("unknown", "yellow", "?", "text"),
    Term("slow", "yellow", "△", "yellow"),
    Term("rewound", "yellow", "↺", "purple"),
    Term("diverging", "red", "▲", "orange"),
    Term("stalled", "red", "◆", "semi-dark-red"),
    Term("stopped", "red", "■", "red"),
)
#: Of a copy that is to catch up.
COPIES = Vocabulary(
    "unknown",
    Term("caught_up", "green", "✓", "green"),
    Term("warming", "yellow", "→", "blue"),
    Term("waiting", "yellow", "…", "yellow"),
    Term("unknown", "yellow", "?", "text"),
    Term("stranded", "red", "■", "purple"),
    Term("flapping", "red", "↺", "orange"),
    Term("stalled", "red", "◆", "red"),
    Term("chasing", "red", "▲", "semi-dark-red"),
)
#: Of a leader's decision compared with Kafka's assignor.
DECISIONS = Vocabulary(
    "not yet",
    Term("match", "green", "✓", "green", "the same as Kafka's own assignor"),
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
#: The verdicts of reassignments that end only if somebody does something.
ENDLESS = frozenset(
    ("no source", "dead target", "stalled", "throttled out", "blocked", "diverging")
)
#: Those that nobody has to look at.
CALM = frozenset(("completing", "tail", "moving", "measuring", "unknown"))
