"""Make rows of the table of generations from group metadata of Kafka Streams groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

import msgspec

from caughtup.models.assignment.compact import scenario_record
from caughtup.models.decisions.inputs.gathering import CLOCK_ALLOWANCE_MS, gather_inputs
from caughtup.models.errors import CaughtupError, DecodeError
from caughtup.models.groups.generation import StreamsGeneration, read_streams_generation
from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.polls.batch import decode_batch
from caughtup.pipelines.events import EndOffsetEvent
from caughtup.pipelines.schema import bucket


class MetadataRecord(NamedTuple):
    """A group-metadata record of ``__consumer_offsets``; the timestamp is in ms since 1970.

    ``told``: it was decided before, makes no row, and only shows what preceded the next one.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None
    told: bool = False


class GenerationRow(NamedTuple):
    """One row of the table, in the columns of ``schema.GENERATION_ROW``; times in ms since 1970.

    For a malformed record it has the group in the key, ``error``, and the place in the log.
    """

    as_of_ms: int
    group: str
    generation: int | None
    leader: str | None
    next_rebalance_ms: int | None
    members: list[dict[str, object]]
    scenario: str | None
    doubts: list[str]
    inferred: list[str]
    assumed: list[str]
    error: str | None
    log_partition: int
    log_offset: int
    group_bucket: int


def generation_rows(
    records: Iterable[MetadataRecord],
    ends: EndOffsetTable,
    parameters: Mapping[str, ApplicationParameters],
) -> Iterator[GenerationRow]:
    """Yield a row for each generation of a Streams group; other groups have none.

    A group's records have to be adjacent, in the order of the log. Inputs are gathered as in the
    service, with the record's timestamp as the time at which it was read.
    """
    for key, of_group in groupby(records, key=lambda record: record.key):
        name = _group(key)
        before: StreamsGeneration | None = None
        for record in of_group:
            try:
                found = _read(record, name, before)
                if found is None or _known(before, found):
                    before = before if found else None
                    continue
                before = found
                if record.told:
                    continue
                row = _row(record, found, ends, parameters.get(name) or ApplicationParameters())
            except CaughtupError as error:
                row = _refusal(record, name, error)
            if not record.told:
                yield row


def source_topics(record: MetadataRecord) -> tuple[str, ...] | None:
    """Return the source topics of a Streams group's generation, sorted.

    Empty for a record that cannot be read, which makes a row as well; None for other groups.
    """
    try:
        found = _read(record, _group(record.key), None)
    except CaughtupError:
        return ()
    return tuple(sorted(found.source_topics)) if found else None


def end_offset_table(events: Iterable[EndOffsetEvent]) -> EndOffsetTable:
    """Return a table of decoded end offsets, which may be in any order."""
    table = EndOffsetTable()
    for event in sorted(events, key=lambda event: (event.time_ms, event.log_offset)):
        sample = EndOffsets(
            event.start_offset,
            event.last_stable_offset,
            event.end_offset,
            event.time_ms,
            event.readable_end_offset,
        )
        partition = TopicPartition(event.topic, event.partition)
        table.apply(partition, sample if event.present else None)
    return table


def _group(key: bytes) -> str:
    return key[4:].decode(errors="replace")


def _read(
    record: MetadataRecord, group: str, before: StreamsGeneration | None
) -> StreamsGeneration | None:
    batch = decode_batch([(record.key, record.value)])
    if batch.samples:
        raise DecodeError("unreadable", batch.samples[0])
    metadata = batch.groups.get(group)
    if metadata is None:
        return None
    return read_streams_generation(group, metadata, before.source_topics if before else {})


def _known(before: StreamsGeneration | None, found: StreamsGeneration) -> bool:
    """Return whether this generation or a later one was read before: some are written twice."""
    return (
        before is not None
        and found.generation <= before.generation
        and found.as_of_ms <= before.as_of_ms
    )


def _row(
    record: MetadataRecord,
    generation: StreamsGeneration,
    ends: EndOffsetTable,
    parameters: ApplicationParameters,
) -> GenerationRow:
    seen_ms = record.timestamp_ms + CLOCK_ALLOWANCE_MS
    commits = _at_most_committed(generation, ends, seen_ms)
    inputs = gather_inputs(generation, parameters, ends, commits, seen_ms)
    due = generation.next_rebalance()
    return GenerationRow(
        as_of_ms=generation.as_of_ms,
        group=generation.group,
        generation=generation.generation,
        leader=generation.leader,
        next_rebalance_ms=due and due[0],
        members=_members(generation),
        scenario=msgspec.json.encode(scenario_record(inputs.scenario)).decode(),
        doubts=list(inputs.unknown),
        inferred=list(inputs.inferred),
        assumed=list(inputs.assumed),
        error=None,
        log_partition=record.partition,
        log_offset=record.offset,
        group_bucket=bucket(generation.group),
    )


def _at_most_committed(
    generation: StreamsGeneration, ends: EndOffsetTable, seen_ms: int
) -> dict[TopicPartition, CommitHistory]:
    """Bound the application's commits on its sources by their end offsets.

    For a source topic that serves as a changelog this bounds the offset sum, without decoding
    commits.
    """
    found = {}
    for task in sorted(generation.all_tasks()):
        for partition in generation.sources(task):
            history = ends.history(partition)
            end = None if history is None else history.at_or_after(seen_ms)
            if end is not None:
                found[partition] = CommitHistory(end, generation.as_of_ms)
    return found


def _members(generation: StreamsGeneration) -> list[dict[str, object]]:
    members: list[dict[str, object]] = []
    for member in generation.members():
        given = member.assignment
        members.append(
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "host": member.host,
                "process_id": str(member.process),
                "offset_sums": [(str(t), s) for t, s in sorted(member.offset_sums.items())],
                "active": _names(given.active if given else ()),
                "standby": _names(given.standby if given else ()),
            }
        )
    return members


def _names(tasks: Iterable[TaskId]) -> list[str]:
    return [str(task) for task in sorted(set(tasks))]


def _refusal(record: MetadataRecord, group: str, error: CaughtupError) -> GenerationRow:
    return GenerationRow(
        record.timestamp_ms,
        group,
        *(None, None, None),
        members=[],
        scenario=None,
        doubts=[],
        inferred=[],
        assumed=[],
        error=" ".join(str(error).split()),
        log_partition=record.partition,
        log_offset=record.offset,
        group_bucket=bucket(group),
    )
