"""Rules by which Kafka Streams restores a store: start, end, and which actives run.

A store continues from its checkpoint. Without one, or with one outside the changelog, it starts
over. Source: StoreChangelogReader, TaskManager, ProcessorStateManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from caughtup.models.ids import TaskId
from caughtup.models.offsets import LATEST_OFFSET


@dataclass(frozen=True, slots=True)
class Changelog:
    """A store's changelog partition, in offsets.

    ``start_offset`` and ``end_offset`` are the log's. ``committed``: the application's committed
    offset on a source topic that serves as the changelog (0 without a commit); None for a changelog
    of its own.
    """

    start_offset: int
    end_offset: int
    committed: int | None = None

    @property
    def restore_end(self) -> int:
        """The offset up to which a copy restores: no store has anything beyond the commit."""
        if self.committed is None:
            return self.end_offset
        return min(self.committed, self.end_offset)


class Restoration(NamedTuple):
    """The offset at which a store begins to restore, the number of offsets, and the reason.

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
    """Return what a store has to restore.

    ``checkpoint``: the offset after the store's last record, None without one. A store in memory
    has none after a restart. ``exactly_once`` with ``has_files``: a store that was not closed
    cleanly lost its checkpoint, and may have uncommitted records, so it is wiped. With a checkpoint
    outside the log (retention passed it, or the changelog was recreated) the task counts as
    corrupted: its stores are wiped, and it starts over.
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
    """Return the offset sum that a member reports for a task when it joins.

    Only a restored active reports -2. A restoring active reports its sum, like a standby, so the
    leader takes it for a previous standby.
    """
    return LATEST_OFFSET if active and restored else offset_sum


def running(actives: Mapping[TaskId, bool], *, state_updater: bool = True) -> set[TaskId]:
    """Return a thread's active tasks that process records.

    ``actives``: task → whether all of its stores, if any, are restored.
    """
    if not state_updater and not all(actives.values()):
        return set()
    return {task for task, restored in actives.items() if restored}
