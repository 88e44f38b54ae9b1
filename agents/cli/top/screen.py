"""The screen of ``caughtup top``: a table, the lines around it, and the keys."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.message import Message
from textual.widgets import DataTable, Input, Static

from caughtup.agents.cli.top.contents import OVERVIEWS
from caughtup.agents.cli.top.feed import Failed, Feed, Seen
from caughtup.agents.cli.top.sources import Source
from caughtup.agents.cli.top.tables import Drawn
from caughtup.agents.cli.top.view import SENTENCES, WRAPPED, TopView, status_line


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


class Told(Message):
    """The feed said something."""

    def __init__(self, said: Seen | Failed) -> None:
        super().__init__()
        self.said = said


class TopApp(App[None]):
    """Shows what a source says, as it says it. ``broken``: what nobody foresaw, and ended it."""

    ENABLE_COMMAND_PALETTE = False
    CSS = f"""
    Static {{ height: 1; width: 100%; text-overflow: clip; text-wrap: nowrap; }}
    #about {{ height: auto; max-height: {SENTENCES + WRAPPED}; text-wrap: wrap; }}
    #status, #keys {{ text-style: reverse; }}
    DataTable {{ height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }}
    Input {{ height: 1; border: none; padding: 0; display: none; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", priority=True),
        *(Binding(str(n + 1), f"choose({n})", "Choose a table") for n in range(len(OVERVIEWS))),
        Binding("tab", "next", "The next table", priority=True),
        Binding("s", "sort", "Sort"),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "leave", "Back", priority=True),
        Binding("r", "look", "Look now"),
    ]

    def __init__(self, source: Source, seconds: float) -> None:
        super().__init__(ansi_color=True)  # the terminal's own colours, or none
        self.broken: BaseException | None = None
        self.view = TopView()
        self.feed = Feed(source, seconds, lambda said: self.post_message(Told(said)))
        self.where = source.where
        self.seen: Seen | None = None
        #: Why the source said nothing when it was asked last; nothing if it did.
        self.why = ""
        self.began = time.monotonic()

    def compose(self) -> ComposeResult:
        """Return the widgets, from top to bottom."""
        yield Static(id="status", markup=False)
        yield Static(id="tabs", markup=False)
        yield Static(id="about", markup=False)
        yield LinesTable()
        yield Static(id="summary", markup=False)
        yield Input(placeholder="words that a line has", compact=True)
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        """Begin to ask, and to count the seconds."""
        self.theme = "ansi-dark"
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.ended_by, number)
        self.query_one(LinesTable).focus()
        self.set_interval(1.0, self.tell_age)
        self.show()
        self.feed.start()

    def on_unmount(self) -> None:
        """Ask no more."""
        self.feed.stop()

    def ended_by(self, number: signal.Signals) -> None:
        """End as by q, so that the terminal is left as it was found."""
        self.exit(return_code=0 if number is signal.SIGINT else 128 + number)

    def on_told(self, told: Told) -> None:
        """Show what the feed said."""
        if not self.is_there:
            return
        match told.said:
            case Seen() as seen:
                self.seen, self.why = seen, ""
            case Failed(why, broken):
                self.why, self.broken = why, broken
                if broken is not None:
                    self.exit(return_code=1)
        self.keep_cursor()
        self.show()

    def on_resize(self) -> None:
        """Show it in the room that there is now."""
        if self.is_there:
            self.keep_cursor()
            self.show()

    @property
    def is_there(self) -> bool:
        """Whether there are widgets to show anything in: neither before the start nor at the end.

        At the end they go one by one, the table not first: by then the application runs no more.
        """
        return self.is_running and bool(self.query(LinesTable))

    def show(self) -> None:
        """Show what was seen last, as it is wanted."""
        self.tell_age()
        if self.seen is None:
            return
        screenful = self.view.screenful(self.seen, self.size.width)
        tabs = Text(no_wrap=True, end="")
        for number, tab in enumerate(screenful.tabs):
            tabs.append(tab, style="reverse bold" if number == self.view.chosen else "")
        self.query_one("#tabs", Static).update(tabs)
        self.put("about", "\n".join(screenful.about))
        self.query_one("#about").display = bool(screenful.about)
        self.put("summary", screenful.summary)
        self.put("keys", screenful.keys)
        self.query_one(LinesTable).fill(screenful.table, self.view.cursor)

    def tell_age(self) -> None:
        """Describe how old what is shown is."""
        if not self.is_there:
            return
        since = self.began if self.seen is None else self.seen.at
        state = None if self.seen is None else self.seen.state
        age = time.monotonic() - since
        self.put("status", status_line(self.where, state, age, self.why, self.size.width))

    def put(self, name: str, text: str) -> None:
        """Put a text where it belongs."""
        self.query_one(f"#{name}", Static).update(Text(text, end=""))

    def on_data_table_row_selected(self) -> None:
        """Open the line under the cursor."""
        self.keep_cursor()
        if self.view.cursor is not None:
            self.view.open(self.view.cursor)
            self.turned()

    def keep_cursor(self) -> None:
        """Note which line the cursor is on, before lines come and go."""
        self.view.cursor = self.query_one(LinesTable).chosen

    def turned(self) -> None:
        """Show something else than before."""
        self.feed.open(self.view.group)
        self.show()

    def action_choose(self, number: int) -> None:
        """Choose a table."""
        self.keep_cursor()
        self.view.choose(number)
        self.turned()

    def action_next(self) -> None:
        """Choose the next table."""
        self.action_choose(self.view.chosen + 1)

    def action_sort(self) -> None:
        """Sort by the next of the table's orders, and begin at its top."""
        self.view.sort()
        self.view.cursor = None
        self.show()

    def action_look(self) -> None:
        """Look at once."""
        self.feed.ask()

    def action_filter(self) -> None:
        """Ask for words."""
        field = self.query_one(Input)
        field.value = self.view.sought
        field.display = True
        self.screen.set_focus(field)  # now: what is typed next goes there

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Show the lines that have these words."""
        if changed.value != self.view.sought:
            self.keep_cursor()
            self.view.sought = changed.value
            self.show()

    def on_input_submitted(self) -> None:
        """Go back to the table, with the filter as it is."""
        self.close_filter()

    def action_leave(self) -> None:
        """Leave the filter, then the line that is open."""
        self.keep_cursor()
        self.view.back()
        self.close_filter()
        self.turned()

    def close_filter(self) -> None:
        """Hide the field for words."""
        self.query_one(Input).display = False
        self.screen.set_focus(self.query_one(LinesTable))
