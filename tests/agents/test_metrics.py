"""``/metrics``: names, labels and figures as a Prometheus server parses them."""

from __future__ import annotations

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from caughtup.agents import metrics
from caughtup.agents.health import Health
from caughtup.agents.metrics import exposition
from caughtup.agents.partition_series import CHUNK_LINES, partition_series
from caughtup.models.state import ClusterState
from tests.support.states import HOSTILE, NOW_MS, everything
from tests.support.streams import (
    GROUP,
    START_MS,
    WARMING,
    Member,
    cluster_state,
    commit,
    generation,
    group_tombstone,
    process,
    read,
)

Labels = tuple[str, ...]
#: Labels in the order in which these tests name their values; any others follow.
ORDER = ("group", "topic", "partition", "process", "client_id", "task")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "now_ms", lambda: NOW_MS)


def text(state: ClusterState, health: Health | None = None, **options: bool) -> str:
    chunks = exposition(
        state, health or Health(ready=True, reader_lag=0), generate_latest, **options
    )
    return b"".join(chunks).decode()


def scrape(state: ClusterState, health: Health | None = None) -> dict[str, dict[Labels, float]]:
    """Give every series: name → the values of its labels but the cluster's → value."""
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text(state, health)):
        for sample in family.samples:
            assert sample.labels.pop("cluster") == state.cluster
            series = found.setdefault(sample.name, {})
            names = [name for name in ORDER if name in sample.labels]
            names += sorted(sample.labels.keys() - set(ORDER))
            labels = tuple(sample.labels[name] for name in names)
            assert labels not in series, f"{sample.name} {labels} comes twice"
            series[labels] = sample.value
    return found


@pytest.fixture
def series() -> dict[str, dict[Labels, float]]:
    health = Health(ready=True, reader_lag=0)
    health.succeeded("end_offsets", NOW_MS - 2_500)
    health.failed("reassignments")
    return scrape(everything(), health)


def test_lag_is_there_where_it_is_known_and_absent_elsewhere(
    series: dict[str, dict[Labels, float]],
) -> None:
    lag = series["caughtup_group_lag_records"]
    assert lag["plain", "clicks", "0"] == 50
    assert lag["plain", "clicks", "1"] == 70
    assert lag[GROUP, "orders-in", "0"] == 40
    assert ("gone", "deleted", "0") not in lag
    committed = series["caughtup_group_committed_offset"]
    assert committed["gone", "deleted", "0"] == 5
    assert ("plain", "clicks", "1") not in committed
    has_commit = series["caughtup_group_has_commit"]
    assert (has_commit["plain", "clicks", "0"], has_commit["plain", "clicks", "1"]) == (1, 0)


def test_members_are_counted_with_the_kind_of_their_group(
    series: dict[str, dict[Labels, float]],
) -> None:
    assert series["caughtup_group_members"] == {(GROUP, "streams"): 2, ("plain", "classic"): 2}


def test_the_log_end_is_told_in_both_views(series: dict[str, dict[Labels, float]]) -> None:
    ends = series["caughtup_partition_end_offset"]
    assert ends["clicks", "0", "read_committed"] == 90
    assert ends["clicks", "0", "read_uncommitted"] == 100


def test_an_application_has_its_generation_probe_verdicts_and_movements(
    series: dict[str, dict[Labels, float]],
) -> None:
    assert series["caughtup_group_generation"] == {(GROUP,): 7}
    assert series["caughtup_probing_rebalance_due"] == {(GROUP,): 1}
    assert series["caughtup_probing_rebalance_due_timestamp_seconds"] == {(GROUP,): START_MS / 1000}
    assert series["caughtup_movements_total"] == {(GROUP, "warmup"): 1}
    assert series["caughtup_exact_decisions_total"] == {
        (GROUP, "match"): 1,
        (GROUP, "mismatch"): 0,
        (GROUP, "undetermined"): 0,
    }
    assert series["caughtup_rebalances_total"] == {(GROUP,): 1}
    assert series["caughtup_recommendations_published_total"] == {(GROUP,): 1}
    assert series["caughtup_acceptable_recovery_lag_records"] == {(GROUP,): 10_000}


def test_a_probe_that_is_not_scheduled_has_no_time() -> None:
    state = cluster_state()
    read(state, generation(1, Member("a", 1)))
    found = scrape(state)
    assert found["caughtup_probing_rebalance_due"] == {(GROUP,): 0}
    assert "caughtup_probing_rebalance_due_timestamp_seconds" not in found


def test_a_probe_whose_time_has_not_come_is_not_due() -> None:
    state = cluster_state()
    read(state, generation(1, Member("a", 1, probe_at_ms=NOW_MS + 1)))
    assert scrape(state)["caughtup_probing_rebalance_due"] == {(GROUP,): 0}


def test_copies_have_a_lag_where_it_is_known_and_are_counted_by_role(
    series: dict[str, dict[Labels, float]],
) -> None:
    assert series["caughtup_task_lag_records"] == {
        (GROUP, str(process(2)), "b", "0_1", "warmup"): 50_000
    }
    assert series["caughtup_task_copies"] == {(GROUP, "active"): 2, (GROUP, "warmup"): 1}


def test_partitions_in_movement_are_counted_by_phase_with_what_is_left(
    series: dict[str, dict[Labels, float]],
) -> None:
    assert series["caughtup_reassignment_partitions"] == {("A",): 1, ("completing",): 0}
    moving = ("orders-in", "0")
    assert series["caughtup_reassignment_offsets_remaining"] == {moving: 800}
    assert series["caughtup_reassignment_age_seconds"] == {moving: 10}
    assert series["caughtup_reassignment_idle_seconds"] == {moving: 10}


def test_the_service_tells_of_itself(series: dict[str, dict[Labels, float]]) -> None:
    assert series["caughtup_offsets_reader_ready"] == {(): 1}
    assert series["caughtup_offsets_reader_lag_records"] == {(): 0}
    assert series["caughtup_offsets_records_total"] == {("1",): 5, ("2",): 2, ("15",): 1}
    assert series["caughtup_offsets_records_skipped_total"] == {("15",): 1}
    assert sum(series["caughtup_decode_errors_total"].values()) == 1
    assert series["caughtup_snapshot_age_seconds"] == {("end_offsets",): 2.5}
    assert series["caughtup_probe_errors_total"] == {
        ("end_offsets",): 0,
        ("offsets",): 0,
        ("reassignments",): 1,
    }


def test_groups_are_told_of_only_once_the_log_was_read_to_its_end() -> None:
    """Half a log would be taken for groups that lag or vanished."""
    found = scrape(everything(), Health())
    assert found["caughtup_offsets_reader_ready"] == {(): 0}
    assert "caughtup_offsets_reader_lag_records" not in found
    assert "caughtup_reassignment_partitions" in found
    assert not {name for name in found if "group" in name or "task" in name or "end" in name}


def test_an_empty_cluster_has_no_series_of_groups() -> None:
    found = scrape(cluster_state())
    assert not {name for name in found if "group" in name or "task" in name}


def test_the_series_of_an_application_go_with_it() -> None:
    state = everything()
    read(state, group_tombstone())
    found = scrape(state)
    assert "caughtup_task_lag_records" not in found
    assert found["caughtup_group_members"] == {("plain", "classic"): 2}


def test_a_hostile_name_is_a_label_and_nothing_else(
    series: dict[str, dict[Labels, float]],
) -> None:
    assert series["caughtup_group_lag_records"][HOSTILE, "clicks", "0"] == 70
    benign = everything(hostile="benign")
    assert scrape(benign).keys() == series.keys() - {"caughtup_snapshot_age_seconds"}


def test_a_threads_hostile_name_is_a_label_too() -> None:
    state = cluster_state()
    read(state, generation(1, Member(HOSTILE, 1, sums={"0_0": 5}, active=("0_0",)), *WARMING[1:]))
    assert list(state.decide(START_MS + 20_000))
    assert scrape(state)["caughtup_group_members"] == {(GROUP, "streams"): 2}


def test_every_name_has_our_prefix_a_base_unit_and_total_on_counters_only() -> None:
    chunks = exposition(everything(), Health(ready=True, reader_lag=0), openmetrics)
    families = list(parse_openmetrics(b"".join(chunks).decode()))
    assert families
    for family in families:
        assert family.name.startswith("caughtup_")
        assert family.documentation
        assert not family.name.endswith(("_ms", "_milliseconds", "_kb", "_total"))
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            assert sample.value >= 0


def test_lag_is_there_under_kafka_exporters_names_when_asked_for() -> None:
    state = everything()
    assert "kafka_" not in text(state)
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text(state, compatible=True))
        for sample in family.samples
        if sample.name.startswith("kafka_")
    }
    # Offsets up to the log's end, in an open transaction or not, as that exporter counts them; but
    # a partition without a commit has its backlog.
    assert found["kafka_consumergroup_lag", "plain", "clicks", "0"] == 60
    assert found["kafka_consumergroup_lag", "plain", "clicks", "1"] == 80
    assert found["kafka_consumergroup_lag_sum", "plain", "clicks"] == 140
    assert found["kafka_consumergroup_current_offset", "plain", "clicks", "0"] == 40
    assert ("kafka_consumergroup_current_offset", "plain", "clicks", "1") not in found
    assert found["kafka_consumergroup_members", "plain"] == 2


def test_a_chunk_is_never_more_than_a_few_milliseconds_work() -> None:
    state = cluster_state()
    read(state, *(commit(number, 5, group="wide") for number in range(3 * CHUNK_LINES)))
    chunks = list(partition_series(state))
    assert max(chunk.count("\n") for chunk in chunks) <= CHUNK_LINES + 1
    lines = "".join(chunks).splitlines()
    committed = [line for line in lines if line.startswith("caughtup_group_committed_offset{")]
    assert len(set(committed)) == 3 * CHUNK_LINES
