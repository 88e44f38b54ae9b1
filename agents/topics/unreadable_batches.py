"""Skip batches of records that cannot be decompressed.

librdkafka decompresses zstd up to ``receive.message.max.bytes``. For a larger batch it reports
``_BAD_COMPRESSION``, and fetches the same batch for ever. The number of its records is unknown.
"""

from __future__ import annotations

from confluent_kafka import Message, TopicPartition


class BatchSkipper:
    """Finds the next readable offset after such batches, for any number of partitions.

    Each attempt skips twice as many offsets as the one before, until a record can be read. So it
    loses fewer records after the batch than the batch had.
    """

    def __init__(self) -> None:
        #: By topic and partition: the offset to continue at, and the step if that fails too.
        self._tries: dict[tuple[str | None, int | None], tuple[int, int]] = {}

    def read(self, message: Message) -> None:
        """Record that a record could be read: unreadable batches before it are done."""
        if self._tries:
            self._tries.pop((message.topic(), message.partition()), None)

    def next_offset(self, message: Message, end: int) -> TopicPartition | None:
        """Return where to continue after the error in ``message``, up to the log end ``end``.

        Returns None for a late error of a batch that was skipped already.
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
