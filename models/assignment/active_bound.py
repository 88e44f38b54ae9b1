"""How many actives a process may be given while a group is on its way to balance."""

from __future__ import annotations


def most_actives(capacity: int, tasks: int, threads: int) -> int:
    """Return the most tasks that a process with ``capacity`` of all ``threads`` may be given.

    As many as it can have while nobody has more than one for each thread more than anybody else,
    which is HighAvailabilityTaskAssignor's balance, and one more: two processes with all they may
    have could never exchange tasks otherwise.
    """
    return capacity * (tasks + threads - capacity) // threads + 1
