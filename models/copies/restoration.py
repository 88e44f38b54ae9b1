"""How Kafka Streams restores state: which copies of a thread wait for which.

Each stream thread restores the changelogs of its tasks with one restore consumer. A standby (and
a warm-up is one) gets nothing while an active of its thread restores. What that means for the
actives themselves depends on the version:

- Until Kafka 3.7 a thread ran none of its tasks before all of its actives were restored.
- Since 3.8 a state updater restores beside the thread (KIP-869), and each active runs as soon as
  its own stores are complete. Standbys wait for the thread's actives all the same: the updater
  pauses their changelogs until only standbys are left.

Source: DefaultStateUpdater, TaskManager.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import CopyKey, TaskId


def standbys_wait_for(actives: Mapping[TaskId, bool]) -> list[TaskId]:
    """Name the active tasks of a thread that its standbys wait for, sorted; none = they restore."""
    return sorted(task for task, restored in actives.items() if not restored)


def waiting_standbys(
    generation: StreamsGeneration, restoring: Collection[CopyKey]
) -> dict[CopyKey, tuple[TaskId, ...]]:
    """Name every standby (warm-ups too) that waits, and the restoring actives of its thread.

    ``restoring``: the actives that aren't restored yet.
    """
    waiting: dict[CopyKey, tuple[TaskId, ...]] = {}
    for member in generation.members():
        if member.assignment is None:
            continue
        process = str(member.process)
        actives = {
            task: CopyKey(process, task) not in restoring for task in member.assignment.active
        }
        blockers = tuple(standbys_wait_for(actives))
        if blockers:
            waiting |= {CopyKey(process, task): blockers for task in member.assignment.standby}
    return waiting


def copies_by_thread(generation: StreamsGeneration) -> list[list[CopyKey]]:
    """List what each stream thread has, actives first: one consumer restores all of it."""
    threads = []
    for member in generation.members():
        if member.assignment is not None:
            tasks = dict.fromkeys((*member.assignment.active, *sorted(member.assignment.standby)))
            process = str(member.process)
            threads.append([CopyKey(process, task) for task in tasks])
    return threads
