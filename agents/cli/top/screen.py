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
from caughtup.agents.cli.top.feed import Answered, Failed, Feed
from caughtup.agents.cli.top.sources import Source
from caughtup.agents.cli.top.tables import Drawn
from caughtup.agents.cli.top.view import SENTENCES, WRAPPED, TopView, status_line


class LinesTable(DataTable[Text]):
    """A table whose cursor stays on its line when the rows change; redraws changed cells only."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("home", "scroll_top", "The first line", show=False),
        Binding("end", "scroll_bottom", "The last line", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(cursor_type="row", cell_padding=0)
        self.shown: Drawn | None = None

    @property
    def chosen(self) -> tuple[str | int, ...] | None:
        """The key of the line under the cursor, None if there is no line."""
        if self.shown is None or not 0 <= self.cursor_row < len(self.shown.keys):
            return None
        return self.shown.keys[self.cursor_row]

    def fill(self, drawn: Drawn, cursor: tuple[str | int, ...] | None) -> None:
        """Show these lines; move the cursor to the line with this key, else to the first."""
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


class FeedMessage(Message):
    """A message with the feed's answer."""

    def __init__(self, answer: Answered | Failed) -> None:
        super().__init__()
        self.answer = answer


class TopApp(App[None]):
    """The application; ``broken`` is an unexpected error that ended it."""

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
        self.feed = Feed(source, seconds, lambda answer: self.post_message(FeedMessage(answer)))
        self.where = source.where
        self.answered: Answered | None = None
        #: The reason of the last failed attempt, empty after an answer.
        self.why = ""
        self.began = time.monotonic()

    def compose(self) -> ComposeResult:
        """Yield the widgets, from top to bottom."""
        yield Static(id="status", markup=False)
        yield Static(id="tabs", markup=False)
        yield Static(id="about", markup=False)
        yield LinesTable()
        yield Static(id="summary", markup=False)
        yield Input(placeholder="words that a line has", compact=True)
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        """Start the feed and the timer."""
        self.theme = "ansi-dark"
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit_on_signal, number)
        self.query_one(LinesTable).focus()
        self.set_interval(1.0, self.show_age)
        self.show()
        self.feed.start()

    def on_unmount(self) -> None:
        """Stop the feed."""
        self.feed.stop()

    def exit_on_signal(self, number: signal.Signals) -> None:
        """Exit as by q, which restores the terminal."""
        self.exit(return_code=0 if number is signal.SIGINT else 128 + number)

    def on_feed_message(self, message: FeedMessage) -> None:
        """Show the feed's answer."""
        if not self.is_there:
            return
        match message.answer:
            case Answered() as answered:
                self.answered, self.why = answered, ""
            case Failed(why, broken):
                self.why, self.broken = why, broken
                if broken is not None:
                    self.exit(return_code=1)
        self.keep_cursor()
        self.show()

    def on_resize(self) -> None:
        """Redraw for the new size."""
        if self.is_there:
            self.keep_cursor()
            self.show()

    @property
    def is_there(self) -> bool:
        """Whether the widgets exist: neither before the start nor at the end."""
        return self.is_running and bool(self.query(LinesTable))

    def show(self) -> None:
        """Draw the last answer with the current view."""
        self.show_age()
        if self.answered is None:
            return
        screenful = self.view.screenful(self.answered, self.size.width)
        tabs = Text(no_wrap=True, end="")
        for number, tab in enumerate(screenful.tabs):
            tabs.append(tab, style="reverse bold" if number == self.view.chosen else "")
        self.query_one("#tabs", Static).update(tabs)
        self.put("about", "\n".join(screenful.about))
        self.query_one("#about").display = bool(screenful.about)
        self.put("summary", screenful.summary)
        self.put("keys", screenful.keys)
        self.query_one(LinesTable).fill(screenful.table, self.view.cursor)

    def show_age(self) -> None:
        """Update the status line with the age of the data."""
        if not self.is_there:
            return
        since = self.began if self.answered is None else self.answered.at
        state = None if self.answered is None else self.answered.state
        age = time.monotonic() - since
        self.put("status", status_line(self.where, state, age, self.why, self.size.width))

    def put(self, name: str, text: str) -> None:
        """Set the text of a widget."""
        self.query_one(f"#{name}", Static).update(Text(text, end=""))

    def on_data_table_row_selected(self) -> None:
        """Open the line under the cursor."""
        self.keep_cursor()
        if self.view.cursor is not None:
            self.view.open(self.view.cursor)
            self.switch_table()

    def keep_cursor(self) -> None:
        """Remember the cursor's line before the rows change."""
        self.view.cursor = self.query_one(LinesTable).chosen

    def switch_table(self) -> None:
        """Show another table."""
        self.feed.open(self.view.group)
        self.show()

    def action_choose(self, number: int) -> None:
        """Choose a table."""
        self.keep_cursor()
        self.view.choose(number)
        self.switch_table()

    def action_next(self) -> None:
        """Choose the next table."""
        self.action_choose(self.view.chosen + 1)

    def action_sort(self) -> None:
        """Sort by the table's next order, and go to its top."""
        self.view.sort()
        self.view.cursor = None
        self.show()

    def action_look(self) -> None:
        """Ask the source at once."""
        self.feed.ask()

    def action_filter(self) -> None:
        """Open the filter's field."""
        field = self.query_one(Input)
        field.value = self.view.sought
        field.display = True
        self.screen.set_focus(field)  # at once, before the next key

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Show the lines that contain these words."""
        if changed.value != self.view.sought:
            self.keep_cursor()
            self.view.sought = changed.value
            self.show()

    def on_input_submitted(self) -> None:
        """Close the filter's field, and keep the filter."""
        self.close_filter()

    def action_leave(self) -> None:
        """Remove the filter, else close the open line."""
        self.keep_cursor()
        self.view.back()
        self.close_filter()
        self.switch_table()

    def close_filter(self) -> None:
        """Hide the filter's field."""
        self.query_one(Input).display = False
        self.screen.set_focus(self.query_one(LinesTable))
