"""The table on the screen: what is drawn anew is only what changed."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from caughtup.agents.cli.top.tables import Drawn


class LinesTable(DataTable[Text]):
    """A table of drawn lines, with a cursor that stays on its line from look to look."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("home", "scroll_top", "The first line", show=False),
        Binding("end", "scroll_bottom", "The last line", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(cursor_type="row", cell_padding=0)
        self.shown: Drawn | None = None

    @property
    def chosen(self) -> tuple[str | int, ...] | None:
        """The key of the line under the cursor, None where there is no line."""
        if self.shown is None or not 0 <= self.cursor_row < len(self.shown.keys):
            return None
        return self.shown.keys[self.cursor_row]

    def fill(self, drawn: Drawn, cursor: tuple[str | int, ...] | None) -> None:
        """Show other lines; the cursor goes to the line with this key, else to the first."""
        before, self.shown = self.shown, drawn
        same = before is not None and (before.headings, before.keys) == (drawn.headings, drawn.keys)
        if before is not None and same:
            self._update(before, drawn)
        else:
            self._rebuild(drawn)
        at = drawn.keys.index(cursor) if cursor in drawn.keys else 0
        if self.cursor_row != at:
            self.move_cursor(row=at, animate=False)

    def _update(self, before: Drawn, drawn: Drawn) -> None:
        for row, (old, new) in enumerate(zip(before.rows, drawn.rows, strict=True)):
            if old == new:
                continue
            for column, text in enumerate(new):
                if text != old[column]:
                    self.update_cell_at(Coordinate(row, column), _cell(drawn, column, text))

    def _rebuild(self, drawn: Drawn) -> None:
        scrolled = self.scroll_y
        self.clear(columns=True)
        for heading, width in zip(drawn.headings, drawn.widths, strict=True):
            self.add_column(Text(heading, style="bold", no_wrap=True), width=width)
        for row in drawn.rows:
            self.add_row(*(_cell(drawn, column, text) for column, text in enumerate(row)))
        self.scroll_to(y=scrolled, animate=False)


def _cell(drawn: Drawn, column: int, text: str) -> Text:
    colour = drawn.colours[column].get(text.strip(), "")
    return Text(text, style=colour, no_wrap=True, end="")
