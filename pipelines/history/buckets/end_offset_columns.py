"""Samples of logs' ends as columns: which of them count, and in which order they happened."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: The position in its log of what comes from the state, before anything of the batch.
FROM_STATE = -1
#: A partition's number stands below its topic's in one whole number.
_PARTITION_BITS = 32


class EndOffsetSamples(NamedTuple):
    """End offsets of partitions, arrays of one length: offsets, and times in ms since the epoch.

    ``place`` is of_partition's. ``readable_end_offset`` is -1 where it isn't known. A row that isn't
    ``present`` says that the partition is gone, at its record's time; its offsets mean nothing.
    """

    place: Ints
    present: Flags
    start_offset: Ints
    last_stable_offset: Ints
    end_offset: Ints
    readable_end_offset: Ints
    as_of_ms: Ints
    log_offset: Ints

    def rows(self, which: Ints | Flags) -> EndOffsetSamples:
        """Return the rows of these numbers, in their order, or those that a mask selects."""
        return EndOffsetSamples._make(column[which] for column in self)


class ValidEndOffsets(NamedTuple):
    """EndOffsetSamples that count, by partition and in the order of their log.

    ``at_ms`` is when each happened: never earlier than one before it, whatever its clock says; -1
    of what comes from the state. ``changed``: it says something else than the one before.
    """

    samples: EndOffsetSamples
    at_ms: Ints
    changed: Flags


def of_partition(topic: Ints, partition: Ints) -> Ints:
    """Make one number of a topic's and a partition's, so that rows sort by both."""
    return topic << _PARTITION_BITS | partition & (1 << _PARTITION_BITS) - 1


def topic_and_partition(place: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """Return the topic's number and the partition's of one of ``of_partition``."""
    return place >> _PARTITION_BITS, place.astype(np.int32)


def valid_end_offsets(samples: EndOffsetSamples) -> ValidEndOffsets:
    """Sort samples, and drop those that are older than what was seen before.

    A slower second service's samples may come later. A partition that is gone begins anew: its
    topic was deleted, and its clock may start over.
    """
    samples = samples.rows(np.lexsort((samples.log_offset, samples.place)))
    first = starts(samples.place)
    at_ms = running_max(first, np.where(samples.log_offset == FROM_STATE, -1, samples.as_of_ms))
    life = first | ~samples.present
    seen = np.where(samples.present, samples.as_of_ms, -1)
    counts = ~samples.present | (samples.as_of_ms >= running_max(life, seen))
    if not counts.all():
        samples, at_ms = samples.rows(counts), at_ms[counts]
    return ValidEndOffsets(samples, at_ms, starts(samples.place) | _differs(samples))


def last_end_offsets(end_offsets: ValidEndOffsets) -> EndOffsetSamples:
    """Return the last sample of each partition that exists."""
    return end_offsets.samples.rows(ends(end_offsets.samples.place) & end_offsets.samples.present)


def starts(sorted_keys: Ints) -> Flags:
    """Return where a new key begins."""
    first = np.ones(len(sorted_keys), np.bool_)
    np.not_equal(sorted_keys[1:], sorted_keys[:-1], out=first[1:])
    return first


def ends(sorted_keys: Ints) -> Flags:
    """Return where a key is there for the last time."""
    last = np.ones(len(sorted_keys), np.bool_)
    np.not_equal(sorted_keys[1:], sorted_keys[:-1], out=last[:-1])
    return last


def running_max(first: Flags, values: Ints) -> Ints:
    """Return the largest value so far, from each start on."""
    if not (values[1:] < values[:-1])[~first[1:]].any():
        return values
    # A start's number before the value's rank, so that one pass over all rows will do.
    distinct, rank = np.unique(values, return_inverse=True)
    run = np.cumsum(first) * len(distinct)
    largest: Ints = distinct[np.maximum.accumulate(run + rank) - run]
    return largest


def _differs(samples: EndOffsetSamples) -> Flags:
    differs = np.ones(len(samples.place), np.bool_)
    differs[1:] = samples.present[1:] != samples.present[:-1]
    for column in samples[2:6]:
        differs[1:] |= column[1:] != column[:-1]
    return differs
