"""Names and numbers that the history's readers and writers agree on."""

from __future__ import annotations

import zlib

from caughtup.models.records import topics
from caughtup.models.wire import bounds

#: The topic on which the service publishes end offsets, with the default prefix.
END_OFFSETS_TOPIC = topics.with_prefix(topics.END_OFFSETS)
#: The service's own topics that the history keeps, by table, without their prefix.
TABLE_TOPICS = {
    "end_offsets": topics.END_OFFSETS,
    "movements": topics.MOVEMENTS,
    "decisions": topics.RECOMMENDATIONS,
    "reassignments": topics.REASSIGNMENTS,
}
#: The same with the default prefix.
SERVICE_TOPICS = {table: topics.with_prefix(name) for table, name in TABLE_TOPICS.items()}

#: The end of the year 9999, in ms. A time beyond it overflows Spark's timestamps, which would end
#: the job, and again each time that it starts.
LATEST_MS = bounds.LATEST_MS

#: Parts of a day in a table. A batch writes at most one file to each, so at the default trigger
#: of ten minutes a day of a table is at most 576 files, and one group's day 144 of them.
BUCKETS = 4

#: What a batch of the history holds at most, which bounds the memory that it needs.
RECORDS_PER_BATCH = 5_000_000


def bucket(name: str) -> int:
    """Return the part of a day that a group or topic is in, from 0 to BUCKETS - 1."""
    return zlib.crc32(name.encode()) % BUCKETS
