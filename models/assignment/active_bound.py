"""The most active tasks that a process is assigned while a group is on its way to balance."""

from __future__ import annotations


def most_actives(capacity: int, tasks: int, threads: int) -> int:
    """Return the most active tasks that a process with ``capacity`` of all ``threads`` is assigned.

    That is what HighAvailabilityTaskAssignor's balance allows (no process has more than one task
    per thread more than another), and one more: two processes that both have all that they may have
    could never exchange tasks otherwise.
    """
    return capacity * (tasks + threads - capacity) // threads + 1
