"""The verdicts on lag, copies, reassignments and decisions: their words, order and colours.

Terminal, page, metrics and dashboards take them from here; what decides them is in
``lag/verdict.py``, ``copies/warmups.py``, ``reassignments/verdict.py`` and ``learning/``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

#: Nothing to do; to be watched, or not known; to be looked at now.
Colour = Literal["green", "yellow", "red"]


class Term(NamedTuple):
    """A verdict's word, its colour and sign for people, and its colour in Grafana's charts."""

    word: str
    colour: Colour
    sign: str
    chart: str


class Vocabulary:
    """Verdicts of one kind. ``unassessed`` is the word for what has none yet."""

    def __init__(self, unassessed: str, *terms: Term) -> None:
        """Make a vocabulary of ``terms``, the best first."""
        self.terms = terms
        self.words = tuple(term.word for term in terms)
        self.colours: dict[str, Colour] = {term.word: term.colour for term in terms}
        self.unassessed = unassessed
        self._ranks = {word: rank for rank, word in enumerate(self.words)}

    def severity(self, word: str | None) -> int:
        """Return how bad a verdict is: the greater, the worse.

        A missing verdict is ``unassessed``; an unknown word, from a newer service, is worse than
        all.
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
#: Verdicts on copies that are to catch up; the charts of copies have no colours of their own.
COPIES = Vocabulary(
    "unknown",
    Term("caught_up", "green", "✓", "green"),
    Term("warming", "yellow", "→", "blue"),
    Term("waiting", "yellow", "…", "text"),
    Term("unknown", "yellow", "?", "text"),
    Term("stranded", "red", "■", "orange"),
    Term("flapping", "red", "↺", "purple"),
    Term("stalled", "red", "◆", "semi-dark-red"),
    Term("chasing", "red", "▲", "red"),
)
#: Verdicts on a leader's decision compared with Kafka's assignor.
DECISIONS = Vocabulary(
    "not yet",
    Term("match", "green", "✓", "green"),
    Term("undetermined", "yellow", "?", "text"),
    Term("mismatch", "red", "✗", "red"),
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
#: The verdicts of reassignments that end only if an operator acts.
ENDLESS = frozenset(
    ("no source", "dead target", "stalled", "throttled out", "blocked", "diverging")
)
#: The verdicts that need no attention.
CALM = frozenset(("completing", "tail", "moving", "measuring", "unknown"))
