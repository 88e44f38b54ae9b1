"""Bounds of the numbers in records; numbers outside are no offset, time or task.

Any number can be written to the log. Within these bounds, sums of offsets and differences of times
fit where they are stored, and a task has a name.
"""

from __future__ import annotations

from caughtup.models.errors import DecodeError
from caughtup.models.ids import NUMBER_MAX, TaskId
from caughtup.models.offsets import LONG_MAX

#: The last millisecond of the year 9999, since the epoch.
LATEST_MS = 253_402_300_799_999
#: The time of a record without one, or of a coordinator that knows none.
NO_TIME_MS = -1
#: A static member that left for a while has the epoch -2, one that leaves has -1.
LEAST_EPOCH = -2


def bounded(what: str, number: int, least: int, most: int = LONG_MAX) -> int:
    """Return a number within its bounds. Raises DecodeError ``out_of_range``."""
    if not least <= number <= most:
        raise DecodeError("out_of_range", f"{what} {number}")
    return number


def partition(number: int) -> int:
    """Return a partition's number. Raises DecodeError ``out_of_range``."""
    return bounded("partition", number, 0, NUMBER_MAX)


def partitions(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of partitions. Raises DecodeError ``out_of_range``."""
    if numbers:
        partition(min(numbers))
        partition(max(numbers))
    return numbers


def task_id(subtopology: int, partition: int) -> TaskId:
    """Return the id of a task that can be written as a name.

    Raises DecodeError ``out_of_range``.
    """
    if not 0 <= subtopology <= NUMBER_MAX or not 0 <= partition <= NUMBER_MAX:
        raise DecodeError("out_of_range", f"task {subtopology}_{partition}")
    return TaskId(subtopology, partition)


def epoch(number: int) -> int:
    """Return an epoch. Raises DecodeError ``out_of_range``."""
    return bounded("epoch", number, LEAST_EPOCH)


def time_ms(number: int) -> int:
    """Return a time in ms since the epoch, up to the year 9999. Raises DecodeError ``bad_time``."""
    if not 0 <= number <= LATEST_MS:
        raise DecodeError("bad_time", f"{number} ms is not a time since 1970")
    return number


def known_time_ms(number: int) -> int:
    """Return a time in ms since the epoch, or -1 for unknown. Raises DecodeError ``bad_time``."""
    return number if number == NO_TIME_MS else time_ms(number)
