"""Offset commits of open transactions, held until the transaction ends, as the coordinator does.

A group coordinator stores a plain commit at once, and a transactional one when it reads the commit
marker of its producer, unless a commit that comes later in the log is stored by then. A tombstone
deletes both the stored and the pending commits. So a key's commit is, at any time, the last record
in the log among plain ones, tombstones and those of committed transactions. Source: Kafka's
``OffsetMetadataManager.replay`` and ``replayEndTransactionMarker`` (4.x), ``GroupMetadataManager``
(before).

A reader of committed records holds every record of a transaction so (``PendingCommits(every=True)``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caughtup.models.polls.column_reader import Ints, Rows
from caughtup.models.polls.records import NULL, FramedRecords

#: The most memory of one partition's pending commits (bytes of keys and values, and an estimate of
#: the objects); beyond it those of the transaction that has been open longest are dropped.
MOST_BYTES = 16 << 20
_OBJECT_BYTES = 250
#: An offset commit's key starts with type 0 (before Kafka 0.9) or 1; the rest identifies it.
_TYPE_BYTES = 2
_COMMIT_TYPES = (0, 1)
_OFFSET_BYTES = 8
#: The last bytes of a key, which distinguish most keys without copying them.
_TAIL_BYTES = 8
#: The types of transaction markers, in the key of a control record.
ABORT, COMMIT = 0, 1


class PendingCommit(NamedTuple):
    """An offset commit of an open transaction: its offset in the log, its key and its value.

    ``at_ms`` is its record's timestamp, 0 if it wasn't read. Key and value are never None, but of
    ``PendingCommits(every=True)``.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    at_ms: int = 0


class LoggedRecords(NamedTuple):
    """Records of one partition in the order of its log.

    ``offset`` (int64) is each record's offset, ``batch`` (int64) the index of its batch, ``time``
    (int64, ms) its timestamp; None if timestamps aren't read.
    """

    records: FramedRecords
    offset: Ints
    batch: Ints
    time: Ints | None = None

    def select(self, rows: Rows | Ints | slice) -> LoggedRecords:
        """Return some of the records."""
        time = None if self.time is None else self.time[rows]
        return LoggedRecords(self.records.select(rows), self.offset[rows], self.batch[rows], time)


class Transactions(NamedTuple):
    """The transactions of one partition's batches: an element for each batch.

    ``producer`` is a batch's producer id (int64), ``is_transactional`` whether its records are part
    of a transaction, ``ends`` the marker in a control batch (int64): ABORT, COMMIT, or less than
    both for none.
    """

    producer: Ints
    is_transactional: Rows
    ends: Ints


class Applied(NamedTuple):
    """The records that count from now on: released commits, then ``rows`` of the records read."""

    released: list[PendingCommit]
    rows: Rows


class PendingCommits:
    """The pending offset commits of one partition of ``__consumer_offsets``, by producer id.

    ``every``: of any other partition, each record of an open transaction. ``dropped`` is the number
    that was dropped because there were too many.
    """

    def __init__(self, *, every: bool = False) -> None:
        self._every = every
        self._producers: dict[int, dict[bytes, PendingCommit]] = {}
        #: The offset of the first commit of each producer's transaction, in the order of the log.
        self._first: dict[int, int] = {}
        self._bytes = 0
        self.dropped = 0

    def __len__(self) -> int:
        return sum(map(len, self._producers.values()))

    def clear(self) -> None:
        """Remove all of them, before the partition is read from its start again."""
        self._producers.clear()
        self._first.clear()
        self._bytes = 0

    def commits(self) -> list[tuple[int, PendingCommit]]:
        """Return all of them, each with its producer's id, in the order of the log."""
        found = (
            (producer, commit)
            for producer, commits in self._producers.items()
            for commit in commits.values()
        )
        return sorted(found, key=lambda one: one[1].offset)

    def restore(self, commits: Iterable[tuple[int, PendingCommit]]) -> None:
        """Add commits that ``commits`` returned earlier."""
        for producer, commit in commits:
            self._first.setdefault(producer, commit.offset)
            self._producers.setdefault(producer, {})[self._identity(commit)] = commit
            self._bytes += _size(commit)

    def opened(self) -> dict[int, int]:
        """Return the producers with pending commits, with the offset of the transaction's first one.

        Those whose transactions have been open longest come first.
        """
        return dict(self._first)

    @property
    def first_offset(self) -> int | None:
        """The offset of the first commit of all open transactions; None without one."""
        return next(iter(self._first.values()), None)

    def apply(self, logged: LoggedRecords, transactions: Transactions) -> Applied:
        """Apply the next records in the order of the log, and return those that count from now on.

        Released commits come before every record that was read, sorted by offset.
        """
        committed, is_open = _outcomes(transactions)
        released = self._end(transactions)
        is_pending = transactions.is_transactional[logged.batch]
        if not self._every:
            is_pending = is_pending & _is_commit(logged.records)
        rows = ~is_pending | committed[logged.batch]
        held = np.flatnonzero(is_pending & is_open[logged.batch])
        if held.size:
            self._hold(logged, held, transactions.producer[logged.batch[held]])
        if self._producers and not self._every:
            self._supersede(logged, rows, released)
        return Applied(released, rows)

    def _end(self, transactions: Transactions) -> list[PendingCommit]:
        """Remove the commits that each producer's first marker ends.

        Return those that it commits.
        """
        released: dict[bytes, PendingCommit] = {}
        if not self._producers:
            return []
        for at in np.flatnonzero(transactions.ends >= ABORT).tolist():
            commits = self._producers.pop(transactions.producer.item(at), None)
            if commits is None:
                continue
            del self._first[transactions.producer.item(at)]
            self._bytes -= sum(map(_size, commits.values()))
            if transactions.ends.item(at) != COMMIT:
                continue
            for key, commit in commits.items():
                if key not in released or commit.offset > released[key].offset:
                    released[key] = commit
        return sorted(released.values())

    def _hold(self, logged: LoggedRecords, rows: Ints, producers: Ints) -> None:
        found = logged.select(rows)
        times = np.zeros(len(rows), np.int64) if found.time is None else found.time
        of_rows = zip(
            producers.tolist(),
            found.offset.tolist(),
            found.records.keys(),
            found.records.values(),
            times.tolist(),
            strict=True,
        )
        for producer, offset, key, value, at_ms in of_rows:
            self._first.setdefault(producer, offset)
            commits = self._producers.setdefault(producer, {})
            commit = PendingCommit(offset, key, value, at_ms)
            same = self._identity(commit)
            before = commits.pop(same, None)
            self._bytes += _size(commit) - (0 if before is None else _size(before))
            commits[same] = commit
        while self._bytes > MOST_BYTES:
            oldest = next(iter(self._first))
            del self._first[oldest]
            dropped = self._producers.pop(oldest)
            self._bytes -= sum(map(_size, dropped.values()))
            self.dropped += len(dropped)

    def _identity(self, commit: PendingCommit) -> bytes:
        """Return a commit's key without its version; the offset where every record is held."""
        if self._every:
            return commit.offset.to_bytes(_OFFSET_BYTES)
        assert commit.key is not None  # it has a type
        return commit.key[_TYPE_BYTES:]

    def _supersede(self, logged: LoggedRecords, rows: Rows, released: list[PendingCommit]) -> None:
        """Remove the pending commits of keys that have a later record that counts."""
        for commit in released:
            self._forget(self._identity(commit), commit.offset)
        records = logged.records
        tails = {key[-_TAIL_BYTES:] for commits in self._producers.values() for key in commits}
        chosen = np.flatnonzero(rows & (records.key_end - records.key_start >= _TAIL_BYTES))
        if not chosen.size or not tails:
            return
        count = len(records.data) - _TAIL_BYTES + 1
        words: NDArray[np.uint64] = np.ndarray((count,), np.uint64, records.data, strides=(1,))
        wanted = np.frombuffer(b"".join(sorted(tails)), np.uint64)
        chosen = chosen[np.isin(words[records.key_end[chosen] - _TAIL_BYTES], wanted)]
        offsets = logged.offset[chosen].tolist()
        for offset, key in zip(offsets, records.select(chosen).keys(), strict=True):
            assert key is not None  # it has a length
            if int.from_bytes(key[:_TYPE_BYTES]) in _COMMIT_TYPES:
                self._forget(key[_TYPE_BYTES:], offset)

    def _forget(self, same: bytes, offset: int) -> None:
        """Remove the pending commits of a key from before an offset, of any producer."""
        for producer in list(self._producers):
            commits = self._producers[producer]
            commit = commits.get(same)
            if commit is not None and commit.offset < offset:
                del commits[same]
                self._bytes -= _size(commit)
                if not commits:
                    del self._producers[producer], self._first[producer]


def framed(commits: Sequence[PendingCommit], data: bytes) -> tuple[bytes, FramedRecords]:
    """Append commits to the bytes of an answer, and return all bytes and the commits in them."""
    pieces = [data, *(piece or b"" for one in commits for piece in (one.key, one.value))]
    bounds = np.cumsum([len(piece) for piece in pieces])
    key_start, key_end, value_end = bounds[:-1:2], bounds[1::2], bounds[2::2]
    joined = b"".join(pieces)
    return joined, FramedRecords(joined, key_start, key_end, key_end, value_end)


def _outcomes(transactions: Transactions) -> tuple[Rows, Rows]:
    """Return which batches their producer's next marker commits, and which have no marker yet.

    Batches are numbered by producer first, then by their order: the marker of a batch is the next
    one in that numbering, if it is the same producer's.
    """
    count = len(transactions.producer)
    _, producer = np.unique(transactions.producer, return_inverse=True)
    place = producer * count + np.arange(count)
    markers = np.flatnonzero(transactions.ends >= ABORT)
    markers = markers[np.argsort(place[markers], kind="stable")]
    following = np.searchsorted(place[markers], place)
    ended = following < len(markers)
    if markers.size:
        marker = markers[np.minimum(following, len(markers) - 1)]
        ended &= producer[marker] == producer
        return ended & (transactions.ends[marker] == COMMIT), ~ended
    return ended, ~ended


def _is_commit(records: FramedRecords) -> Rows:
    """Return which records are offset commits with a value, which may be pending."""
    there: Rows = (records.key_end - records.key_start >= _TYPE_BYTES) & (
        records.value_start != NULL
    )
    start = np.where(there, records.key_start, 0)
    raw = np.frombuffer(records.data, np.uint8)
    if not len(raw):
        return there
    there &= (raw[start] == 0) & (raw[np.minimum(start + 1, len(raw) - 1)] <= _COMMIT_TYPES[-1])
    return there


def _size(commit: PendingCommit) -> int:
    return len(commit.key or b"") + len(commit.value or b"") + _OBJECT_BYTES
