"""What all parts of an application share in a story: its time, its changelogs, its time line."""

from __future__ import annotations

from collections.abc import Callable

from caughtup.models.ids import TaskId
from caughtup.models.simulation.streams.ends import Ends
from caughtup.models.simulation.streams.topology import Application
from caughtup.models.simulation.time_line import Activity, TimeLine
from caughtup.models.simulation.virtual_time import VirtualTime


class Stage:
    """Time, end offsets and the time line. ``epoch_ms`` is the leader's clock at the story's start.

    ``copies_built`` counts states restored from nothing, ``to_restore`` what there was to restore
    wherever a copy began, in offsets.
    """

    def __init__(
        self, application: Application, epoch_ms: int, growth_changed: Callable[[TaskId], None]
    ) -> None:
        self.application = application
        self.epoch_ms = epoch_ms
        self.tasks = application.tasks()
        self.names = {
            task: application.task_names.get(task) or str(task) for task in self.tasks.sources
        }
        self.time = VirtualTime()
        self.line = TimeLine()
        self.ends = Ends(self.time, application.changelogs, growth_changed)
        self.copies_built = 0
        self.to_restore = 0.0

    def does(self, task: TaskId, client: str, activity: Activity | None) -> None:
        """Note what a client's copy of a task does."""
        self.line.does(self.time.now_ms, self.names[task], client, activity)

    def mark(self, kind: str, what: str) -> None:
        """Note that something happened."""
        self.line.mark(self.time.now_ms, kind, what)

    def restores(self, task: TaskId, client: str, at: float) -> None:
        """Count what a copy has to restore, from an offset sum on."""
        end = self.ends.end(task)
        self.to_restore += max(end - at, 0.0)
        if at <= 0 < end:
            self.copies_built += 1
            self.mark("copy", f"{client} builds {self.names[task]}")
