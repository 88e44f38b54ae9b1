"""How Kafka Streams restores a store, as rules: where it begins and ends, and which actives run.

A store goes on from its checkpoint; without one, and with one that the changelog no longer has, it
starts over. Source: StoreChangelogReader, TaskManager, ProcessorStateManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from caughtup.models.ids import TaskId
from caughtup.models.offsets import LATEST_OFFSET


@dataclass(frozen=True, slots=True)
class Changelog:
    """One store's changelog partition, in offsets.

    ``start_offset`` and ``end_offset`` are the log's. ``committed``: for a source topic that
    serves as the changelog, what the application has committed of it (0 without a commit); None
    for a changelog of its own.
    """

    start_offset: int
    end_offset: int
    committed: int | None = None

    @property
    def restore_end(self) -> int:
        """The offset up to which a copy restores: nothing beyond the commit is in a store."""
        if self.committed is None:
            return self.end_offset
        return min(self.committed, self.end_offset)


class Restoration(NamedTuple):
    """Where a store begins to restore (offset), how many offsets there are, and why there.

    ``why``: ``checkpoint``, ``no_checkpoint``, ``out_of_range``, ``in_memory`` or ``unclean``.
    """

    begins_at: int
    offsets: int
    why: str


def restoration(
    changelog: Changelog,
    checkpoint: int | None,
    *,
    persistent: bool = True,
    exactly_once: bool = False,
    has_files: bool = False,
) -> Restoration:
    """Compute what a store has to restore.

    ``checkpoint``: the offset after the last record that the store has, None without one. A store
    in memory has none after a restart. ``exactly_once`` with ``has_files``: a store that was not
    closed cleanly lost its checkpoint, and what it holds may not be committed, so it is wiped. A
    checkpoint outside of the log (its start passed it, or the changelog was recreated) is of no
    use: the task counts as corrupted, its stores are wiped, and it starts over.
    """
    if not persistent:
        return _from(changelog, changelog.start_offset, "in_memory")
    if checkpoint is None:
        why = "unclean" if exactly_once and has_files else "no_checkpoint"
        return _from(changelog, changelog.start_offset, why)
    if not changelog.start_offset <= checkpoint <= changelog.end_offset:
        return _from(changelog, changelog.start_offset, "out_of_range")
    return _from(changelog, checkpoint, "checkpoint")


def _from(changelog: Changelog, offset: int, why: str) -> Restoration:
    return Restoration(offset, max(0, changelog.restore_end - offset), why)


def reported_sum(restored: bool, active: bool, offset_sum: int) -> int:
    """Return the offset sum that a member reports of a task when it joins a rebalance.

    Only a restored active runs and says so (-2). An active that still restores says how far it
    is, like a standby, and that is what the leader takes it for: a previous standby.
    """
    return LATEST_OFFSET if active and restored else offset_sum


def running(actives: Mapping[TaskId, bool], *, state_updater: bool = True) -> set[TaskId]:
    """Name the active tasks of a thread that process records.

    ``actives``: task → whether all of its stores are restored (a task without any is).
    """
    if not state_updater and not all(actives.values()):
        return set()
    return {task for task, restored in actives.items() if restored}
