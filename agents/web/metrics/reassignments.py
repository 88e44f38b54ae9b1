"""Metrics of partitions that are reassigned. Unknown figures are absent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_lines import escaped
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracker import TrackedReassignment
from caughtup.models.records.reassignment_lines import Reassignment
from caughtup.models.verdicts import OUTCOMES, REASSIGNMENTS

PHASES = ("U", "A", "B", "completing", "propagating")
_CLUSTER = ("cluster",)
_PARTITION = ("cluster", "topic", "partition")


def _partitions(scrape: Scrape) -> list[TopicPartition]:
    return sorted(scrape.state.reassignments.ongoing)


def _labels(scrape: Scrape, partition: TopicPartition) -> str:
    topic, number = partition
    return f'{scrape.cluster_label},topic="{escaped(topic)}",partition="{number}"'


def _assessed(scrape: Scrape, partition: TopicPartition) -> Reassignment | None:
    tracked = scrape.state.reassignments.ongoing.get(partition)
    if tracked is None:
        return None
    return scrape.state.reassignment_watch.find(partition, tracked)


def _figure(
    figure: Callable[[Reassignment], float | None],
    family: Family,
    scrape: Scrape,
    partition: TopicPartition,
) -> Iterator[bytes]:
    assessed = _assessed(scrape, partition)
    value = None if assessed is None else figure(assessed)
    if value is not None:
        yield family.line_of(_labels(scrape, partition), value)


def _since(
    seconds: Callable[[TrackedReassignment, int], float],
    family: Family,
    scrape: Scrape,
    partition: TopicPartition,
) -> Iterator[bytes]:
    tracked = scrape.state.reassignments.ongoing.get(partition)
    if tracked is not None:
        yield family.line_of(_labels(scrape, partition), seconds(tracked, scrape.now_ms))


def _status(family: Family, scrape: Scrape, partition: TopicPartition) -> Iterator[bytes]:
    if (found := _assessed(scrape, partition)) is not None:
        labels = _labels(scrape, partition)
        space = " " if scrape.settings.legacy_status_values else "_"
        yield b"".join(
            family.line_of(
                f'{labels},status="{verdict.replace(" ", space)}"', int(verdict == found.verdict)
            )
            for verdict in REASSIGNMENTS.words
        )


def _cause(family: Family, scrape: Scrape, partition: TopicPartition) -> Iterator[bytes]:
    if (found := _assessed(scrape, partition)) is not None and found.cause is not None:
        labels = _labels(scrape, partition)
        yield family.line_of(f'{labels},cause="{escaped(found.cause)}"', 1)


def _phases(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    tracker = scrape.state.reassignments
    counts = Counter(tracked.phase(tracker.cluster) for tracked in tracker.ongoing.values())
    for phase in PHASES:
        yield family.line((scrape.state.cluster, phase), counts[phase])


def _isr_joins(family: Family, scrape: Scrape, partition: TopicPartition) -> Iterator[bytes]:
    tracked = scrape.state.reassignments.ongoing.get(partition)
    if tracked is not None:
        values = (scrape.state.cluster, partition.topic, str(partition.partition))
        yield family.line(values, len(tracked.isr_joins))


def _ended(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for outcome in OUTCOMES.words:
        count = scrape.state.reassignments.ended_counts[outcome]
        yield family.line((scrape.state.cluster, outcome), count)


def _orphaned(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for throttle in scrape.state.reassignment_watch.orphaned(scrape.now_ms):
        yield family.line((scrape.state.cluster, throttle.kind, throttle.name), 1)


def _partial(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    observed = scrape.state.reassignments.cluster
    if observed is not None:
        yield family.line((scrape.state.cluster,), bool(observed.missing))


def _family(
    name: str,
    documentation: str,
    lines: Callable[[Family, Scrape, TopicPartition], Iterator[bytes]],
    *more_labels: str,
) -> Family:
    """Declare a gauge of each partition that is reassigned."""
    labels = (*_PARTITION, *more_labels)
    return Family(f"caughtup_reassignment_{name}", documentation, labels, lines, _partitions)


#: For each partition, of which there may be thousands.
REASSIGNMENT_FAMILIES = (
    _family(
        "offsets_remaining",
        "Offsets that the furthest required replica has yet to copy",
        partial(_figure, attrgetter("offsets_remaining")),
    ),
    _family(
        "bytes_remaining",
        "Bytes that the required replicas have yet to copy",
        partial(_figure, attrgetter("bytes_remaining")),
    ),
    _family(
        "rate_bytes_per_second",
        "Bytes that the required replicas copy in a second",
        partial(_figure, attrgetter("rate_bytes_per_second")),
    ),
    _family(
        "eta_seconds",
        "Seconds until the last required replica has caught up; +Inf: never",
        partial(_figure, attrgetter("eta")),
    ),
    _family(
        "age_seconds",
        "Seconds since the reassignment was first seen",
        partial(_since, TrackedReassignment.age_seconds),
    ),
    _family(
        "idle_seconds",
        "Seconds since an added replica copied a record or joined the ISR",
        partial(_since, TrackedReassignment.idle_seconds),
    ),
    _family(
        "status",
        "1 for the verdict on a partition in movement, 0 for the others",
        _status,
        "status",
    ),
    _family("cause", "1 for the cause of the verdict on a partition in movement", _cause, "cause"),
)
#: Totals of current and ended reassignments.
REASSIGNMENT_TOTALS = (
    Family(
        "caughtup_reassignment_partitions",
        "Partitions in movement, by phase",
        (*_CLUSTER, "phase"),
        _phases,
    ),
    Family(
        "caughtup_reassignment_isr_joins_total",
        "Replicas that joined the ISR",
        _PARTITION,
        _isr_joins,
        _partitions,
        "counter",
    ),
    Family(
        "caughtup_reassignments_ended_total",
        "Reassignments that ended, by outcome",
        (*_CLUSTER, "outcome"),
        _ended,
        type="counter",
    ),
    Family(
        "caughtup_throttle_orphaned",
        "1 for a replication throttle that no reassignment needs",
        (*_CLUSTER, "kind", "name"),
        _orphaned,
    ),
    Family(
        "caughtup_reassignments_partial",
        "1 if the last observation of reassignments was incomplete",
        _CLUSTER,
        _partial,
    ),
)
