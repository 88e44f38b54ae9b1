"""Metrics of the service itself: what it read, what failed, its release and its process."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator
from functools import partial

from prometheus_client import ProcessCollector

import caughtup
from caughtup.agents.probes.end_offsets import PROBE as END_OFFSETS
from caughtup.agents.process.health import (
    CONNECT_READER,
    EVENT_LOOP,
    OFFSETS,
    PROBES,
    PUBLISHER,
    TOPICS_READER,
)
from caughtup.agents.web.door.refusals import REASONS
from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.models.wire.record_keys import RecordType

_CLUSTER = ("cluster",)
_KEY_TYPES = frozenset(RecordType)


def _cluster_info(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    if scrape.health.cluster_name is not None:
        yield family.line((scrape.state.cluster, scrape.health.cluster_name), 1)


def _ready(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster,), scrape.health.has_read)


def _active(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster,), scrape.health.is_active)


def _held_partitions(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    numbers = scrape.state.held.numbers
    if numbers is not None:
        yield family.line((scrape.state.cluster,), len(numbers))


def _shared_partitions(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    held = scrape.state.held
    if held.are_shared and held.count:
        yield family.line((scrape.state.cluster,), held.count)


def _topic_problems(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for topic, problem in sorted(scrape.health.topic_problems):
        yield family.line((scrape.state.cluster, topic, problem), 1)


def _reader_lag(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    if scrape.health.reader_lag is not None:
        yield family.line((scrape.state.cluster,), scrape.health.reader_lag)


def _last_poll(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    if scrape.health.polled_ms is not None:
        yield family.line((scrape.state.cluster,), scrape.health.polled_ms / 1000)


def _rebalance_requests(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster,), scrape.health.rebalance_requests)


def _refused(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for (topic, reason), count in sorted(scrape.state.refused.counts.items()):
        yield family.line((scrape.state.cluster, topic, reason), count)


def _set_aside(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for (topic, reason), count in sorted(scrape.state.set_aside.counts.items()):
        yield family.line((scrape.state.cluster, topic, reason), count)


def _faults(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for (part, cause), count in sorted(scrape.state.faults.totals.items()):
        yield family.line((scrape.state.cluster, part, cause), count)


def _recent_faults(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for fault in sorted(scrape.state.faults.newest()):
        values = (scrape.state.cluster, fault.subject, fault.part, fault.cause)
        yield family.line(values, fault.times)


def _records(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    return _by_key_type(family, scrape, scrape.state.counts.records)


def _skipped(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    return _by_key_type(family, scrape, scrape.state.counts.skipped)


def _by_key_type(family: Family, scrape: Scrape, counts: Counter[int]) -> Iterator[bytes]:
    """Yield the count of each known type, and of all others together."""
    known = {key_type: count for key_type, count in counts.items() if key_type in _KEY_TYPES}
    for key_type, count in sorted(known.items()):
        yield family.line((scrape.state.cluster, str(key_type)), count)
    if others := counts.total() - sum(known.values()):
        yield family.line((scrape.state.cluster, "other"), others)


def _decode_errors(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for (key_type, code), count in scrape.state.counts.errors.items():
        name = "unknown" if key_type is None else str(key_type)
        yield family.line((scrape.state.cluster, name, code), count)


def _snapshot_age(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for probe, seen_ms in sorted(_seen_ms(scrape).items()):
        age = max(0, scrape.now_ms - seen_ms) / 1000
        yield family.line((scrape.state.cluster, probe), age)


def _seen_ms(scrape: Scrape) -> dict[str, int]:
    """Return when each probe last succeeded, in ms.

    End offsets may be those of another instance, from the topic.
    """
    read_back_ms = scrape.state.ends.newest_ms
    read_back = {} if read_back_ms is None else {END_OFFSETS: read_back_ms}
    return read_back | scrape.health.probed_ms


def _probe_errors(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for probe in PROBES:
        yield family.line((scrape.state.cluster, probe), scrape.health.probe_errors[probe])


def _web_refusals(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for reason in REASONS:
        yield family.line((scrape.state.cluster, reason), scrape.health.web_refusals[reason])


SERVICE_FAMILIES = (
    Family(
        "caughtup_cluster_info",
        "1, with the name of the cluster from the settings",
        ("cluster", "cluster_name"),
        _cluster_info,
        known=lambda scrape: scrape.health.cluster_name is not None,
    ),
    Family(
        "caughtup_offsets_reader_ready",
        "1 once __consumer_offsets was read to the end it had at the start",
        _CLUSTER,
        _ready,
    ),
    Family(
        "caughtup_active", "1 on the active instance, 0 on one that stands by", _CLUSTER, _active
    ),
    Family(
        "caughtup_offsets_held_partitions",
        "Partitions of __consumer_offsets whose groups this instance has; if instances share them",
        _CLUSTER,
        _held_partitions,
    ),
    Family(
        "caughtup_offsets_shared_partitions",
        "Partitions of __consumer_offsets that instances share",
        _CLUSTER,
        _shared_partitions,
    ),
    Family(
        "caughtup_topic_problems",
        "1 for a config of one of the service's topics that does not have the required value",
        ("cluster", "topic", "problem"),
        _topic_problems,
    ),
    Family(
        "caughtup_offsets_reader_lag_records",
        "Records of __consumer_offsets that are yet to be read",
        _CLUSTER,
        _reader_lag,
        known=lambda scrape: scrape.health.reader_lag is not None,
    ),
    Family(
        "caughtup_offsets_last_poll_timestamp_seconds",
        "When the brokers last answered the reader on every partition of __consumer_offsets",
        _CLUSTER,
        _last_poll,
        known=lambda scrape: scrape.health.polled_ms is not None,
    ),
    Family(
        "caughtup_records_refused_total",
        "Records of the service's topics that break the rules of their topic",
        ("cluster", "topic", "reason"),
        _refused,
        type="counter",
    ),
    Family(
        "caughtup_records_set_aside_total",
        "Records that were not written because no broker accepts them",
        ("cluster", "topic", "reason"),
        _set_aside,
        type="counter",
    ),
    Family(
        "caughtup_faults_total",
        "Failures to process one group, topic or partition; each failure leaves it out for one turn",
        ("cluster", "part", "cause"),
        _faults,
        type="counter",
    ),
    Family(
        "caughtup_recent_faults",
        "Failures of the groups, topics and partitions that failed most recently",
        ("cluster", "subject", "part", "cause"),
        _recent_faults,
    ),
    Family(
        "caughtup_offsets_records_total",
        "Records read",
        ("cluster", "key_type"),
        _records,
        type="counter",
    ),
    Family(
        "caughtup_offsets_records_skipped_total",
        "Records of types that the service does not read",
        ("cluster", "key_type"),
        _skipped,
        type="counter",
    ),
    Family(
        "caughtup_decode_errors_total",
        "Records of __consumer_offsets that could not be decoded",
        ("cluster", "key_type", "code"),
        _decode_errors,
        type="counter",
    ),
    Family(
        "caughtup_snapshot_age_seconds",
        "Seconds since a probe last succeeded",
        ("cluster", "source"),
        _snapshot_age,
    ),
    Family(
        "caughtup_probe_errors_total",
        "Failures of a probe",
        ("cluster", "probe"),
        _probe_errors,
        type="counter",
    ),
    Family(
        "caughtup_rebalance_requests_total",
        "Requests by which rebalances of Streams applications are looked for, and the end offsets of their changelogs listed meanwhile",
        _CLUSTER,
        _rebalance_requests,
        type="counter",
    ),
    Family(
        "caughtup_web_refusals_total",
        "Requests and connections that the web port refused or cut off",
        ("cluster", "reason"),
        _web_refusals,
        type="counter",
    ),
)


#: The parts' names in labels.
_PARTS = {
    CONNECT_READER: "connect_reader",
    EVENT_LOOP: "event_loop",
    OFFSETS: "offsets_reader",
    PUBLISHER: "publisher",
    TOPICS_READER: "topics_reader",
}
_COLLECTOR = ProcessCollector(registry=None)


def process_families() -> Iterator[Family]:
    """Yield prometheus_client's process metrics, as far as the system has them."""
    for metric in _COLLECTOR.collect():
        is_counter = metric.type == "counter"
        yield Family(
            f"{metric.name}_total" if is_counter else metric.name,
            metric.documentation.rstrip("."),
            (),
            partial(_process_lines, [sample.value for sample in metric.samples]),
            type="counter" if is_counter else "gauge",
        )


def _process_lines(
    figures: list[float], family: Family, scrape: Scrape, subject: None
) -> Iterator[bytes]:
    for figure in figures:
        yield family.line((), figure)


def _build(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    values = (scrape.state.cluster, caughtup.__version__, platform.python_version())
    yield family.line(values, 1)


def _last_turns(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for part, seconds in scrape.health.pulses.still_seconds().items():
        yield family.line((scrape.state.cluster, _PARTS[part]), seconds)


def _late(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster,), scrape.health.late_seconds)


BUILD_FAMILIES = (
    Family(
        "caughtup_build_info",
        "1, with the release that runs and its Python version",
        ("cluster", "version", "python"),
        _build,
    ),
    Family(
        "caughtup_last_turn_age_seconds",
        "Seconds since a part of the process last made progress",
        ("cluster", "part"),
        _last_turns,
        known=lambda scrape: bool(scrape.health.pulses.still_seconds()),
    ),
    Family(
        "caughtup_event_loop_late_seconds_total",
        "Seconds by which turns of the event loop were late",
        _CLUSTER,
        _late,
        type="counter",
    ),
)
