"""Names and numbers that the history's readers and writers agree on."""

from __future__ import annotations

import zlib

from caughtup.models.wire import bounds

#: The topic in which the group coordinators keep commits and group metadata.
OFFSETS_TOPIC = "__consumer_offsets"
#: The topic on which the service publishes end offsets, with the default prefix.
END_OFFSETS_TOPIC = "caughtup-end-offsets"
#: The service's own topics that the history keeps, by table, with the default prefix.
OWN_TOPICS = {
    "end_offsets": END_OFFSETS_TOPIC,
    "movements": "caughtup-movements",
    "decisions": "caughtup-recommended-assignments",
    "reassignments": "caughtup-reassignments",
}

#: The end of the year 9999, in ms. A time beyond it overflows Spark's timestamps, which would end
#: the job, and again each time that it starts.
LATEST_MS = bounds.LATEST_MS

#: Parts of a day in a table. A batch writes at most one file to each, so at the default trigger
#: of ten minutes a day of a table is at most 576 files, and one group's day 144 of them.
BUCKETS = 4

#: What a batch of the history holds at most, which bounds the memory that it needs.
RECORDS_PER_BATCH = 5_000_000


def bucket(name: str) -> int:
    """Give the part of a day that a group or topic is in, from 0 to BUCKETS - 1."""
    return zlib.crc32(name.encode()) % BUCKETS
