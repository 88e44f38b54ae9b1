"""Batches of records that can't be decompressed: where to go on behind them.

librdkafka decompresses zstd up to ``receive.message.max.bytes`` and no further, says so with
``_BAD_COMPRESSION``, and would ask for the same batch for ever. How many records it has nobody
tells.
"""

from __future__ import annotations

from confluent_kafka import Message, TopicPartition


class Skipping:
    """Finds what is behind such batches, in as many topics and partitions as there are.

    Each try goes on twice as far behind the one before it, until something can be read again: of
    what follows a batch it passes over fewer records than the batch had.
    """

    def __init__(self) -> None:
        #: By topic and partition, where to go on, and how much further if that fails, too.
        self._tries: dict[tuple[str | None, int | None], tuple[int, int]] = {}

    def read(self, message: Message) -> None:
        """Note that a record could be read: the batches before it are behind us."""
        if self._tries:
            self._tries.pop((message.topic(), message.partition()), None)

    def behind(self, message: Message, end: int) -> TopicPartition | None:
        """Return where to go on, at the log's end at the furthest, for the error in a message.

        None for an error that was skipped before, and comes late.
        """
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        wanted, step = self._tries.get((topic, partition), (0, 1))
        if offset < wanted:
            return None
        self._tries[topic, partition] = (offset + step, 2 * step)
        return TopicPartition(topic, partition, min(offset + step, end))
