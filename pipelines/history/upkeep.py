"""The history's daily upkeep of its tables (UTC), after a batch.

The day of the last upkeep is in the state's table, so that a job that is started for each batch
also does it once a day. Failures are logged and left for the next day: no batch depends on it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.delta.upkeep import UpkeepOptions, keep_up
from caughtup.pipelines.history.tables import LAYOUTS, HistoryTables

_log = logging.getLogger(__name__)


@contextmanager
def _unseen(_what: str, _steps: int) -> Iterator[Callable[[int], None]]:
    yield lambda _: None


class DailyUpkeep:
    """Compacts a history's tables, and deletes rows of days more than ``keep`` days ago."""

    def __init__(self, tables: HistoryTables, keep: int | None) -> None:
        self._tables = tables
        self._keep = keep

    def keep_up(self, today: date) -> None:
        """Do the upkeep, unless it was done today."""
        state = self._tables.state
        try:
            if (state.kept_up() or 0) >= today.toordinal():
                return
            options = UpkeepOptions(today, keep=self._keep)
            names = [layout.name for layout in LAYOUTS]
            problems = keep_up(self._tables.root, names, options, _unseen).problems
            state.keep_up_done(today.toordinal())
        except CaughtupError as error:
            problems = [error.message]
        for problem in problems:
            _log.warning("maintaining the tables: %s", problem)
