"""What a thread makes of fetched records: the changes, their classic groups read.

The firehose doesn't pass an agent record by record: whole answers are decoded at once, and the
agent gets what changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from caughtup.models.connect_clusters.reading import ReadGeneration, read_connect_groups
from caughtup.models.groups.classic import ReadGroup, read_classic_groups
from caughtup.models.polls.batch import Batch, decode_records, split_generations
from caughtup.models.polls.records import FramedRecords

#: The largest batch that is applied at once, which occupies the event loop for some 10 ms.
LIVE_RECORDS = 2_000


class Changes(NamedTuple):
    """A batch of changes with its classic groups and Connect generations decoded, by group.

    ``past``: the records are from before the service started, and more of them may follow.
    """

    batch: Batch
    groups: Mapping[str, ReadGroup]
    connect: Mapping[str, ReadGeneration]
    past: bool = False

    @classmethod
    def of(cls, batch: Batch, *, past: bool = False) -> Changes:
        """Decode the groups of a batch, which takes long for large groups."""
        connect = read_connect_groups(batch.groups)
        return cls(batch, read_classic_groups(batch.groups), connect, past)


def decode_past(records: FramedRecords) -> list[Changes]:
    """Decode records from before the service started, as one batch."""
    return [Changes.of(decode_records(records), past=True)] if len(records) else []


def decode_live(records: FramedRecords) -> list[Changes]:
    """Decode new records, split so that no batch has two generations of a group."""
    parts = split_generations(records, LIVE_RECORDS)
    return [Changes.of(decode_records(part)) for part in parts]
