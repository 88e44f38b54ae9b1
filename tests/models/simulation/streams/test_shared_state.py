"""End offsets that grow while a task is processed, and catch up with what it missed."""

from __future__ import annotations

from caughtup.models.ids import TaskId
from caughtup.models.simulation.streams.shared_state import ChangelogEnds
from caughtup.models.simulation.streams.topology import Changelog
from caughtup.models.simulation.virtual_time import VirtualTime

TASK = TaskId(0, 0)


def test_what_came_while_a_task_stood_still_is_written_when_it_goes_on() -> None:
    time = VirtualTime()
    ends = ChangelogEnds(time, {TASK: Changelog(1_000, 10.0)}, lambda _: None)
    ends.grow(TASK, grows=True)
    time.run(5_000)
    ends.grow(TASK, grows=False)
    time.run(25_000)
    assert ends.end(TASK) == 1_050
    ends.grow(TASK, grows=True)
    assert ends.end(TASK) == 1_250
    time.run(30_000)
    assert ends.end(TASK) == 1_300
