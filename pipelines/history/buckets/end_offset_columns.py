"""Samples of end offsets as columns: which of them count, and in which order they happened."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: The log offset of rows that come from the state: before all rows of the batch.
FROM_STATE = -1
#: In ``of_partition``, the lower bits are the partition, the upper ones the topic's number.
_PARTITION_BITS = 32


class EndOffsetSamples(NamedTuple):
    """End offsets of partitions: arrays of one length, with offsets, and times in ms since 1970.

    ``place``: topic and partition as in ``of_partition``. ``readable_end_offset`` is -1 if unknown.
    A row that is not ``present`` means that the partition was gone at its record's time; its
    offsets mean nothing.
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
        """Return the rows with these indices, in their order, or those that a mask selects."""
        return EndOffsetSamples._make(column[which] for column in self)


class ValidEndOffsets(NamedTuple):
    """The samples that count, sorted by partition and log offset.

    ``at_ms``: when each happened, never earlier than a sample before it, whatever its clock said;
    -1 for rows from the state. ``changed``: whether it differs from the sample before it.
    """

    samples: EndOffsetSamples
    at_ms: Ints
    changed: Flags


def of_partition(topic: Ints, partition: Ints) -> Ints:
    """Combine the numbers of topic and partition into one int64 by which rows can be sorted."""
    return topic << _PARTITION_BITS | partition & (1 << _PARTITION_BITS) - 1


def topic_and_partition(place: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """Split the numbers of ``of_partition`` into topics' numbers and partitions."""
    return place >> _PARTITION_BITS, place.astype(np.int32)


def valid_end_offsets(samples: EndOffsetSamples) -> ValidEndOffsets:
    """Sort samples, and drop those with an older time than an earlier one of their partition.

    Such samples come from a slower second service. After a partition was gone the times start
    again, since its topic was deleted.
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
    """Return a mask of the first row of each key."""
    first = np.ones(len(sorted_keys), np.bool_)
    np.not_equal(sorted_keys[1:], sorted_keys[:-1], out=first[1:])
    return first


def ends(sorted_keys: Ints) -> Flags:
    """Return a mask of the last row of each key."""
    last = np.ones(len(sorted_keys), np.bool_)
    np.not_equal(sorted_keys[1:], sorted_keys[:-1], out=last[:-1])
    return last


def running_max(first: Flags, values: Ints) -> Ints:
    """Return the running maximum of values, restarted at each ``first``."""
    if not (values[1:] < values[:-1])[~first[1:]].any():
        return values
    # Ranks with the number of the run in front: one pass over all rows is enough.
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
