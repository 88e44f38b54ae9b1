"""``/metrics``: collected on scrape from the state, never pushed, never asking Kafka."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from caughtup.agents.clock import now_ms
from caughtup.agents.process.health import PROBES, Health
from caughtup.agents.web.metrics.copies import copy_families
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.metrics.partition_series import PART, partition_series
from caughtup.agents.web.metrics.pipeline import pipeline_families
from caughtup.agents.web.metrics.reassignments import movement_families, movement_series
from caughtup.agents.web.metrics.task_series import task_series
from caughtup.models.decisions.exact.generation import RESULTS
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.record_keys import RecordType

_GROUP = ("cluster", "group")
_KEY_TYPES = frozenset(RecordType)
#: What closes a whole text in OpenMetrics' format.
_OPENMETRICS_END = b"# EOF\n"


def exposition(
    state: ClusterState,
    health: Health,
    encode: Callable[[Collector], bytes],
    labels: GroupLabels | None = None,
    *,
    compatible: bool = False,
) -> Iterator[bytes]:
    """Give the whole of ``/metrics`` in small pieces, in the format of ``encode``.

    ``labels`` keeps from one scrape to the next what doesn't change. Groups only once the reader
    has caught up with the log: half a log would be taken for groups that lag or vanished.
    """
    if health.is_alive:
        yield from partition_series(state, labels or GroupLabels(), compatible=compatible)
        yield from task_series(state)
    if health.broken is None and health.standby is None:
        with state.faults.isolated(PART, "reassignments", now_ms()):
            yield from movement_series(state, now_ms())
    ending = b""
    for family in StateCollector(state, health).collect():
        text = b""
        with state.faults.isolated(PART, family.name, now_ms()):
            text = encode(_Single(family))
        if text.endswith(_OPENMETRICS_END):
            text, ending = text.removesuffix(_OPENMETRICS_END), _OPENMETRICS_END
        yield text
    yield ending


class _Single(Collector):
    """One family, so that others get their turn before the next."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


class StateCollector(Collector):
    """Turns the state into metric families. Unknown figures are absent, never 0 or -1.

    What there is most of is elsewhere: groups' and topics' partitions in agents/web/metrics/partition_series.py,
    copies of tasks in agents/web/metrics/task_series.py, and each partition in movement in
    agents/web/metrics/reassignments.py.
    """

    def __init__(self, state: ClusterState, health: Health) -> None:
        self._state = state
        self._health = health

    def describe(self) -> Iterable[Metric]:
        """Describe nothing: names are only known once there is something to tell."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Give every family, those of groups only once the reader has caught up with the log."""
        state, now = self._state, now_ms()
        yield from self._own_health()
        families: dict[str, Iterator[Metric]] = {}
        if self._health.broken is None and self._health.standby is None:
            families |= {
                "reassignments": movement_families(state, now),
                "pipeline": pipeline_families(state.cluster, state.pipeline, now),
            }
        if self._health.is_alive:
            families |= {
                "applications": self._applications(),
                "copies": copy_families(state, now),
            }
        for name, of_name in families.items():
            with state.faults.isolated(PART, name, now):
                yield from of_name

    def _applications(self) -> Iterator[Metric]:
        generation = _gauge("group_generation", "Generation of a Streams group", _GROUP)
        due = _gauge("probing_rebalance_due", "Whether its time has come", _GROUP)
        due_at = _gauge(
            "probing_rebalance_due_timestamp_seconds",
            "When the next probing rebalance is due",
            _GROUP,
        )
        acceptable = _gauge(
            "acceptable_recovery_lag_records", "Lag at which a copy counts as caught up", _GROUP
        )
        interval = _gauge(
            "probing_rebalance_interval_seconds", "Time between probing rebalances", _GROUP
        )
        movements = _counter("movements", "Movements recommended, by kind", (*_GROUP, "kind"))
        rebalances = _counter("rebalances", "Generations seen", _GROUP)
        exact = _counter("exact_decisions", "Leader's decisions recomputed", (*_GROUP, "result"))
        published = _counter("recommendations_published", "Recommendations published", _GROUP)
        now = now_ms()

        def add(group: str) -> None:
            application, labels = self._state.applications[group], [self._state.cluster, group]
            parameters = self._state.applications.parameters(group)
            acceptable.add_metric(labels, parameters.value("acceptable.recovery.lag"))
            interval.add_metric(labels, parameters.value("probing.rebalance.interval.ms") / 1000)
            generation.add_metric(labels, application.newest.generation)
            next_rebalance = application.newest.next_rebalance()
            due.add_metric(labels, next_rebalance is not None and next_rebalance[0] <= now)
            if next_rebalance is not None:
                due_at.add_metric(labels, next_rebalance[0] / 1000)
            rebalances.add_metric(labels, application.rebalances)
            published.add_metric(labels, application.published)
            for kind, count in sorted(application.movement_counts.items()):
                movements.add_metric([*labels, kind], count)
            for result in RESULTS:
                exact.add_metric([*labels, result], application.exact_counts[result])

        self._state.faults.for_each(PART, sorted(self._state.applications), add, str, now)
        yield from (generation, acceptable, interval, due, due_at)
        yield from (movements, rebalances, exact, published)

    def _faults(self) -> Iterator[Metric]:
        cluster, faults = self._state.cluster, self._state.faults
        totals = _counter(
            "faults", "Failures that cost their subject a turn", ("cluster", "part", "cause")
        )
        for (part, cause), count in sorted(faults.totals.items()):
            totals.add_metric([cluster, part, cause], count)
        subjects = _gauge(
            "recent_faults",
            "Failures of the groups, topics or partitions that failed last",
            ("cluster", "subject", "part", "cause"),
        )
        for fault in sorted(faults.newest()):
            subjects.add_metric([cluster, fault.subject, fault.part, fault.cause], fault.times)
        yield from (totals, subjects)

    def _own_health(self) -> Iterator[Metric]:
        cluster, health, counts = self._state.cluster, self._health, self._state.counts
        ready = _gauge("offsets_reader_ready", "Whether the log was read to its end", ("cluster",))
        ready.add_metric([cluster], health.has_read)
        yield ready
        active = _gauge("active", "Whether this instance is the active one", ("cluster",))
        active.add_metric([cluster], health.standby is None)
        yield active
        problems = _gauge(
            "topic_problems", "What is wrong with own topics", ("cluster", "topic", "problem")
        )
        for topic, problem in sorted(health.topic_problems):
            problems.add_metric([cluster, topic, problem], 1)
        yield problems
        if health.reader_lag is not None:
            lag = _gauge("offsets_reader_lag_records", "Records yet to be read", ("cluster",))
            lag.add_metric([cluster], health.reader_lag)
            yield lag
        if health.polled_ms is not None:
            polled = _gauge(
                "offsets_last_poll_timestamp_seconds",
                "When the brokers last answered the reader",
                ("cluster",),
            )
            polled.add_metric([cluster], health.polled_ms / 1000)
            yield polled
        records = _counter("offsets_records", "Records read", ("cluster", "key_type"))
        for key_type, count in _by_key_type(counts.records):
            records.add_metric([cluster, key_type], count)
        skipped = _counter(
            "offsets_records_skipped", "Records of types not read yet", ("cluster", "key_type")
        )
        for key_type, count in _by_key_type(counts.skipped):
            skipped.add_metric([cluster, key_type], count)
        errors = _counter(
            "decode_errors", "Records that could not be read", ("cluster", "key_type", "code")
        )
        for (key_type, code), count in counts.errors.items():
            name = "unknown" if key_type is None else str(key_type)
            errors.add_metric([cluster, name, code], count)
        refused = _counter(
            "records_refused", "Records of own topics refused", ("cluster", "topic", "reason")
        )
        for (topic, reason), count in sorted(self._state.refused.counts.items()):
            refused.add_metric([cluster, topic, reason], count)
        yield refused
        set_aside = _counter(
            "records_set_aside",
            "Records that were not written, since no broker takes them",
            ("cluster", "topic", "reason"),
        )
        for (topic, reason), count in sorted(self._state.set_aside.counts.items()):
            set_aside.add_metric([cluster, topic, reason], count)
        yield set_aside
        yield from self._faults()
        age = _gauge("snapshot_age_seconds", "Age of what a probe last saw", ("cluster", "source"))
        for probe, seen_ms in sorted(health.probed_ms.items()):
            age.add_metric([cluster, probe], max(0, now_ms() - seen_ms) / 1000)
        failures = _counter("probe_errors", "Probes that failed", ("cluster", "probe"))
        for probe in PROBES:
            failures.add_metric([cluster, probe], health.probe_errors[probe])
        yield from (records, skipped, errors, age, failures)


def _by_key_type(counts: Counter[int]) -> Iterator[tuple[str, int]]:
    """Give the counts of each type that is known, and of all others together."""
    known = {key_type: count for key_type, count in counts.items() if key_type in _KEY_TYPES}
    for key_type, count in sorted(known.items()):
        yield str(key_type), count
    if others := counts.total() - sum(known.values()):
        yield "other", others


def _gauge(name: str, documentation: str, labels: Iterable[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"caughtup_{name}", documentation, labels=labels)


def _counter(name: str, documentation: str, labels: Iterable[str]) -> CounterMetricFamily:
    return CounterMetricFamily(f"caughtup_{name}", documentation, labels=labels)
