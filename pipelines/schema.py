"""Names and numbers that the history's readers and writers share."""

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
    "transactions": topics.TRANSACTIONS,
}
#: The same with the default prefix.
SERVICE_TOPICS = {table: topics.with_prefix(name) for table, name in TABLE_TOPICS.items()}

#: The end of the year 9999, in ms. A later time overflows Spark's timestamps, which would end the
#: job, again after each start.
LATEST_MS = bounds.LATEST_MS

#: The folders of a day in a table. A batch is processed in as many buckets, or with more cores in a
#: multiple of them, so that each bucket belongs to one folder.
BUCKETS = 4
#: How long a file stays that is not in its table's newest version: readers may use it, and a
#: batch's new files are in no version yet.
VACUUM_HOURS = 168
#: With more buckets, distributing rows takes more time than it saves.
_MOST_BUCKETS = 64

#: The most records of a batch of the history, which bounds the memory that it needs.
RECORDS_PER_BATCH = 5_000_000


def bucket(name: str, buckets: int = BUCKETS) -> int:
    """Return the bucket (from 0) of a group or topic; by default that of its folder."""
    return zlib.crc32(name.encode()) % buckets


def buckets_for(cores: int) -> int:
    """Return the number of buckets for a number of cores: one each, rounded up to BUCKETS."""
    return min(_MOST_BUCKETS, max(1, -(-cores // BUCKETS)) * BUCKETS)
