"""Read the records of groups that a history of an earlier release read without keeping them.

Assignments on the new protocols are in many records, so that a group's next epoch can't be read without
those before it. They are compacted, and never in a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from caughtup.models.ids import TopicPartition
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS, RecordType
from caughtup.pipelines.history.decoding.batches import PACKED, pack_records_before
from caughtup.pipelines.spark.sources import FETCHING

#: Spark's name for a log's start.
_EARLIEST = -2
_COMMITS = (RecordType.LEGACY_OFFSET_COMMIT, RecordType.OFFSET_COMMIT)


def records_before(
    spark: SparkSession,
    source: Mapping[str, str],
    until: Mapping[TopicPartition, int],
    buckets: int,
) -> DataFrame | None:
    """Return packs of the groups' records before these offsets, None without any.

    ``source``: from ``source_options``.
    """
    ends = {
        str(one.partition): offset
        for one, offset in sorted(until.items())
        if one.topic == CONSUMER_OFFSETS and offset > 0
    }
    if not ends:
        return None
    reader = (
        spark.read.format("kafka")
        .options(**{**FETCHING, **source})
        .option("assign", json.dumps({CONSUMER_OFFSETS: list(map(int, ends))}))
        .option("startingOffsets", _offsets(dict.fromkeys(ends, _EARLIEST)))
        .option("endingOffsets", _offsets(ends))
        .option("kafka.isolation.level", "read_uncommitted")
        .option("kafka.allow.auto.create.topics", "false")
        .option("groupIdPrefix", "caughtup-history")
        # Compaction may remove records while they are read, which is no loss.
        .option("failOnDataLoss", "false")
    )
    commits = ", ".join(f"X'{kind.to_bytes(2).hex()}'" for kind in _COMMITS)
    return (
        reader.load()
        .selectExpr(
            *("topic", "partition", "offset", "unix_millis(timestamp) AS timestamp_ms"),
            *("key", "value"),
        )
        .where(f"substring(key, 1, 2) NOT IN ({commits})")
        .mapInArrow(partial(pack_records_before, buckets), PACKED)
    )


def _offsets(of_partition: Mapping[str, int]) -> str:
    return json.dumps({CONSUMER_OFFSETS: of_partition})
