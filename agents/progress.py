"""Progress bars for long work on standard error; none if that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Progress:
    """Shows a bar for each task while it runs, when standard error is a terminal."""

    @contextmanager
    def task(self, description: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Yield a function that adds a number to the completed amount; the total may be unknown."""
        if not sys.stderr.isatty():
            yield lambda _: None
            return
        # Here, since a service seldom has a terminal: it is 3 MB of each that hasn't.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        with bar:
            task = bar.add_task(description, total=total)
            yield lambda done: bar.advance(task, done)


class NoProgress(Progress):
    """Shows nothing, for programs that use the terminal otherwise."""

    @contextmanager
    def task(self, description: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Yield a function that does nothing."""
        yield lambda _: None
