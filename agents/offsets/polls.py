"""What a thread makes of a poll: the changes, and how far the reader is.

The firehose doesn't pass an agent record by record: whole polls are decoded at once, and the
agent gets what changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import KafkaError

from caughtup.agents.kafka.offset_log import LIVE_RECORDS, OffsetLog
from caughtup.models.connect_clusters.reading import ReadGeneration, read_connect_groups
from caughtup.models.groups.classic import ReadGroup, read_classic_groups
from caughtup.models.groups.generation_cuts import split_generations
from caughtup.models.polls.batch import Batch, decode_batch, decode_columns, decode_records
from caughtup.models.polls.records import FramedRecords

#: A thread that waits for records ends this much later than it is told to.
_POLL_SECONDS = 0.2
#: Brokers that answered so lately would have sent what there is to read.
_ANSWERS_MS = 5_000


class Changes(NamedTuple):
    """What some records changed, their classic groups read.

    ``past``: they are from before the service began, and there may be more of those.
    """

    batch: Batch
    groups: Mapping[str, ReadGroup]
    connect: Mapping[str, ReadGeneration]
    past: bool = False

    @classmethod
    def of(cls, batch: Batch, *, past: bool = False) -> Changes:
        """Read the classic groups of a batch, which takes long for large ones."""
        connect = read_connect_groups(batch.groups)
        return cls(batch, read_classic_groups(batch.groups), connect, past)


class PolledChanges(NamedTuple):
    """What a poll brought: the changes, the number of records, errors, and offsets yet to be read.

    ``answered_ms`` is when the brokers last answered for all partitions.
    """

    changes: list[Changes]
    records: int
    errors: list[KafkaError]
    behind: int
    answered_ms: int | None

    def stands_still(self, now: int) -> bool:
        """Return whether records are left to read and none come, though the brokers answer (ms)."""
        answers = self.answered_ms is not None and now - self.answered_ms < _ANSWERS_MS
        return answers and self.behind > 0 and not self.records


def decode_past(records: FramedRecords) -> Changes:
    """Decode records from before the service began."""
    return Changes.of(decode_records(records), past=True)


def read_past(offset_log: OffsetLog) -> PolledChanges:
    """Read and decode a poll of what was there at the start. Blocks."""
    keys, values, errors = offset_log.poll(_POLL_SECONDS)
    changes = [Changes.of(decode_columns(keys, values), past=True)] if keys else []
    return PolledChanges(
        changes, len(keys), errors, offset_log.left_of_start(), offset_log.answered_ms()
    )


def read_live(offset_log: OffsetLog) -> PolledChanges:
    """Read and decode a poll of what comes, cut where generations need it. Blocks."""
    keys, values, errors = offset_log.poll(_POLL_SECONDS, LIVE_RECORDS)
    chunks = split_generations(list(zip(keys, values, strict=True)))
    return PolledChanges(
        [Changes.of(decode_batch(chunk)) for chunk in chunks],
        len(keys),
        errors,
        offset_log.behind(),
        offset_log.answered_ms(),
    )
