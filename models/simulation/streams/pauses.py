"""A process that stands still for a while, as by SIGSTOP or a long garbage collection.

Its threads neither process nor restore, and send no heartbeats. If the group has lost patience by
the time they go on, they have lost their tasks and join as new members; their states are on disk.
"""

from __future__ import annotations

from typing import NamedTuple

from caughtup.models.ids import TaskId
from caughtup.models.simulation.streams.instance import Instance
from caughtup.models.simulation.streams.thread import StreamThread


class PausedThread(NamedTuple):
    """What a thread had when its process stood still.

    ``unfinished``: the actives that it was still restoring. ``next_rebalance_ms``: when it was to
    ask for a rebalance, on the leader's clock.
    """

    thread: StreamThread
    active: tuple[TaskId, ...]
    unfinished: frozenset[TaskId]
    standby: tuple[TaskId, ...]
    next_rebalance_ms: int | None


def pause(thread: StreamThread) -> PausedThread:
    """Let a thread stand still: its states are on disk meanwhile, as far as they are.

    Of a thread that has given its tasks up to join again nothing is kept but these states.
    """
    active = tuple(sorted(thread.active)) if thread.owned else ()
    paused = PausedThread(
        thread,
        active,
        frozenset(task for task in active if task in thread.restoration),
        tuple(sorted(thread.standby)),
        thread.next_rebalance_ms,
    )
    thread.stop(checkpoint=True)
    return paused


def go_on(paused: PausedThread, instance: Instance, now_ms: int) -> None:
    """Let a thread go on with what it had. ``now_ms`` is on the leader's clock."""
    found = {task: instance.take_state(task) for task in (*paused.active, *paused.standby)}
    behind = {*paused.unfinished, *paused.standby}
    due_ms = paused.next_rebalance_ms
    paused.thread.resume(
        paused.active,
        paused.standby,
        {task: int(at) for task, at in found.items() if task in behind},
        None if due_ms is None else max(due_ms, now_ms),
    )
