"""Metrics of partitions in movement. What was not worked out yet, or isn't known, is absent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from caughtup.agents.web.metrics.group_labels import escaped
from caughtup.agents.web.metrics.partition_series import of_each
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking.tracker import OUTCOMES, TrackedMovement
from caughtup.models.reassignments.verdict import VERDICTS, MovementVerdict
from caughtup.models.reassignments.watch import AssessedMovement
from caughtup.models.state.cluster import ClusterState

PHASES = ("U", "A", "B", "completing", "propagating")
_CLUSTER = ("cluster",)
_PARTITION = ("cluster", "topic", "partition")
_STATUS, _CAUSE = "caughtup_reassignment_status", "caughtup_reassignment_cause"


class _Moving(NamedTuple):
    """A partition in movement at the moment of a scrape (ms)."""

    tracked: TrackedMovement
    assessed: AssessedMovement | None
    now_ms: int


def _bytes_remaining(moving: _Moving) -> float | None:
    return None if moving.assessed is None else moving.assessed.figures.bytes_remaining


def _offsets_remaining(moving: _Moving) -> float | None:
    return None if moving.assessed is None else moving.assessed.figures.offsets_remaining


def _rate_bytes(moving: _Moving) -> float | None:
    return None if moving.assessed is None else moving.assessed.figures.rate_bytes


def _eta(moving: _Moving) -> float | None:
    eta = None if moving.assessed is None else moving.assessed.figures.eta
    return None if eta is None else eta.seconds


def _age(moving: _Moving) -> float:
    return max(0, moving.now_ms - moving.tracked.since_ms) / 1000


def _idle(moving: _Moving) -> float:
    return max(0, moving.now_ms - moving.tracked.progressed_ms) / 1000


_FIGURES = {
    "offsets_remaining": ("Offsets yet to copy", _offsets_remaining),
    "bytes_remaining": ("Bytes yet to copy", _bytes_remaining),
    "rate_bytes_per_second": ("Bytes copied a second", _rate_bytes),
    "eta_seconds": ("Time until it is copied", _eta),
    "age_seconds": ("Time since it was first seen", _age),
    "idle_seconds": ("Time since a replica gained or joined the ISR", _idle),
}
#: The labels of those metrics of which each partition in movement has series, by name.
LABELS = {f"caughtup_reassignment_{name}": _PARTITION for name in _FIGURES}
LABELS[_STATUS] = (*_PARTITION, "status")
LABELS[_CAUSE] = (*_PARTITION, "cause")


def movement_series(state: ClusterState, now_ms: int) -> Iterator[bytes]:
    """Give the text of the gauges of each partition in movement, in small pieces.

    In both of Prometheus' formats gauges look the same. The state may change between two pieces:
    a movement that comes or ends meanwhile has a line or none, and so has one that fails.
    """
    cluster = f'cluster="{escaped(state.cluster)}"'
    for name, (documentation, figure) in _FIGURES.items():
        yield _head(f"caughtup_reassignment_{name}", documentation)
        lines = partial(_figure, state, f"caughtup_reassignment_{name}{{{cluster}", figure, now_ms)
        yield from of_each(state, sorted(state.reassignments.moving), lines)
    yield _head(_STATUS, "How a partition in movement fares")
    lines = partial(_status, state, f"{_STATUS}{{{cluster}")
    yield from of_each(state, sorted(state.reassignments.moving), lines)
    yield _head(_CAUSE, "Why a partition in movement fares as it does")
    lines = partial(_cause, state, f"{_CAUSE}{{{cluster}")
    yield from of_each(state, sorted(state.reassignments.moving), lines)


def _figure(
    state: ClusterState,
    before: str,
    figure: Callable[[_Moving], float | None],
    now_ms: int,
    partition: TopicPartition,
) -> Iterator[bytes]:
    tracked = state.reassignments.moving.get(partition)
    if tracked is not None:
        assessed = state.reassignment_watch.find(partition, tracked)
        value = figure(_Moving(tracked, assessed, now_ms))
        if value is not None:
            yield f"{before},{_labels(partition)}}} {_number(value)}\n".encode()


def _verdict(state: ClusterState, partition: TopicPartition) -> MovementVerdict | None:
    tracked = state.reassignments.moving.get(partition)
    assessed = tracked and state.reassignment_watch.find(partition, tracked)
    return assessed.verdict if assessed else None


def _status(state: ClusterState, before: str, partition: TopicPartition) -> Iterator[bytes]:
    if (said := _verdict(state, partition)) is not None:
        labels = f'{before},{_labels(partition)},status="'
        yield "".join([f'{labels}{v}"}} {int(v == said.verdict)}\n' for v in VERDICTS]).encode()


def _cause(state: ClusterState, before: str, partition: TopicPartition) -> Iterator[bytes]:
    if (said := _verdict(state, partition)) is not None and said.cause is not None:
        yield f'{before},{_labels(partition)},cause="{escaped(said.cause)}"}} 1\n'.encode()


def movement_families(state: ClusterState, now_ms: int) -> Iterator[Metric]:
    """Give what is counted over all partitions in movement, and over those that ended."""
    tracker, cluster = state.reassignments, state.cluster
    partitions = _gauge("reassignment_partitions", "Partitions in movement", (*_CLUSTER, "phase"))
    phases = dict.fromkeys(PHASES, 0)
    joins = CounterMetricFamily(
        "caughtup_reassignment_isr_joins", "Replicas that joined the ISR", labels=_PARTITION
    )
    for partition, tracked in sorted(tracker.moving.items()):
        phases[tracked.phase(tracker.cluster)] += 1
        labels = [cluster, partition.topic, str(partition.partition)]
        joins.add_metric(labels, len(tracked.isr_joins))
    for phase, count in phases.items():
        partitions.add_metric([cluster, phase], count)
    ended = CounterMetricFamily(
        "caughtup_reassignments_ended",
        "Movements that ended, by how",
        labels=(*_CLUSTER, "outcome"),
    )
    for outcome in OUTCOMES:
        ended.add_metric([cluster, outcome], tracker.ended_counts[outcome])
    orphaned = _gauge(
        "throttle_orphaned", "Throttles that no movement needs", (*_CLUSTER, "kind", "name")
    )
    for throttle in state.reassignment_watch.orphaned(now_ms):
        orphaned.add_metric([cluster, throttle.kind, throttle.name], 1)
    partial = _gauge("reassignments_partial", "Whether the last look lacked something", _CLUSTER)
    if tracker.cluster is not None:
        partial.add_metric([cluster], bool(tracker.cluster.missing))
    yield from (partitions, joins, ended, orphaned, partial)


def _labels(partition: TopicPartition) -> str:
    return f'topic="{escaped(partition.topic)}",partition="{partition.partition}"'


def _number(value: float) -> str:
    return "+Inf" if value == float("inf") else str(value)


def _head(name: str, documentation: str) -> bytes:
    return f"# HELP {name} {documentation}\n# TYPE {name} gauge\n".encode()


def _gauge(name: str, documentation: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"caughtup_{name}", documentation, labels=labels)
