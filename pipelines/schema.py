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

#: Parts of a day in a table, which are folders. A batch is worked on in as many buckets, or in a
#: multiple of them where there are more cores: each is of one part.
BUCKETS = 4
#: For so long a file stays that isn't in its table's newest version: somebody may be reading it,
#: and a batch's own are in none yet.
VACUUM_HOURS = 168
#: More buckets than these take longer to deal rows to than they save.
_MOST_BUCKETS = 64

#: What a batch of the history holds at most, which bounds the memory that it needs.
RECORDS_PER_BATCH = 5_000_000


def bucket(name: str, buckets: int = BUCKETS) -> int:
    """Return which of so many buckets a group or topic is in, from 0; by default its part of a day."""
    return zlib.crc32(name.encode()) % buckets


def buckets_for(cores: int) -> int:
    """Return in how many buckets so many cores work: one each, and a multiple of BUCKETS."""
    return min(_MOST_BUCKETS, max(1, -(-cores // BUCKETS)) * BUCKETS)
