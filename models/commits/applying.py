"""Applies commits: those from before the service started, and new ones as they arrive.

Past commits are applied a whole poll at once, by vector operations. Only the last commit of each key
and its time are kept, so that a group's interval is known only after further commits. Of new
commits, those that repeat an offset or only advance are applied all at once, the others one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NoReturn

import numpy as np

from caughtup.models.clocks import AHEAD_MS
from caughtup.models.commits.advancing import apply_advances, apply_first, topic_numbers
from caughtup.models.commits.columns import NO_SLOT, NO_WAIT
from caughtup.models.commits.row_index import NO_HEAD, NO_ROW, PARTITION_BITS, head_of
from caughtup.models.commits.table import CommitTable
from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.column_reader import Ints, Rows
from caughtup.models.polls.commit_columns import NO_OFFSET, NO_TOPIC_ID, CommitColumns
from caughtup.models.polls.records import ListedRecords


def apply_past(table: CommitTable, commits: CommitColumns) -> None:
    """Apply commits in the order of their log, as long as nothing beyond them was ever read.

    Reading a log again from its start ends in the same state.
    """
    rows, heads = table.row_index.rows(commits, np.flatnonzero(commits.offset != NO_OFFSET))
    last = _last_in_each_row(table, rows)
    deleted = commits.offset[last] == NO_OFFSET
    _delete_rows(table, rows[last[deleted]], heads[last[deleted]])
    last = last[~deleted]
    rows, of_head = rows[last], heads[last]
    columns = table.columns
    offset, time_ms = commits.offset[last], commits.time_ms[last]
    topic_id = topic_numbers(table, commits, last)

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
    table.row_index.count(of_head[is_new], 1)
    if deleted.any():
        table.sweep(commits.heads)


def _last_in_each_row(table: CommitTable, rows: Ints) -> Ints:
    """Return the index of the last commit in each row, ascending."""
    found = np.flatnonzero(rows != NO_ROW)
    stamp, found_rows = table.columns.stamp, rows[found]
    # numpy keeps the last of several values that are assigned to one row.
    stamp[found_rows] = found
    last: Ints = found[stamp[found_rows] == found]
    return last


def _delete_rows(table: CommitTable, rows: Ints, heads: Ints) -> None:
    there = table.columns.offset[rows] != NO_OFFSET
    rows = rows[there]
    table.forget_steps(rows)
    table.columns.offset[rows] = NO_OFFSET
    table.row_index.count(heads[there], -1)


#: Called with the group and partition of a commit that failed, before the next one.
OnError = Callable[[str, TopicPartition, Exception], object]


def _raise(_: str, __: TopicPartition, error: Exception) -> NoReturn:
    raise error


def apply_live(
    table: CommitTable,
    commits: CommitColumns,
    ends: EndOffsetTable,
    now_ms: int | None = None,
    on_error: OnError = _raise,
) -> None:
    """Apply the last commit of each key, each of which is a step of its group.

    ``ends`` shows since when a group had something to read. With ``now_ms``, commits are recognised
    whose coordinator's clock was set back since. A commit with another topic id is on another topic
    of the same name: its history starts again.
    """
    last = _last_of_each(commits)
    rows, _ = table.row_index.rows(commits, last[:0])
    offset, time_ms = commits.offset[last], commits.time_ms[last]
    topic_id = commits.topic_id[last]
    nothing, is_plain = _repeated(
        table, rows[last], offset, time_ms, _numbers(table, commits)[topic_id], now_ms
    )
    heads = commits.head[last]
    names = {n: table.row_index.names(commits.heads[n]) for n in np.unique(heads).tolist()}
    is_news = ~nothing
    at_once = _applied_at_once(table, commits, last, rows[last], is_news, is_plain, ends, names)
    is_news &= ~at_once
    changed = {names[number][0] for number in np.unique(heads[at_once]).tolist()}
    one_by_one = np.flatnonzero(is_news).tolist()
    for at in one_by_one:
        index = last.item(at)
        head = heads.item(at)
        group, topic = names[head]
        partition = TopicPartition(topic, commits.partition.item(index))
        changed.add(group)
        try:
            made = offset.item(at)
            if made == NO_OFFSET:
                delete(table, group, partition)
                continue
            of_topic = topic_id.item(at)
            known = None if of_topic == NO_TOPIC_ID else commits.topic_ids[of_topic]
            history = ends.history(partition)
            at_ms = time_ms.item(at)
            _apply(table, commits.heads[head], partition, made, at_ms, known, history, now_ms)
        except Exception as error:  # noqa: BLE001 - a failure must affect this commit only
            on_error(group, partition, error)
    if one_by_one:  # only they remove commits
        table.sweep(commits.heads)
    repeated = np.unique(heads[nothing]).tolist()
    table.note(changed, [names[number][0] for number in repeated])


def _applied_at_once(
    table: CommitTable,
    commits: CommitColumns,
    last: Ints,
    rows: Ints,
    is_news: Rows,
    is_plain: Rows,
    ends: EndOffsetTable,
    names: Mapping[int, tuple[str, str]],
) -> Rows:
    """Apply the commits that advance or begin a history; return which of ``last`` they are.

    ``names``: group and topic of the heads of ``last``.

    If that fails, all are left to be applied one by one, where a failure affects one.
    """
    applied = np.zeros(len(last), np.bool_)
    with suppress(Exception):
        plain = np.flatnonzero(is_news & is_plain)
        applied[plain] = apply_advances(table, commits, last[plain], rows[plain], ends, names)
        there = (rows != NO_ROW) & (table.columns.offset[rows] != NO_OFFSET)
        first = np.flatnonzero(is_news & ~there & (commits.offset[last] != NO_OFFSET))
        if first.size:
            apply_first(table, commits, last[first])
            applied[first] = True
    return applied


def delete(table: CommitTable, group: str, partition: TopicPartition) -> None:
    """Remove a group's commit on a partition; ``CommitTable.sweep`` removes its head."""
    head = table.row_index.find(group, partition.topic)
    row = NO_ROW if head == NO_HEAD else table.row_index.row(head, partition.partition)
    if row != NO_ROW and table.columns.offset[row] != NO_OFFSET:
        table.forget_steps(np.array([row]))
        table.columns.offset[row] = NO_OFFSET
        table.row_index.count(head, -1)


def made_commits(
    group: str, offsets: Mapping[TopicPartition, int | None], time_ms: int
) -> CommitColumns:
    """Return a group's commits at a time (ms) as columns, without records.

    An offset of None means that there is no commit any more. Names must fit in a key: 32,767 bytes
    each.
    """
    heads: dict[str, int] = {}
    for topic, _ in offsets:
        heads.setdefault(topic, len(heads))
    made = [NO_OFFSET if offset is None else offset for offset in offsets.values()]
    count = len(made)
    return CommitColumns(
        heads=[head_of(group, topic) for topic in heads],
        head=np.fromiter((heads[topic] for topic, _ in offsets), np.int64, count),
        partition=np.fromiter((number for _, number in offsets), np.int64, count),
        offset=np.array(made, np.int64),
        time_ms=np.full(count, time_ms, np.int64),
        topic_id=np.full(count, NO_TOPIC_ID, np.int64),
        topic_ids=[],
        records=ListedRecords([], []),
    )


def _apply(
    table: CommitTable,
    head: bytes,
    partition: TopicPartition,
    offset: int,
    time_ms: int,
    topic_id: bytes | None,
    ends: EndOffsetHistory | None,
    now_ms: int | None,
) -> None:
    row_index = table.row_index
    number = row_index.add(head)
    row = row_index.add_row(number, partition.partition)
    if table.columns.offset[row] == NO_OFFSET:
        table.keep(row, CommitHistory(offset, time_ms, topic_id))
        row_index.count(number, 1)
        return
    known = table.history(row)
    if known.topic_id is None:
        known.topic_id = topic_id
    if topic_id in (None, known.topic_id):
        _add(known, offset, time_ms, ends, now_ms)
    else:
        known = CommitHistory(offset, time_ms, topic_id)
    table.keep(row, known)


def _add(
    known: CommitHistory,
    offset: int,
    time_ms: int,
    ends: EndOffsetHistory | None,
    now_ms: int | None,
) -> None:
    """Add another commit to a history, with what is known of the partition's end."""
    unread_since_ms = None
    if ends is not None and offset > known.committed:
        unread, _ = ends.around(known.committed)
        unread_since_ms = None if unread is None else unread.at_ms
    known.add(offset, time_ms, unread_since_ms, now_ms)
    if ends is not None and known.rewound_from is not None:
        _, more = ends.around(known.committed)
        if more is None:
            known.rewound_from = None  # the log is shorter now, so there is no more to catch up


def _last_of_each(commits: CommitColumns) -> Ints:
    """Return the index of each key's last commit, in the order of the keys' first commits."""
    keys = commits.head << PARTITION_BITS | commits.partition
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    if len(starts) == len(keys):  # as nearly always
        return np.arange(len(keys))
    last = order[np.append(starts[1:], len(keys)) - 1]
    found: Ints = last[np.argsort(order[starts])]
    return found


def _numbers(table: CommitTable, commits: CommitColumns) -> Ints:
    """Return the table's number of each of the commits' topic ids, and of NO_TOPIC_ID."""
    numbers = [table.topic_ids.known(topic_id) for topic_id in commits.topic_ids]
    return np.array([*numbers, NO_TOPIC_ID], np.int64)


def _repeated(
    table: CommitTable, rows: Ints, offset: Ints, time_ms: Ints, topic_id: Ints, now_ms: int | None
) -> tuple[Rows, Rows]:
    """Apply the commits that repeat an offset; return which commits need no further work.

    These are the repeated ones, those older than the known commit (the log is read again from its
    start after a lost connection), and tombstones of keys without a commit. Return also which are on
    the same topic as the last one of their row, which wasn't rewound.
    """
    columns = table.columns
    before, before_ms = columns.offset[rows], columns.commit_ms[rows]
    there = (rows != NO_ROW) & (before != NO_OFFSET)
    plain = there & (offset != NO_OFFSET)
    plain &= (topic_id == NO_TOPIC_ID) | (topic_id == columns.topic_id[rows])
    plain &= ~columns.is_rewound[rows]
    is_older = plain & (time_ms < before_ms) & (offset <= before)
    if now_ms is not None:
        is_older &= before_ms <= now_ms + AHEAD_MS
    again = np.flatnonzero(plain & (offset == before) & (time_ms >= before_ms))
    repeated = rows[again]
    waits = time_ms[again] - before_ms[again]
    columns.wait_ms[repeated] = np.maximum(columns.wait_ms[repeated], waits)
    columns.commit_ms[repeated] = time_ms[again]
    columns.changed[repeated] = table.changes + 1
    nothing: Rows = is_older | (~there & (offset == NO_OFFSET))
    nothing[again] = True
    return nothing, plain
