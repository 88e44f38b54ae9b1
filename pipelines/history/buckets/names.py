"""Names of groups and topics as numbers, by which rows can be put in order and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Numbered(NamedTuple):
    """Distinct names in order, and for each column that was given the number of each row's name."""

    names: pa.StringArray
    numbers: list[Ints]

    def column(self, numbers: Ints) -> pa.DictionaryArray:
        """Make a column of names of their numbers."""
        return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), self.names)


def numbered(columns: Sequence[pa.ChunkedArray]) -> Numbered:
    """Return numbers of the names in columns of the type packs.NAMES, in their bytes' order."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    if not chunks:
        return Numbered(pa.array([], pa.string()), [np.empty(0, np.int64) for _ in columns])
    one = pa.chunked_array(chunks).unify_dictionaries()
    names = one.chunk(0).dictionary
    order = pc.sort_indices(names)
    number = np.empty(len(names), np.int64)
    number[order.to_numpy()] = np.arange(len(names))
    every = number[np.concatenate([chunk.indices.to_numpy() for chunk in one.chunks])]
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    return Numbered(names.take(order), np.split(every, cuts))
