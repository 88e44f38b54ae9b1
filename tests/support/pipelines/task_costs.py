"""A task's CPU time by what it does: ``python -m tests.support.pipelines.task_costs``.

Without Kafka and Spark: the answers of a broker are in memory, of generated commits with repeated
keys in turn, and one task reads them and writes the files of all buckets, as on one core. CPU time
hardly depends on other work on the machine; each round is printed, the first with what is set up.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import product, starmap

from caughtup.agents.kafka.protocol.fetch_answer import plain_batch
from caughtup.bench.history import topics_of
from caughtup.demo.fleet.offset_commits import RawRecord
from caughtup.demo.fleet.offset_logs import Shape
from caughtup.demo.fleet.offset_logs import records as generated
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.pending_commits import PendingCommits
from caughtup.models.polls.record_batches import LogRecords, Section, decode_log
from caughtup.models.records.end_offsets import FORMAT, EndOffsetsRecord
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.delta import files
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.history.buckets import tables
from caughtup.pipelines.history.buckets.tables import BucketTask, write_buckets
from caughtup.pipelines.history.decoding.batches import rows_by_bucket
from caughtup.pipelines.history.decoding.log_records import AnswerRecords
from tests.support.pipelines.delta import new_tables
from tests.support.pipelines.end_offsets import ENDS, TOPIC_TABLES
from tests.support.record_batches import LoggedRecord, record_batch

OFFSETS_PARTITIONS, BUCKETS, A_BATCH, GROUPS, PARTITIONS = 50, 4, 10, 500, 100
NOW_MS = 1_790_000_000_000


def logs(records: int) -> dict[TopicPartition, bytes]:
    """Generate a log by partition, and a look at the end of each partition of its topics."""
    shape = Shape(records, GROUPS, PARTITIONS)
    found: dict[TopicPartition, list[LoggedRecord]] = {}
    for one in generated("interleaved", shape, OFFSETS_PARTITIONS, NOW_MS):
        assert isinstance(one, RawRecord)
        of = found.setdefault(TopicPartition(CONSUMER_OFFSETS, one.partition), [])
        of.append(LoggedRecord(len(of), one.key, one.value, one.timestamp_ms))
    ends = EndOffsets(0, records, records, 1)
    looks = found[TopicPartition(ENDS, 0)] = []
    for partition in starmap(TopicPartition, product(topics_of(shape), range(PARTITIONS))):
        look = EndOffsetsRecord.from_ends(partition, ends)
        looks.append(LoggedRecord(len(looks), look.key, FORMAT.encode(look), NOW_MS))
    return {partition: b"".join(_batches(of)) for partition, of in found.items()}


def _batches(of: list[LoggedRecord]) -> Iterator[bytes]:
    for at in range(0, len(of), A_BATCH):
        yield record_batch(of[at : at + A_BATCH])


def read(answers: dict[TopicPartition, bytes]) -> Iterator[tuple[TopicPartition, LogRecords]]:
    """Find the records in each partition's answer."""
    for partition, data in answers.items():
        section = Section(0, len(data), 0, PendingCommits())
        yield partition, decode_log(data, section, plain_batch, 1 << 62)


def timed_writes(spent: list[float]) -> None:
    """Add the CPU time of writing files to ``spent``."""

    def write(*given: object) -> files.NewFile:
        before = time.process_time()
        made = files.write_file(*given)  # type: ignore[arg-type]
        spent[0] += time.process_time() - before
        return made

    tables.write_file = write  # type: ignore[attr-defined]


def costs(answers: dict[TopicPartition, bytes], spent: list[float]) -> Iterable[float]:
    """Yield the CPU seconds of finding records, decoding them, computing rows, and writing files."""
    moments = [time.process_time()]
    found = [AnswerRecords(partition, one.logged) for partition, one in read(answers)]
    moments.append(time.process_time())
    held = rows_by_bucket(TOPIC_TABLES, BUCKETS, found)
    moments.append(time.process_time())
    spent[0] = 0.0
    with tempfile.TemporaryDirectory() as directory:
        root = Store(directory)
        new_tables(root)
        before = time.process_time()
        list(write_buckets(BucketTask(root, 0, BUCKETS, (), rebucket=False), held))
        rows = time.process_time() - before - spent[0]
    return moments[1] - moments[0], moments[2] - moments[1], rows, spent[0]


def main() -> None:
    """Print CPU seconds a million commits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    answers, spent = logs(given.records), [0.0]
    timed_writes(spent)
    print("finding  decoding  rows  files    all   CPU s a million")
    for _ in range(given.rounds):
        found = [one / given.records * 1e6 for one in costs(answers, spent)]
        print("{:7.2f}  {:8.2f}  {:4.2f}  {:5.2f}  {:5.2f}".format(*found, sum(found)), flush=True)


if __name__ == "__main__":
    main()
