"""``/metrics``: names, labels and figures as a Prometheus server parses them."""

from __future__ import annotations

import platform

import pytest
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

import caughtup
from caughtup.agents.process.health import EVENT_LOOP, OFFSETS, Health
from caughtup.agents.web.metrics import exposition as metrics
from caughtup.agents.web.metrics import groups
from caughtup.agents.web.metrics.copies import TASK_FAMILIES
from caughtup.agents.web.metrics.families import ExpositionSettings, Scrape
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.metrics.partitions import PARTITION_FAMILIES
from caughtup.agents.web.metrics.reassignments import REASSIGNMENT_FAMILIES
from caughtup.agents.web.metrics.service import process_families
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.state.cluster import ClusterState
from caughtup.models.verdicts import LAG
from caughtup.models.watching import Objectives, Watching, WatchPatterns
from tests.support.groups.records import GROUP, START_MS, commit, group_tombstone
from tests.support.groups.streams import WARMING, Member, generation, process
from tests.support.observability.scraping import COMPATIBLE, Labels, scrape, text
from tests.support.reassignments.reassigning import reassigning
from tests.support.states import (
    GAINING,
    HOSTILE,
    KEEPING_UP,
    NEVER_COMMITTED,
    NOW_MS,
    STOPPED,
    cluster_state,
    everything,
    judged,
    read,
)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "now_ms", lambda: NOW_MS)


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


def test_of_instances_that_share_the_groups_each_has_the_logs_that_its_groups_read() -> None:
    state = everything()
    state.apply_ends(TopicPartition("of-others", 0), EndOffsets(0, 5, 5, NOW_MS))
    topics = {topic for topic, *_ in scrape(state)["caughtup_partition_end_offset"]}
    assert topics > {"of-others", "clicks"}
    state.held.numbers = frozenset({0})
    of_own = {topic for topic, *_ in scrape(state)["caughtup_partition_end_offset"]}
    assert of_own == topics - {"of-others"}


def test_a_group_has_one_status_of_all_and_none_before_it_was_judged(
    series: dict[str, dict[Labels, float]],
) -> None:
    assert "caughtup_group_status" not in series
    assert "caughtup_group_lag_seconds" not in series
    status = scrape(judged())["caughtup_group_status"]
    groups = {group for group, _ in status}
    assert groups == {STOPPED, KEEPING_UP, GAINING, NEVER_COMMITTED}
    assert status.keys() == {(group, verdict) for group in groups for verdict in LAG.words}
    assert {group: verdict for (group, verdict), holds in status.items() if holds} == {
        STOPPED: "stopped",
        KEEPING_UP: "ok",
        GAINING: "slow",
        NEVER_COMMITTED: "stopped",
    }


def test_members_are_counted_with_the_kind_of_their_group(
    series: dict[str, dict[Labels, float]],
) -> None:
    assert series["caughtup_group_members"] == {
        (GROUP, "streams"): 2,
        ("plain", "classic"): 2,
        ("sharing", "share"): 1,
    }


def test_a_share_group_has_its_start_offsets(series: dict[str, dict[Labels, float]]) -> None:
    assert series["caughtup_group_share_start_offset"] == {("sharing", "clicks", "0"): 30}


def test_where_groups_come_from(series: dict[str, dict[Labels, float]]) -> None:
    assert series["caughtup_source"] == {("ask",): 0, ("log",): 1}


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
        (GROUP, "consistent"): 0,
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


def test_the_clusters_name_is_a_label_of_one_series_alone() -> None:
    assert "caughtup_cluster_info" not in scrape(cluster_state())
    named = scrape(cluster_state(), Health(cluster_name=HOSTILE))
    assert named["caughtup_cluster_info"] == {(HOSTILE,): 1}


def test_groups_that_are_left_out_are_counted_by_why(
    series: dict[str, dict[Labels, float]],
) -> None:
    assert series["caughtup_groups_limited"] == {(): 0}
    assert series["caughtup_groups_not_watched"] == {("ignored",): 0, ("folded",): 0}
    state = ClusterState("cluster-1", {}, Watching(WatchPatterns(ignored_groups=("p.*",))))
    read(state, commit(0, 1, group="plain"), commit(0, 1, group="payments"), commit(0, 1))
    counted = scrape(state)
    assert counted["caughtup_groups_not_watched"] == {("ignored",): 2, ("folded",): 0}
    assert {group for group, _, _ in counted["caughtup_group_has_commit"]} == {GROUP}


def test_a_groups_objective_is_told_where_it_has_one() -> None:
    objectives = Objectives([("pay.*", 1.5), ("p.*", 60)])
    state = cluster_state()
    read(state, *(commit(0, 1, group=group) for group in ("payments", "plain", "orders")))
    told = scrape(state, settings=ExpositionSettings(objectives=objectives))
    found = told["caughtup_group_lag_objective_seconds"]
    assert found == {("payments",): 1.5, ("plain",): 60}
    assert "caughtup_group_lag_objective_seconds" not in scrape(state)


def test_the_process_tells_its_release_and_how_its_parts_get_on() -> None:
    health = Health(late_seconds=1.5)
    for part in (EVENT_LOOP, OFFSETS):
        health.pulses.beat(part)
    for _ in range(3):
        health.pulses.tick()
    told = scrape(cluster_state(), health)
    assert told["caughtup_last_turn_age_seconds"] == {
        ("event_loop",): 0.5,
        ("offsets_reader",): 0.5,
    }
    assert told["caughtup_event_loop_late_seconds_total"] == {(): 1.5}
    assert told["caughtup_build_info"] == {(platform.python_version(), caughtup.__version__): 1}


def test_what_every_process_has_is_under_the_names_that_others_have() -> None:
    written = b"".join(
        piece
        for family in process_families()
        for piece in family.text(
            Scrape(cluster_state(), Health(), GroupLabels(), NOW_MS), openmetrics=False
        )
    ).decode()
    told = {family.name: family for family in text_string_to_metric_families(written)}
    assert {
        "process_cpu_seconds",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_open_fds",
    } <= told.keys()
    assert told["process_cpu_seconds"].type == "counter"
    assert "{" not in written
    assert told["process_resident_memory_bytes"].samples[0].value > 1 << 20


def test_the_service_tells_of_itself(series: dict[str, dict[Labels, float]]) -> None:
    assert series["caughtup_offsets_reader_ready"] == {(): 1}
    assert series["caughtup_offsets_reader_lag_records"] == {(): 0}
    assert series["caughtup_offsets_records_total"] == {("1",): 5, ("2",): 2, ("15",): 1}
    assert series["caughtup_offsets_records_skipped_total"] == {("15",): 1}
    assert sum(series["caughtup_decode_errors_total"].values()) == 1
    assert series["caughtup_snapshot_age_seconds"] == {("end_offsets",): 2.5}
    assert series["caughtup_probe_errors_total"] == {
        ("assignors",): 0,
        ("checkpoints",): 0,
        ("connect",): 0,
        ("end_offsets",): 0,
        ("group",): 0,
        ("lag",): 0,
        ("offsets",): 0,
        ("otlp",): 0,
        ("publish",): 0,
        ("reassignments",): 1,
        ("rebalances",): 0,
        ("share_groups",): 0,
        ("topics",): 0,
        ("transactions",): 0,
    }


def test_before_its_own_first_look_end_offsets_are_as_old_as_they_were_read_back() -> None:
    state, health = cluster_state(), Health(ready=True)
    assert "caughtup_snapshot_age_seconds" not in scrape(state, health)
    for partition, seen_ms in enumerate((NOW_MS - 9_000, NOW_MS - 7_500)):
        state.apply_ends(TopicPartition("clicks", partition), EndOffsets(0, 5, 5, seen_ms, 5))
    assert scrape(state, health)["caughtup_snapshot_age_seconds"] == {("end_offsets",): 7.5}
    health.succeeded("end_offsets", NOW_MS)
    assert scrape(state, health)["caughtup_snapshot_age_seconds"] == {("end_offsets",): 0}


def test_groups_are_told_of_only_once_the_log_was_read_to_its_end() -> None:
    """Half a log would be taken for groups that lag or vanished."""
    found = scrape(everything(), Health())
    assert found["caughtup_offsets_reader_ready"] == {(): 0}
    assert "caughtup_offsets_reader_lag_records" not in found
    assert "caughtup_reassignment_partitions" in found
    assert not {name for name in found if "group_" in name or "task" in name or "_end_" in name}


def test_an_empty_cluster_has_no_series_of_groups() -> None:
    found = scrape(cluster_state())
    assert not {name for name in found if "group_" in name or "task" in name}


def test_the_series_of_an_application_go_with_it() -> None:
    state = everything()
    read(state, group_tombstone())
    found = scrape(state)
    assert "caughtup_task_lag_records" not in found
    assert found["caughtup_group_members"] == {("plain", "classic"): 2, ("sharing", "share"): 1}


def test_a_hostile_name_is_a_label_and_nothing_else(
    series: dict[str, dict[Labels, float]],
) -> None:
    assert series["caughtup_group_lag_records"][HOSTILE, "clicks", "0"] == 70
    benign = everything(hostile="benign")
    assert scrape(benign).keys() == series.keys()


def test_a_threads_hostile_name_is_a_label_too() -> None:
    state = cluster_state()
    read(state, generation(1, Member(HOSTILE, 1, sums={"0_0": 5}, active=("0_0",)), *WARMING[1:]))
    assert list(state.decide(START_MS + 20_000))
    assert scrape(state)["caughtup_group_members"] == {(GROUP, "streams"): 2}


def test_every_name_has_our_prefix_a_base_unit_and_total_on_counters_only() -> None:
    families = [
        family
        for state in (everything(), judged())
        for family in parse_openmetrics(text(state, openmetrics=True))
    ]
    assert families
    for family in families:
        assert family.name.startswith("caughtup_")
        assert family.documentation
        assert not family.name.endswith(("_ms", "_milliseconds", "_kb", "_total"))
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            assert sample.value >= 0 or sample.name == "caughtup_group_lag_velocity"


def test_key_types_that_kafka_does_not_know_are_one_series_however_many_there_are() -> None:
    state = cluster_state()
    read(state, commit(0, 1), *((number.to_bytes(2), b"?") for number in range(1_000, 1_500)))
    series = scrape(state)
    assert series["caughtup_offsets_records_total"] == {("1",): 1, ("other",): 500}
    assert series["caughtup_offsets_records_skipped_total"] == {("other",): 500}


def test_records_that_were_set_aside_are_counted_by_topic_and_reason() -> None:
    state = cluster_state()
    for group in (b"orders", b"others"):
        state.set_aside.add("caughtup-movements", group, "too_large", "9 bytes", NOW_MS)
    counted = scrape(state)["caughtup_records_set_aside_total"]
    assert counted == {("caughtup-movements", "too_large"): 2}


def sections(written: str) -> dict[str, str]:
    """The text of each family, by its name."""
    parts = written.removesuffix("# EOF\n").split("# HELP ")[1:]
    return {part.split(" ", 1)[0]: f"# HELP {part}" for part in parts}


@pytest.mark.parametrize("openmetrics", [False, True])
def test_what_is_few_is_written_byte_for_byte_as_the_library_writes_it(openmetrics: bool) -> None:
    """So scrapers and people's scripts see no difference in who wrote a line."""
    parse, encode = (
        (parse_openmetrics, generate_openmetrics)
        if openmetrics
        else (text_string_to_metric_families, generate_latest)
    )
    many = (*groups.GROUP_FAMILIES, *groups.GROUP_TOTALS, *PARTITION_FAMILIES)
    many += (*TASK_FAMILIES, *REASSIGNMENT_FAMILIES)
    health = Health("the name", ready=True, reader_lag=12_345_678, polled_ms=NOW_MS)
    health.topic_problems = {("caughtup-lag", "partitions"): "2 partitions"}
    health.leaderless_partitions = 3
    health.pulses.beat(EVENT_LOOP)
    health.pulses.tick()
    options = {
        "openmetrics": openmetrics,
        "settings": ExpositionSettings(objectives=Objectives([(".*", 60)])),
    }
    for state in (everything(), judged(), reassigning()):
        if state.transactions.observed_ms is None:
            state.transactions.apply((), NOW_MS)
        state.faults.note("metrics", HOSTILE, RecursionError(), NOW_MS)
        state.refused.refuse("lag", b"key", "bad_json", "none", NOW_MS)
        written = sections(text(state, health, **options))
        assert len(written) == len(metrics.FAMILIES)
        again: dict[str, str] = {}
        for family in parse(text(state, health, **options)):
            registry = CollectorRegistry()
            registry.register(Metrics([family]))
            again |= sections(encode(registry).decode())
        for name in written.keys() - {family.name for family in many}:
            assert written[name] == again[name]


class Metrics:
    """What the library encodes: families that are there already."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def test_help_needs_no_escaping() -> None:
    for family in (*metrics.FAMILIES, *COMPATIBLE):
        assert not set(family.documentation) & set('\\"\n')
