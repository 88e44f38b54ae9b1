"""Series by topic and by group against those of partitions, added up one after the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from caughtup.agents.process.health import Health
from caughtup.agents.watching_settings import Granularity
from caughtup.agents.web.metrics import exposition as metrics
from caughtup.agents.web.metrics import group_labels
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.metrics.group_lines import Detail
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import LONG_MAX, EndOffsets
from caughtup.models.state.cluster import ClusterState
from tests.support.changes import Change, changes
from tests.support.groups.records import START_MS, commit
from tests.support.states import cluster_state, read

#: A group's partitions are more than a slice, and so are those of several groups.
SLICE = 5
Series = dict[tuple[str, ...], float]


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_labels, "SLICE", SLICE)
    monkeypatch.setattr(metrics, "now_ms", lambda: START_MS)


def series(state: ClusterState, labels: GroupLabels) -> dict[str, Series]:
    """Every series of groups' partitions and of partitions: name → label values → figure."""
    text = b"".join(metrics.exposition(state, Health(ready=True), labels)).decode()
    found: dict[str, Series] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if family.name not in FOLDS:
                continue
            values = sample.labels
            where = [values.get(name, "") for name in ("group", "topic", "partition", "isolation")]
            assert tuple(where) not in found.setdefault(family.name, {}), "it comes twice"
            found[family.name][tuple(where)] = sample.value
    return found


def added(figures: list[float]) -> float:
    total = 0.0
    for figure in figures:
        total += figure
    return min(total, float(LONG_MAX))


FOLDS: dict[str, Callable[[list[float]], float]] = {
    "caughtup_group_lag_records": added,
    "caughtup_group_committed_offset": added,
    "caughtup_group_has_commit": min,
    "caughtup_group_last_commit_timestamp_seconds": max,
    "caughtup_group_retention_used_ratio": max,
    "caughtup_group_lag_seconds": max,
    "caughtup_group_lag_velocity": added,
    "caughtup_group_catchup_eta_seconds": max,
    "caughtup_partition_start_offset": added,
    "caughtup_partition_end_offset": added,
}


def folded(
    by_partition: dict[str, Series], granularity_of: Callable[[str], str]
) -> dict[str, Series]:
    """Add up the series of partitions as ``sum by`` and ``max by`` do."""
    found: dict[str, dict[tuple[str, ...], list[float]]] = {}
    for name, of_name in by_partition.items():
        for (group, topic, partition, isolation), figure in of_name.items():
            how = granularity_of(group)
            where = (
                group,
                topic if how != "group" or not group else "",
                partition if how == "partition" else "",
                isolation,
            )
            found.setdefault(name, {}).setdefault(where, []).append(figure)
    return {
        name: {where: FOLDS[name](figures) for where, figures in of_name.items()}
        for name, of_name in found.items()
    }


same_fixture = settings(
    print_blob=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@same_fixture
@given(changes, st.sampled_from(["topic", "group"]))
def test_series_are_what_those_of_partitions_come_to(
    made: list[Change], granularity: Granularity
) -> None:
    state, labels, plain = cluster_state(), GroupLabels(Detail(granularity)), GroupLabels()
    for change in made:
        change(state)
        expected = folded(series(state, plain), lambda _: granularity)
        found = series(state, labels)
        assert found.keys() == expected.keys()
        for name, of_name in expected.items():
            assert found[name] == {where: pytest.approx(v) for where, v in of_name.items()}, name
        assert not state.faults.totals


@same_fixture
@given(changes, st.integers(1, 6))
def test_a_group_beyond_the_limit_is_told_of_less_finely_and_counted(
    made: list[Change], limit: int
) -> None:
    state, labels, plain = cluster_state(), GroupLabels(Detail("partition", limit)), GroupLabels()
    for change in made:
        change(state)
        by_partition = series(state, plain)
        partitions = {where[:3] for name in by_partition for where in by_partition[name]}

        def granularity_of(group: str, there: set[tuple[str, ...]] = partitions) -> str:
            of_group = [where for where in there if where[0] == group]
            if not group or len(of_group) <= limit:
                return "partition"
            return "topic" if len({topic for _, topic, _ in of_group}) <= limit else "group"

        expected = folded(by_partition, granularity_of)
        found = series(state, labels)
        for name, of_name in expected.items():
            assert found[name] == {where: pytest.approx(v) for where, v in of_name.items()}, name
        groups = {group for group, _, _ in partitions if group}
        assert labels.limited() == sum(granularity_of(each) != "partition" for each in groups)
        assert not state.faults.totals


def test_sums_stay_at_javas_greatest_long() -> None:
    state = cluster_state()
    read(state, *(commit(n, LONG_MAX - 1, group="g", topic="t") for n in range(9)))
    found = series(state, GroupLabels(Detail("topic")))
    assert found["caughtup_group_committed_offset"] == {("g", "t", "", ""): LONG_MAX}


def test_a_failing_group_costs_itself_alone_in_sums_too(monkeypatch: pytest.MonkeyPatch) -> None:
    state = cluster_state()
    large = tuple(("big", n) for n in range(3 * SLICE))
    read(
        state,
        *(commit(n, 5, group="large", topic=topic) for topic, n in large),
        *(commit(0, 9, group=group, topic="t") for group in ("a", "z")),
    )
    for topic, number in (*large, ("t", 0)):
        state.apply_ends(TopicPartition(topic, number), EndOffsets(0, 9, 9, START_MS))
    for group in ("a", "large", "z"):
        for _ in state.assess(group, START_MS):
            pass
    column = state.assessments.column

    def fails(field: str, group: str, partitions: list[object]) -> list[float | None]:
        if group == "large":
            raise ValueError(group)
        return column(field, group, partitions)  # type: ignore[arg-type]

    monkeypatch.setattr(state.assessments, "column", fails)
    found = series(state, GroupLabels(Detail("topic")))
    committed = found["caughtup_group_committed_offset"]
    assert committed == {("a", "t", "", ""): 9, ("large", "big", "", ""): 75, ("z", "t", "", ""): 9}
    assert {where[0] for where in found["caughtup_group_lag_seconds"]} == {"a", "z"}
    assert {part for part, _ in state.faults.totals} == {"metrics"}
