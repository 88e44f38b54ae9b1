"""Lag under others' names: the same figures, by their labels, added up as PromQL would add them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from prometheus_client.parser import text_string_to_metric_families

from caughtup.agents.process.health import Health
from caughtup.agents.web.metrics import exposition as metrics
from caughtup.agents.web.metrics import group_labels
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.metrics.group_lines import Detail
from caughtup.agents.web.served_metrics import EXPORTERS
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import LONG_MAX
from caughtup.models.state.cluster import ClusterState
from tests.support.changes import Change, changes
from tests.support.groups.records import START_MS, commit, consumer_generation
from tests.support.observability.scraping import COMPATIBLE
from tests.support.reassignments.reassigning import reassigning
from tests.support.states import (
    GAINING,
    HOSTILE,
    KEEPING_UP,
    STOPPED,
    cluster_state,
    everything,
    judged,
    read,
)

Series = dict[tuple[str, ...], float]


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_labels, "SLICE", 5)
    monkeypatch.setattr(metrics, "now_ms", lambda: START_MS)


def told(
    state: ClusterState, labels: GroupLabels | None = None, name: str | None = None
) -> dict[str, Series]:
    """Every series under others' names: name → the values of its labels, sorted by name → figure."""
    health = Health(name, ready=True)
    text = b"".join(metrics.exposition(state, health, labels, others=COMPATIBLE)).decode()
    found: dict[str, Series] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not sample.name.startswith("caughtup_"):
                series = found.setdefault(sample.name, {})
                where = tuple(value for _, value in sorted(sample.labels.items()))
                assert where not in series, "it comes twice"
                series[where] = sample.value
    return found


def added(series: Series, *places: int) -> Series:
    sums: Counter[tuple[str, ...]] = Counter()
    for where, figure in series.items():
        sums[tuple(where[place] for place in places)] += int(figure)
    return {where: min(total, LONG_MAX) for where, total in sums.items()}


same_fixture = settings(
    print_blob=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@same_fixture
@given(changes)
def test_every_exporter_is_told_the_same_and_sums_are_what_partitions_come_to(
    made: list[Change],
) -> None:
    state, labels = cluster_state(), GroupLabels()
    for change in made:
        change(state)
        found = told(state, labels)
        assert not state.faults.totals
    if not made:
        return
    get = lambda name: found.get(name, {})
    lag = get("kafka_consumergroup_lag")  # consumergroup, partition, topic
    offsets = get("kafka_consumergroup_current_offset")
    assert get("kminion_kafka_consumer_group_topic_partition_lag") == lag
    for name, of in (("lag", lag), ("current_offset", offsets)):
        whole = {("cluster-1", *where): figure for where, figure in of.items()}
        assert get(f"kafka_burrow_partition_{name}") == whole
    whole = {("cluster-1", *where): figure for where, figure in lag.items()}
    assert get("kafka_consumergroup_group_lag") == whole
    by_topic = added(lag, 0, 2)
    assert get("kafka_consumergroup_lag_sum") == by_topic
    assert get("kminion_kafka_consumer_group_topic_lag") == by_topic
    assert get("kafka_consumergroup_current_offset_sum") == added(offsets, 0, 2)
    assert get("kminion_kafka_consumer_group_topic_offset_sum") == added(offsets, 0, 2)
    by_group = {("cluster-1", *where): figure for where, figure in added(lag, 0).items()}
    assert get("kafka_burrow_total_lag") == by_group
    assert get("kafka_consumergroup_group_sum_lag") == by_group
    most = {
        group: max(figure for where, figure in whole.items() if where[:2] == group)
        for group in by_group
    }
    assert get("kafka_consumergroup_group_max_lag") == most
    ends = get("kafka_topic_partition_current_offset")  # partition, topic
    assert get("kminion_kafka_topic_partition_high_water_mark") == ends
    assert get("kminion_kafka_topic_high_water_mark_sum") == added(ends, 1)
    assert get("kafka_topic_partitions") == Counter((topic,) for _, topic in ends)


def test_what_is_told_by_topic_has_no_series_of_partitions() -> None:
    found = told(everything(), GroupLabels(Detail("topic")))
    assert "kafka_consumergroup_lag" not in found
    assert "kafka_topic_partition_current_offset" not in found
    assert found["kafka_consumergroup_lag_sum"] == told(everything())["kafka_consumergroup_lag_sum"]


def test_members_are_counted_as_kminion_counts_them() -> None:
    state = cluster_state()
    owned = {"a": (TopicPartition("t", 0), TopicPartition("t", 1)), "b": (), "c": ()}
    read(state, consumer_generation(1, owned, group="g"), commit(0, 1, group="only-commits"))
    read(state, consumer_generation(1, {}, group="empty"))
    found = told(state)
    assert found["kminion_kafka_consumer_group_members"] == {("g",): 3, ("empty",): 0}
    assert found["kminion_kafka_consumer_group_empty_members"] == {("g",): 2, ("empty",): 0}
    assert found["kminion_kafka_consumer_group_topic_members"] == {("g", "t"): 1}
    assert found["kminion_kafka_consumer_group_topic_assigned_partitions"] == {("g", "t"): 2}
    assert found["kminion_kafka_consumer_group_info"] == {
        ("g", "classic", "Stable"): 1,
        ("empty", "classic", "Empty"): 0,
    }


def test_burrows_statuses_stand_for_ours_and_its_worst_of_a_group_is_err() -> None:
    found = told(judged(), name="production")
    of_groups = found["kafka_burrow_status"]
    named = {(group): of_groups["production", group] for group in (STOPPED, KEEPING_UP, GAINING)}
    assert named == {STOPPED: 4, KEEPING_UP: 2, GAINING: 3}
    of_partitions = found["kafka_burrow_partition_status"]
    assert of_partitions["production", STOPPED, "1", "clicks"] == 5
    assert of_partitions["production", STOPPED, "0", "clicks"] == 2


def test_seconds_are_told_as_each_exporter_has_them() -> None:
    found = told(judged())
    seconds = found["kafka_consumergroup_group_lag_seconds"]
    millis = found["kafka_consumer_lag_millis"]
    assert {where[1:]: 1000 * figure for where, figure in seconds.items()} == pytest.approx(millis)
    of_group = [figure for where, figure in seconds.items() if where[1] == STOPPED]
    most = found["kafka_consumergroup_group_max_lag_seconds"]
    assert most["cluster-1", STOPPED] == max(of_group)


def test_brokers_are_counted_once_they_were_looked_at() -> None:
    assert (
        "kafka_brokers" not in told(cluster_state()) or not told(cluster_state())["kafka_brokers"]
    )
    state = reassigning()
    observed = state.reassignments.cluster
    assert observed is not None
    assert observed.brokers is not None
    found = told(state)
    assert found["kafka_brokers"] == {(): len(observed.brokers)}
    (labels,) = found["kminion_kafka_cluster_info"]
    assert labels[:2] == (str(len(observed.brokers)), state.cluster)


def test_a_hostile_name_stays_a_label() -> None:
    state = cluster_state()
    for group in (HOSTILE, 'x,topic="', "x,partition="):
        read(state, commit(0, 1, group=group, topic='t,partition="'), commit(1, 1, group=group))
    found = told(state)
    groups = {where[0] for where in found["kminion_kafka_consumer_group_topic_offset_sum"]}
    assert groups == {HOSTILE, 'x,topic="', "x,partition="}


def test_nothing_is_told_before_the_log_was_read() -> None:
    pieces = metrics.exposition(everything(), Health(), others=COMPATIBLE)
    assert not [
        line for line in b"".join(pieces).split(b"\n") if line.startswith((b"k", b"# HELP k"))
    ]


def test_names_are_each_ones_alone_and_documented() -> None:
    names = [family.name for families in EXPORTERS.values() for family in families]
    assert len(set(names)) == len(names)
