"""Commits that only begin a history or advance it, all of a poll at once: nearly all that there are.

An advance adds a step. All others are applied one by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from caughtup.models.commits.columns import NO_SLOT, NO_WAIT
from caughtup.models.commits.table import CommitTable
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.polls.column_reader import Ints, Rows
from caughtup.models.polls.commit_columns import NO_TOPIC_ID, CommitColumns


def apply_advances(
    table: CommitTable,
    commits: CommitColumns,
    indices: Ints,
    rows: Ints,
    ends: EndOffsetTable,
    names: Mapping[int, tuple[str, str]],
) -> Rows:
    """Apply those of the commits that only add a step; return which they are.

    ``indices`` are commits on the topics of the last ones, in ``rows`` that have a commit and
    weren't rewound; ``names`` are the group and topic of each of their heads.
    """
    columns = table.columns
    offset, time_ms = commits.offset[indices], commits.time_ms[indices]
    slots = columns.slot[rows].astype(np.int64)
    applied: Rows = (offset > columns.offset[rows]) & (time_ms > columns.step_ms[rows])
    applied &= (time_ms >= columns.commit_ms[rows]) & (slots != NO_SLOT)
    if not applied.any():
        return applied
    rows, time_ms = rows[applied], time_ms[applied]
    before, step_ms = columns.offset[rows], columns.step_ms[rows]
    unread_ms = _unread_since_ms(commits, indices[applied], before, ends, names)
    waits_ms = np.maximum(time_ms - np.maximum(step_ms, unread_ms), 0)
    steps = np.column_stack((before, step_ms, columns.wait_ms[rows]))
    added = table.steps.append(slots[applied], steps, time_ms)
    applied[applied] = added
    rows = rows[added]
    columns.offset[rows] = offset[applied]
    columns.step_ms[rows] = columns.commit_ms[rows] = time_ms[added]
    columns.wait_ms[rows] = waits_ms[added]
    columns.changed[rows] = table.changes + 1
    return applied


def _unread_since_ms(
    commits: CommitColumns,
    indices: Ints,
    before: Ints,
    ends: EndOffsetTable,
    names: Mapping[int, tuple[str, str]],
) -> Ints:
    """Return since when each group had something to read beyond its last commit, 0 if unknown."""
    topics = [names[head][1] for head in commits.head[indices].tolist()]
    partitions, offsets = commits.partition[indices].tolist(), before.tolist()
    return np.array(ends.unread_since_ms(topics, partitions, offsets), np.int64)


def apply_first(table: CommitTable, commits: CommitColumns, indices: Ints) -> None:
    """Apply commits on partitions without one: each begins a history."""
    rows, heads = table.row_index.rows(commits, indices)
    rows, heads = rows[indices], heads[indices]
    columns, time_ms = table.columns, commits.time_ms[indices]
    columns.offset[rows] = commits.offset[indices]
    columns.step_ms[rows] = columns.commit_ms[rows] = time_ms
    columns.wait_ms[rows] = NO_WAIT
    columns.topic_id[rows] = topic_numbers(table, commits, indices)
    columns.changed[rows] = table.changes + 1
    table.row_index.count(heads, 1)


def topic_numbers(table: CommitTable, commits: CommitColumns, indices: Ints) -> Ints:
    """Return the table's number of the topic id of each of these commits; a new id gets one."""
    topic_id = commits.topic_id[indices]
    numbers = np.full(len(commits.topic_ids) + 1, NO_TOPIC_ID, np.int64)  # the last: without an id
    for index in np.unique(topic_id[topic_id != NO_TOPIC_ID]).tolist():
        numbers[index] = table.topic_ids.number(commits.topic_ids[index])
    found: Ints = numbers[topic_id]
    return found
