"""The own topics whose records are applied to the state one by one, and how.

Applications and jobs on Spark report on them, and the probe of end offsets publishes on one.
"""

from __future__ import annotations

from typing import NamedTuple

from caughtup.agents.topics.applying import AppliedTopic
from caughtup.models.copies.catch_up_rates import choose_rate
from caughtup.models.copies.figures import CatchUpRate
from caughtup.models.decisions.inputs.application_state import ApplicationState, read_state
from caughtup.models.ids import CopyKey, TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.pipeline_progress import StreamProgress
from caughtup.models.records.catch_up_rates import read_rates
from caughtup.models.records.decoding import require_past
from caughtup.models.records.end_offsets import read_end_offsets
from caughtup.models.records.fields import or_none
from caughtup.models.records.pipeline_progress import read_progress
from caughtup.models.records.task_positions import read_position
from caughtup.models.records.topics import (
    APPLICATION_STATES,
    CATCH_UP_RATES,
    END_OFFSETS,
    PIPELINE_PROGRESS,
    TASK_POSITIONS,
)
from caughtup.models.sharing import Lister
from caughtup.models.state.cluster import ClusterState
from caughtup.models.tasks.positions import TaskPosition, reported_position


class _DecodedEnds(NamedTuple):
    """A record of end offsets, with the topic's id if known, who listed them, and our clock (ms).

    ``ends`` is None for a tombstone.
    """

    partition: TopicPartition
    ends: EndOffsets | None
    topic_id: bytes | None
    listed_by: str | None
    clock_ms: int


class _DecodedRates(NamedTuple):
    """A record of catch-up rates, with its timestamp, the stream's trigger and our clock (ms).

    For a tombstone, rate, timestamp and trigger are None.
    """

    copy: tuple[str, CopyKey] | TopicPartition
    rate: CatchUpRate | None
    written_ms: int | None
    trigger_ms: int | None
    clock_ms: int


def _decode_ends(
    key: bytes | None, value: bytes | None, at_ms: int | None, clock_ms: int
) -> _DecodedEnds:
    del at_ms
    partition, record = read_end_offsets(key, value)
    if record is None:
        return _DecodedEnds(partition, None, None, None, clock_ms)
    require_past(record.as_of_ms, clock_ms)
    topic_id = bytes.fromhex(record.topic_id) if record.topic_id else None
    listed_by = or_none(record.listed_by)
    return _DecodedEnds(partition, record.to_ends(), topic_id, listed_by, clock_ms)


def _apply_ends(state: ClusterState, decoded: _DecodedEnds) -> bool:
    partition, ends, topic_id, listed_by, clock_ms = decoded
    state.apply_ends(partition, ends, topic_id, clock_ms)
    if state.held.are_shared:
        at_ms = clock_ms if ends is None else min(ends.as_of_ms, clock_ms)
        lister = None if listed_by is None else Lister.parse(listed_by)
        state.listers.note(partition.topic, lister, at_ms, state.held.name)
    return True


def _decode_state(
    key: bytes | None, value: bytes | None, at_ms: int | None, clock_ms: int
) -> tuple[str, ApplicationState | None]:
    written_ms = _required_past(at_ms, clock_ms)
    return read_state(key, value, written_ms)


def _apply_state(state: ClusterState, decoded: tuple[str, ApplicationState | None]) -> bool:
    group, reported = decoded
    if reported is None or not state.held.has_group(group):
        return True
    return state.applications.apply_state(group, reported)


def _decode_position(
    key: bytes | None, value: bytes | None, at_ms: int | None, clock_ms: int
) -> tuple[str, CopyKey, TaskPosition | None]:
    written_ms = _required_past(at_ms, clock_ms)
    group, copy, record = read_position(key, value)
    return group, copy, None if record is None else reported_position(record, written_ms)


def _decode_rates(
    key: bytes | None, value: bytes | None, at_ms: int | None, clock_ms: int
) -> _DecodedRates:
    """Decode a record, and choose the rate of one of its windows.

    Without a timestamp, the end of its windows counts as the time of writing.
    """
    copy, record = read_rates(key, value)
    if record is None:
        return _DecodedRates(copy, None, None, None, clock_ms)
    written_ms = _required_past(record.as_of_ms if at_ms is None else at_ms, clock_ms)
    rate = choose_rate(min(record.as_of_ms, written_ms), record.windows)
    return _DecodedRates(copy, rate, written_ms, round(record.trigger_seconds * 1000), clock_ms)


def _apply_rates(state: ClusterState, decoded: _DecodedRates) -> bool:
    """Apply the rate of a copy. Rates of changelog partitions only show that the stream runs."""
    if decoded.written_ms is not None and decoded.trigger_ms is not None:
        state.rates.record_written(decoded.written_ms, decoded.trigger_ms, decoded.clock_ms)
    copy = decoded.copy
    if isinstance(copy, TopicPartition) or not state.held.has_group(copy[0]):
        return True
    return state.rates.apply(*copy, decoded.rate)


def _decode_progress(
    key: bytes | None, value: bytes | None, at_ms: int | None, clock_ms: int
) -> tuple[str, StreamProgress | None]:
    written_ms = _required_past(at_ms, clock_ms)
    stream, record = read_progress(key, value)
    return stream, None if record is None else StreamProgress(written_ms, record)


def _required_past(at_ms: int | None, clock_ms: int) -> int:
    """Return a timestamp, or the clock if it is unknown. Raises RefusedError for a future time."""
    written_ms = clock_ms if at_ms is None else at_ms
    require_past(written_ms, clock_ms)
    return written_ms


#: End offsets of partitions, as the probe of the active instance listed them. After this machine's
#: clock was set back, samples that it dates later than now give way to new ones.
end_offsets = AppliedTopic(END_OFFSETS, _decode_ends, _apply_ends, brokers_clock=False)
#: What an application's leader saw and decided at a rebalance.
application_states = AppliedTopic(
    APPLICATION_STATES,
    _decode_state,
    _apply_state,
    "the service keeps no more applications' states",
)
#: Positions of copies between rebalances, as applications report them.
task_positions = AppliedTopic(
    TASK_POSITIONS,
    _decode_position,
    lambda state, decoded: not state.held.has_group(decoded[0]) or state.positions.apply(*decoded),
    "the service keeps no more copies' positions",
)
#: How fast copies restore, as measured by the job on Spark.
catch_up_rates = AppliedTopic(
    CATCH_UP_RATES, _decode_rates, _apply_rates, "the service keeps no more copies' rates"
)
#: The progress of streams on Spark: the newest report of each stream is kept.
pipeline_progress = AppliedTopic(
    PIPELINE_PROGRESS,
    _decode_progress,
    lambda state, decoded: state.pipeline.apply(*decoded),
    "the service keeps no more streams' progress",
)
