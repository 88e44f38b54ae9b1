"""Applies commits from before the service started: a whole poll at once, by vector operations.

Only the last commit of each key and its time are kept: the earlier steps are not, so that a group's
interval is known only after further commits.
"""

from __future__ import annotations

import numpy as np

from caughtup.models.commits.columns import NO_SLOT, NO_WAIT
from caughtup.models.commits.row_index import NO_ROW
from caughtup.models.commits.table import CommitTable
from caughtup.models.polls.column_reader import Ints
from caughtup.models.polls.commit_columns import NO_OFFSET, NO_TOPIC_ID, CommitColumns


def apply_past(table: CommitTable, commits: CommitColumns) -> None:
    """Apply commits in the order of their log, as long as nothing beyond them was ever read.

    Reading a log again from its start ends in the same state.
    """
    rows, heads = table.row_index.rows(commits, np.flatnonzero(commits.offset != NO_OFFSET))
    last = _last_of_each(table, rows)
    deleted = commits.offset[last] == NO_OFFSET
    _delete(table, rows[last[deleted]], heads[last[deleted]])
    last = last[~deleted]
    rows, of_head = rows[last], heads[last]
    columns, ids = table.columns, table.topic_ids
    offset, time_ms = commits.offset[last], commits.time_ms[last]
    numbers = np.full(len(commits.topic_ids) + 1, NO_TOPIC_ID, np.int32)
    named = np.zeros(len(numbers), np.bool_)  # the last is NO_TOPIC_ID's
    named[commits.topic_id[last]] = True
    for index in np.flatnonzero(named[:-1]).tolist():
        numbers[index] = ids.number(commits.topic_ids[index])
    topic_id = numbers[commits.topic_id[last]]

    before, known_id = columns.offset[rows], columns.topic_id[rows]
    is_new = before == NO_OFFSET
    other_topic = (topic_id != NO_TOPIC_ID) & (known_id != NO_TOPIC_ID) & (topic_id != known_id)
    stays = (before == offset) & ~other_topic
    moved = rows[~stays]
    if (columns.slot[moved] != NO_SLOT).any() or columns.is_rewound[moved].any():
        table.forget_steps(moved)
    waits = np.maximum(columns.wait_ms[rows], time_ms - columns.commit_ms[rows])
    columns.wait_ms[rows] = np.where(stays, waits, NO_WAIT)
    columns.step_ms[rows] = np.where(stays, columns.step_ms[rows], time_ms)
    columns.offset[rows] = offset
    columns.commit_ms[rows] = time_ms
    columns.topic_id[rows] = np.where(is_new | (topic_id != NO_TOPIC_ID), topic_id, known_id)
    np.add.at(table.row_index.counts, of_head[is_new], 1)
    if deleted.any():
        table.sweep(commits.heads)


def _last_of_each(table: CommitTable, rows: Ints) -> Ints:
    """Return the index of the last commit in each row, ascending."""
    found = np.flatnonzero(rows != NO_ROW)
    stamp, found_rows = table.columns.stamp, rows[found]
    # numpy keeps the last of several values that are assigned to one row.
    stamp[found_rows] = found
    last: Ints = found[stamp[found_rows] == found]
    return last


def _delete(table: CommitTable, rows: Ints, heads: Ints) -> None:
    there = table.columns.offset[rows] != NO_OFFSET
    rows = rows[there]
    table.forget_steps(rows)
    table.columns.offset[rows] = NO_OFFSET
    np.subtract.at(table.row_index.counts, heads[there], 1)
