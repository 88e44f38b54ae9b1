"""What is looked at: which table, which line of it is open, which filter, which order."""

from __future__ import annotations

from typing import NamedTuple

from caughtup.agents.cli.columns import elided, printable
from caughtup.agents.cli.top import words
from caughtup.agents.cli.top.details import DETAILS
from caughtup.agents.cli.top.feed import Seen
from caughtup.agents.cli.top.overviews import OVERVIEWS
from caughtup.agents.cli.top.tables import MOST, Drawn, TopTable, drawn, wanted

Key = tuple[str | int, ...]

#: The tables' names, and shorter ones.
NAMES = ("groups", "applications", "reassignments", "connect")
SHORT = ("groups", "apps", "moves", "connect")
#: Sentences above a table: so many at most, each of so many lines at most.
SENTENCES, WRAPPED = 4, 3


class Screenful(NamedTuple):
    """All that is to be on the screen, in lines that are no wider than it; ``about`` may wrap."""

    tabs: tuple[str, ...]
    about: tuple[str, ...]
    table: Drawn
    summary: str
    keys: str


class TopView:
    """What the user chose so far. Each table keeps its filter, its order and its cursor."""

    def __init__(self) -> None:
        self.chosen = 0
        self.opened: Key | None = None
        self._filters: dict[tuple[int, bool], str] = {}
        self._turns: dict[tuple[int, bool], int] = {}
        self._cursors: dict[tuple[int, bool], Key | None] = {}
        #: The table that was made last, behind what it was made of.
        self._made: tuple[Seen, int, Key | None, TopTable] | None = None

    @property
    def sought(self) -> str:
        """The words that lines have to have in them."""
        return self._filters.get(self._place, "")

    @sought.setter
    def sought(self, text: str) -> None:
        self._filters[self._place] = text

    @property
    def cursor(self) -> Key | None:
        """The line that the cursor was on last."""
        return self._cursors.get(self._place)

    @cursor.setter
    def cursor(self, key: Key | None) -> None:
        self._cursors[self._place] = key

    @property
    def group(self) -> str | None:
        """The group that is open, None if none is."""
        return str(self.opened[0]) if self.opened is not None and self.chosen == 0 else None

    @property
    def _place(self) -> tuple[int, bool]:
        return self.chosen, self.opened is not None

    def choose(self, number: int) -> None:
        """Choose a table, by its place; the one behind the last is the first."""
        self.opened, self.chosen = None, number % len(OVERVIEWS)

    def open(self, key: Key) -> None:
        """Open a line of a table, which has neither filter nor cursor yet."""
        if self.opened is None:
            self.opened = key
            self.sought, self.cursor = "", None

    def back(self) -> None:
        """Remove the filter, or else close what is open."""
        if self.sought:
            self.sought = ""
        else:
            self.opened = None

    def sort(self) -> None:
        """Sort by the next of the table's orders."""
        self._turns[self._place] = self._turns.get(self._place, 0) + 1

    def table(self, seen: Seen) -> TopTable:
        """Return the table that is chosen, or of what is open; the same while nothing is news."""
        what = seen, self.chosen, self.opened
        if self._made is None or self._made[0] is not seen or self._made[1:-1] != what[1:]:
            self._made = (*what, self._make(seen))
        return self._made[-1]

    def _make(self, seen: Seen) -> TopTable:
        if self.opened is None:
            return OVERVIEWS[self.chosen](seen.state)
        lines = seen.lines if seen.group == self.group else None
        return DETAILS[self.chosen](seen.state, self.opened, lines)

    def screenful(self, seen: Seen, width: int) -> Screenful:
        """Return all that is to be seen of it on a screen of this width."""
        table = self.table(seen)
        order = table.orders[self._turns.get(self._place, 0) % len(table.orders)]
        found = wanted(table, self.sought, order)
        state = seen.state
        tables = (state.groups, state.applications, state.reassignments, state.connect)
        counts = [len(rows) for rows in tables]
        about = [*table.about] if self.opened is None else [table.name, *table.about]
        if not table.lines:
            about.append(table.nothing)
        said = words.summary(len(found[:MOST]), len(found), len(table.lines), self.sought, order)
        keys = words.KEYS if self.opened is None else words.KEYS_OPENED
        return Screenful(
            tabs=tuple(words.tabs(NAMES, SHORT, counts, width)),
            about=tuple(elided(printable(line), width * WRAPPED) for line in about[:SENTENCES]),
            table=drawn(table, found[:MOST], width - 1),
            summary=elided(said, width),
            keys=elided(keys.format(count=len(OVERVIEWS)), width),
        )
