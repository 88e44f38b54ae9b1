"""What ``caughtup top`` shows: the chosen table, the opened line, filter and order, and the lines around."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from caughtup.agents.cli.text_tables import elided, printable
from caughtup.agents.cli.top.contents import DETAILS, OVERVIEWS
from caughtup.agents.cli.top.feed import Answered
from caughtup.agents.cli.top.tables import MOST, Drawn, TopTable, drawn, wanted
from caughtup.agents.web.page.parts import WholeView
from caughtup.models.durations import duration
from caughtup.models.records.fields import or_none

KEYS = "q quit  / filter  s sort  ⏎ open  1-{count} tables  r look now"
KEYS_OPENED = "q quit  / filter  s sort  esc back  r look now"


def status_line(
    where: str, state: WholeView | None, age_seconds: float, why: str, width: int
) -> str:
    """Return the source of the data, its age, and the error of a newer attempt (``why``).

    Without a state ``age_seconds`` counts from the first attempt.
    """
    if state is None:
        text = f"asking {where} for {_age(age_seconds)}" + (f": {why}" if why else "")
    elif why:
        text = f"{_age(age_seconds)} old, asking again: {why}"
    else:
        name = or_none(state.cluster_name) or state.cluster
        text = f"{name} at {where}, {_age(age_seconds)} ago"
        if state.unready:
            text += f", incomplete: {'; '.join(state.unready)}"
    return elided(printable(text), width)


def _age(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else duration(seconds)


def tab_labels(
    names: Sequence[str], short: Sequence[str], counts: Sequence[int], width: int
) -> list[str]:
    """Return a label for each table: its name, a shorter one, or its number alone."""
    for shown in (names, short):
        numbered = enumerate(zip(shown, counts, strict=True), 1)
        whole = [f" {number} {word} {count:,} " for number, (word, count) in numbered]
        if sum(map(len, whole)) <= width:
            return whole
    return [f" {number} " for number in range(1, len(names) + 1)]


def summary_line(shown: int, found: int, all_of: int, words: str, order: str) -> str:
    """Return which lines are shown, and in which order."""
    text = f"by {order}"
    if words:
        text += f", {found:,} of {all_of:,} have {words!r}"
    if shown < found:
        text += f", the first {shown:,} of {found:,}"
    return text


Key = tuple[str | int, ...]

#: The tables' names, and short ones.
NAMES = ("groups", "applications", "reassignments", "connect")
SHORT = ("groups", "apps", "moves", "connect")
#: The most sentences above a table, and the most lines of each.
SENTENCES, WRAPPED = 4, 3


class Screenful(NamedTuple):
    """The content of the screen, in lines that fit; ``about`` may wrap."""

    tabs: tuple[str, ...]
    about: tuple[str, ...]
    table: Drawn
    summary: str
    keys: str


class TopView:
    """The user's choices. Each table keeps its filter, order and cursor."""

    def __init__(self) -> None:
        self.chosen = 0
        self.opened: Key | None = None
        self._filters: dict[tuple[int, bool], str] = {}
        self._turns: dict[tuple[int, bool], int] = {}
        self._cursors: dict[tuple[int, bool], Key | None] = {}
        #: The last table, after its inputs.
        self._made: tuple[Answered, int, Key | None, TopTable] | None = None

    @property
    def sought(self) -> str:
        """The words of the filter."""
        return self._filters.get(self._place, "")

    @sought.setter
    def sought(self, text: str) -> None:
        self._filters[self._place] = text

    @property
    def cursor(self) -> Key | None:
        """The key of the cursor's last line."""
        return self._cursors.get(self._place)

    @cursor.setter
    def cursor(self, key: Key | None) -> None:
        self._cursors[self._place] = key

    @property
    def group(self) -> str | None:
        """The open group, None if none is."""
        return str(self.opened[0]) if self.opened is not None and self.chosen == 0 else None

    @property
    def _place(self) -> tuple[int, bool]:
        return self.chosen, self.opened is not None

    def choose(self, number: int) -> None:
        """Choose a table by its number, modulo the number of tables."""
        self.opened, self.chosen = None, number % len(OVERVIEWS)

    def open(self, key: Key) -> None:
        """Open a line, with an empty filter."""
        if self.opened is None:
            self.opened = key
            self.sought, self.cursor = "", None

    def back(self) -> None:
        """Remove the filter, else close the open line."""
        if self.sought:
            self.sought = ""
        else:
            self.opened = None

    def sort(self) -> None:
        """Sort by the table's next order."""
        self._turns[self._place] = self._turns.get(self._place, 0) + 1

    def table(self, answered: Answered) -> TopTable:
        """Return the chosen table, or that of the open line, cached while the inputs are the same."""
        what = answered, self.chosen, self.opened
        if self._made is None or self._made[0] is not answered or self._made[1:-1] != what[1:]:
            self._made = (*what, self._make(answered))
        return self._made[-1]

    def _make(self, answered: Answered) -> TopTable:
        if self.opened is None:
            return OVERVIEWS[self.chosen](answered.state)
        lines = answered.lines if answered.group == self.group else None
        return DETAILS[self.chosen](answered.state, self.opened, lines)

    def screenful(self, answered: Answered, width: int) -> Screenful:
        """Return the content of a screen of this width."""
        table = self.table(answered)
        order = table.orders[self._turns.get(self._place, 0) % len(table.orders)]
        found = wanted(table, self.sought, order)
        state = answered.state
        tables = (state.groups, state.applications, state.reassignments, state.connect)
        counts = [len(rows) for rows in tables]
        about = [*table.about] if self.opened is None else [table.name, *table.about]
        if not table.lines:
            about.append(table.nothing)
        text = summary_line(len(found[:MOST]), len(found), len(table.lines), self.sought, order)
        keys = KEYS if self.opened is None else KEYS_OPENED
        return Screenful(
            tabs=tuple(tab_labels(NAMES, SHORT, counts, width)),
            about=tuple(elided(printable(line), width * WRAPPED) for line in about[:SENTENCES]),
            table=drawn(table, found[:MOST], width - 1),
            summary=elided(text, width),
            keys=elided(keys.format(count=len(OVERVIEWS)), width),
        )
