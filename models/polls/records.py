"""Records in either of two forms: separate objects, or all of them in one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from caughtup.models.polls.column_reader import ColumnReader, Ints, Rows

#: The start and the end of a null key or value of framed records.
NULL = -1
_WORD = 8
#: Longer heads, which are rare, are compared one by one.
_LONGEST = 256
#: The sample size that decides whether each record is compared with the one before.
_SAMPLE = 64


class Heads(NamedTuple):
    """The starts of keys: the distinct ones in a row, and each record's index in these (int64)."""

    heads: list[bytes]
    of_record: Ints


class Records(Protocol):
    """Records in the order of their log; a key or a value may be null."""

    @property
    def offset(self) -> Ints | None:
        """The offset of each record, None if they aren't known."""

    def __len__(self) -> int: ...

    def key_reader(self) -> ColumnReader:
        """Return a reader of all keys."""

    def value_reader(self) -> ColumnReader:
        """Return a reader of all values."""

    def keys(self) -> Sequence[bytes | None]:
        """Return all keys."""

    def values(self) -> Sequence[bytes | None]:
        """Return all values."""

    def heads(self, tail_bytes: int) -> Heads:
        """Return all keys without their last ``tail_bytes``."""

    def select(self, rows: Rows | slice) -> Self:
        """Return some of the records."""


@dataclass(frozen=True, slots=True)
class ListedRecords:
    """Records from a client library: a list of keys, and one of values."""

    listed_keys: Sequence[bytes | None]
    listed_values: Sequence[bytes | None]
    offset: Ints | None = None

    def __len__(self) -> int:
        return len(self.listed_keys)

    def key_reader(self) -> ColumnReader:
        """Return a reader of all keys, copied to one buffer."""
        return ColumnReader.of(self.listed_keys)

    def value_reader(self) -> ColumnReader:
        """Return a reader of all values, copied to one buffer."""
        return ColumnReader.of(self.listed_values)

    def keys(self) -> Sequence[bytes | None]:
        """Return all keys."""
        return self.listed_keys

    def values(self) -> Sequence[bytes | None]:
        """Return all values."""
        return self.listed_values

    def heads(self, tail_bytes: int) -> Heads:
        """Return all keys without their last ``tail_bytes``; none may be null."""
        keys: Sequence[bytes] = self.listed_keys  # type: ignore[assignment]
        return Heads([key[:-tail_bytes] for key in keys], np.arange(len(keys)))

    def select(self, rows: Rows | slice) -> ListedRecords:
        """Return some of the records."""
        offset = None if self.offset is None else self.offset[rows]
        if isinstance(rows, slice):
            return ListedRecords(self.listed_keys[rows], self.listed_values[rows], offset)
        chosen = rows.tolist()
        return ListedRecords(
            list(compress(self.listed_keys, chosen)),
            list(compress(self.listed_values, chosen)),
            offset,
        )


@dataclass(frozen=True, slots=True)
class FramedRecords:
    """Records from a broker: the start and end of each key and value in a buffer (int64).

    A null one starts at NULL.
    """

    data: bytes
    key_start: Ints
    key_end: Ints
    value_start: Ints
    value_end: Ints
    offset: Ints | None = None

    def __len__(self) -> int:
        return len(self.key_start)

    def key_reader(self) -> ColumnReader:
        """Return a reader of all keys."""
        return self._reader(self.key_start, self.key_end)

    def value_reader(self) -> ColumnReader:
        """Return a reader of all values."""
        return self._reader(self.value_start, self.value_end)

    def keys(self) -> Sequence[bytes | None]:
        """Return all keys, each copied."""
        return self._cut(self.key_start, self.key_end)

    def values(self) -> Sequence[bytes | None]:
        """Return all values, each copied."""
        return self._cut(self.value_start, self.value_end)

    def heads(self, tail_bytes: int) -> Heads:
        """Return all keys without their last ``tail_bytes``, one for each run of equal ones."""
        data, start = self.data, self.key_start
        end = np.maximum(self.key_end - tail_bytes, start)
        if len(start) > 1 and _repeat(data, start, end):
            first = np.flatnonzero(~_same_as_before(np.frombuffer(data, np.uint8), start, end))
            run = np.repeat(np.arange(len(first)), np.diff(first, append=len(start)))
            start, end = start[first], end[first]
        else:
            run = np.arange(len(start))
        bounds = zip(start.tolist(), end.tolist(), strict=True)
        return Heads([data[start:end] for start, end in bounds], run)

    def columns(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the starts and ends of keys, and of values."""
        return self.key_start, self.key_end, self.value_start, self.value_end

    def select(self, rows: Rows | Ints | slice) -> FramedRecords:
        """Return some of the records."""
        return FramedRecords(
            self.data,
            self.key_start[rows],
            self.key_end[rows],
            self.value_start[rows],
            self.value_end[rows],
            None if self.offset is None else self.offset[rows],
        )

    def _reader(self, start: Ints, end: Ints) -> ColumnReader:
        return ColumnReader(np.frombuffer(self.data, np.uint8), start, end, start >= 0)

    def _cut(self, start: Ints, end: Ints) -> list[bytes | None]:
        data = self.data
        bounds = zip(start.tolist(), end.tolist(), strict=True)
        return [None if start < 0 else data[start:end] for start, end in bounds]


def _repeat(data: bytes, start: Ints, end: Ints) -> bool:
    """Return whether most of a sample of heads equal that of the record before."""
    few = np.arange(1, len(start), max(1, len(start) // _SAMPLE))
    pairs = zip(
        *(one.tolist() for one in (start[few - 1], end[few - 1], start[few], end[few])),
        strict=False,
    )
    same = [data[before:ended] == data[begin:ends] for before, ended, begin, ends in pairs]
    return 2 * sum(same) > len(same)


def _same_as_before(data: NDArray[np.uint8], start: Ints, end: Ints) -> Rows:
    """Return which heads certainly equal the one before, compared eight bytes at a time."""
    length = end - start
    same = np.zeros(len(start), np.bool_)
    same[1:] = (length[1:] == length[:-1]) & (length[1:] >= _WORD) & (length[1:] <= _LONGEST)
    words: NDArray[np.uint64] = np.ndarray((len(data) - _WORD + 1,), np.uint64, data, strides=(1,))
    longest = int(length[same].max(initial=0))
    for place in range(0, longest, _WORD):
        # The last word of a head ends where the head does.
        word = words[start + np.clip(length - _WORD, 0, place)]
        same[1:] &= word[1:] == word[:-1]
    return same
