"""Find ranges of logs that a batch can no longer read: deleted by retention, or with their topic.

Spark would either fail for good (``failOnDataLoss``) or continue silently. The history continues,
since a restart would not bring the records back, and records each lost range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.record_batches import LogRange
from caughtup.models.records.decoding import RefusedError
from caughtup.models.records.spark_checkpoint_files import decode_batch_end
from caughtup.pipelines.spark.session import Files, one_line

_Offsets = dict[TopicPartition, int]


class LostRange(NamedTuple):
    """Offsets of a log that were not read, from ``start`` to before ``until``, and why."""

    partition: TopicPartition
    start: int
    until: int
    why: str


def batch_offsets(files: Files, checkpoint: str, batch: int) -> _Offsets:
    """Return each partition's end offset of a batch, from Spark's checkpoint; empty before batch 0.

    Raises CaughtupError ``bad_checkpoint`` if the file is not as Spark writes it.
    """
    path = f"{checkpoint}/offsets/{batch}"
    if batch < 0 or not files.exists(path):
        return {}
    try:
        end = decode_batch_end(files.read(path))
    except RefusedError as error:
        raise CaughtupError("bad_checkpoint", f"can't read {path}: {error.message}") from error
    if end.sources != 1:
        raise CaughtupError(
            "bad_checkpoint", f"can't read {path}: it is not the checkpoint of one Kafka source"
        )
    return dict(end.offsets)


def ranges_of(before: _Offsets, until: _Offsets) -> list[LogRange]:
    """Return the ranges of a batch that have any offsets, by its start and end offsets."""
    return [
        LogRange(partition, start, end)
        for partition, end in sorted(until.items())
        if (start := before.get(partition, 0)) < end
    ]


def lost_ranges(before: _Offsets, until: _Offsets, first: _Offsets, why: str) -> list[LostRange]:
    """Compare a batch's start and end offsets with the first offsets that logs still have."""
    found = []
    for partition in sorted(before):
        start, end = before[partition], until.get(partition)
        if end is None:
            found.append(LostRange(partition, start, start, "the topic was deleted"))
        elif end < start:
            why_back = f"the log ended at {start} and then at {end}: the topic was recreated"
            found.append(LostRange(partition, 0, end, why_back))
        elif start < first.get(partition, 0):
            found.append(LostRange(partition, start, min(first[partition], end), why))
    return [one for one in found if one.until > one.start or one.why.endswith("deleted")]


class FirstOffsets:
    """Asks the brokers for the first offsets that logs still have, through the driver's JVM."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        jvm = spark._jvm
        assert jvm is not None
        self._jvm = jvm
        properties = jvm.java.util.Properties()
        for name in sorted(options):
            properties.setProperty(name.removeprefix("kafka."), options[name])
        self._admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)

    def cluster_id(self) -> str:
        """Return the cluster's id. Raises CaughtupError ``kafka_unreachable``."""
        try:
            return str(self._admin.describeCluster().clusterId().get())
        except Py4JError as error:
            raise CaughtupError("kafka_unreachable", f"no cluster id: {one_line(error)}") from error

    def ask(self, partitions: _Offsets) -> _Offsets:
        """Return the first offset of each partition that still exists.

        Raises CaughtupError ``kafka_unreachable``.
        """
        admin = self._jvm.org.apache.kafka.clients.admin
        wanted = self._jvm.java.util.HashMap()
        java = {
            one: self._jvm.org.apache.kafka.common.TopicPartition(one.topic, one.partition)
            for one in sorted(partitions)
        }
        for partition in java.values():
            wanted.put(partition, admin.OffsetSpec.earliest())
        found: _Offsets = {}
        listed = self._admin.listOffsets(wanted)
        for one, partition in java.items():
            try:
                found[one] = int(listed.partitionResult(partition).get().offset())
            except Py4JError as error:
                if "UnknownTopicOrPartition" not in str(error):
                    raise CaughtupError(
                        "kafka_unreachable", f"no first offset of {one}: {one_line(error)}"
                    ) from error
        return found

    def close(self) -> None:
        """Close the connection."""
        self._admin.close()
