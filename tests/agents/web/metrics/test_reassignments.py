"""Metrics of reassignments, as a Prometheus server parses them."""

from __future__ import annotations

import math

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from caughtup.agents.process.health import Health
from caughtup.agents.web.metrics import exposition as metrics
from caughtup.agents.web.metrics.families import ExpositionSettings
from caughtup.agents.web.metrics.reassignments import PHASES
from caughtup.models.ids import TopicPartition
from caughtup.models.records.reassignments import offsets_remaining
from caughtup.models.verdicts import OUTCOMES, REASSIGNMENTS
from tests.support.observability.scraping import Labels, scrape, text
from tests.support.reassignments.reassigning import (
    APART_MS,
    ORPHANED_MS,
    SEEN_MS,
    assess,
    cluster_observation,
    join,
    ongoing_observation,
    reassigning,
)
from tests.support.states import HOSTILE, cluster_state

FINE, DEAD, NEW = ("fine", "0"), ("dead", "0"), ("new", "0")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "now_ms", lambda: SEEN_MS)


@pytest.fixture(scope="module")
def series() -> dict[str, dict[Labels, float]]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(metrics, "now_ms", lambda: SEEN_MS)
        return scrape(reassigning())


def test_partitions_in_reassignment_are_counted_by_phase(
    series: dict[str, dict[Labels, float]],
) -> None:
    partitions = series["caughtup_reassignment_partitions"]
    assert partitions == {(phase,): 3 if phase == "A" else 0 for phase in PHASES}


def test_each_has_one_verdict_of_all_and_its_cause_if_there_is_one(
    series: dict[str, dict[Labels, float]],
) -> None:
    status = series["caughtup_reassignment_status"]
    assert status.keys() == {
        (*which, verdict.replace(" ", "_"))
        for which in (FINE, DEAD, NEW)
        for verdict in REASSIGNMENTS.words
    }
    assert {labels for labels, holds in status.items() if holds} == {
        (*FINE, "moving"),
        (*DEAD, "dead_target"),
        (*NEW, "measuring"),
    }
    assert series["caughtup_reassignment_cause"] == {(*DEAD, "destination-broker-down"): 1}


def test_a_setting_brings_back_the_spaces_in_statuses() -> None:
    told = scrape(reassigning(), settings=ExpositionSettings(legacy_status_values=True))
    status = told["caughtup_reassignment_status"]
    assert {which[-1] for which in status} == set(REASSIGNMENTS.words)
    assert {which[-1] for which in status if status[which]} >= {"dead target"}


def test_figures_are_there_where_they_are_known_and_absent_elsewhere(
    series: dict[str, dict[Labels, float]],
) -> None:
    assert series["caughtup_reassignment_offsets_remaining"] == {FINE: 61_000, NEW: 99_990}
    assert series["caughtup_reassignment_bytes_remaining"] == {FINE: 6_100_000, NEW: 9_999_000}
    assert series["caughtup_reassignment_rate_bytes_per_second"] == {FINE: 20_000}
    eta = series["caughtup_reassignment_eta_seconds"]
    assert eta == {FINE: pytest.approx(305, rel=0.1), DEAD: math.inf}
    assert series["caughtup_reassignment_age_seconds"] == {FINE: 195, DEAD: 195, NEW: 0}
    assert series["caughtup_reassignment_idle_seconds"] == {FINE: 0, DEAD: 195, NEW: 0}


def test_ends_are_counted_by_how_from_zero_on(series: dict[str, dict[Labels, float]]) -> None:
    found = {(outcome,): 0.0 for outcome in OUTCOMES.words} | {("completed",): 1, ("vanished",): 1}
    assert series["caughtup_reassignments_ended_total"] == found


def test_replicas_that_join_the_isr_are_counted() -> None:
    state = reassigning()
    assert scrape(state)["caughtup_reassignment_isr_joins_total"][FINE] == 0
    join(state)
    assert scrape(state)["caughtup_reassignment_isr_joins_total"][FINE] == 1


def test_throttles_that_are_left_over_are_named_once_it_is_certain(
    series: dict[str, dict[Labels, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "caughtup_throttle_orphaned" not in series
    monkeypatch.setattr(metrics, "now_ms", lambda: ORPHANED_MS)
    orphaned = scrape(reassigning())["caughtup_throttle_orphaned"]
    assert orphaned == {("broker", "6"): 1, ("topic", "left"): 1}


def test_an_observation_that_lacked_something_is_partial_and_before_the_first_nothing_is_told() -> (
    None
):
    state = cluster_state()
    assert "caughtup_reassignments_partial" not in scrape(state)
    state.reassignments.apply_cluster(cluster_observation(SEEN_MS))
    assert scrape(state)["caughtup_reassignments_partial"] == {(): 0}
    state.reassignments.apply_cluster(cluster_observation(SEEN_MS, missing=("the quorum",)))
    assert scrape(state)["caughtup_reassignments_partial"] == {(): 1}


def test_a_reassignment_that_has_just_begun_has_no_verdict_of_the_one_before_it() -> None:
    state = reassigning()
    dead = TopicPartition(*DEAD[:1], 0)
    state.reassignments.end(dead, (1,), (1,), SEEN_MS)
    state.reassignments.apply(ongoing_observation(dead, 2, SEEN_MS + APART_MS, 0))
    assert not any(labels[:2] == DEAD for labels in scrape(state)["caughtup_reassignment_status"])


def test_a_reassignment_that_takes_longer_than_it_may_is_slow() -> None:
    state = reassigning()
    assess(state, SEEN_MS, budget_seconds=60)
    assert scrape(state)["caughtup_reassignment_status"][*FINE, "slow"] == 1
    assess(state, SEEN_MS, budget_seconds=3_600)
    assert scrape(state)["caughtup_reassignment_status"][*FINE, "moving"] == 1


def test_names_are_escaped_and_openmetrics_is_valid() -> None:
    state = reassigning()
    state.reassignments.apply(ongoing_observation(TopicPartition(HOSTILE, 0), 2, SEEN_MS, 5))
    assess(state, SEEN_MS)
    assert (HOSTILE, "0") in scrape(state)["caughtup_reassignment_age_seconds"]
    families = parse_openmetrics(text(state, Health(ready=True, reader_lag=0), openmetrics=True))
    assert "caughtup_reassignment_status" in {family.name for family in families}


def test_they_are_told_before_the_log_of_commits_is_read() -> None:
    assert FINE in scrape(reassigning(), Health())["caughtup_reassignment_age_seconds"]


def test_offsets_remaining_are_the_same_on_the_page_in_metrics_and_in_the_command(
    series: dict[str, dict[Labels, float]],
) -> None:
    state = reassigning()
    tracker, watch = state.reassignments, state.reassignment_watch
    observed, on_the_page, in_the_command = {}, {}, {}
    for one in watch.worst_first(tracker):
        labels = (one.topic, str(one.partition))
        observed[labels] = offsets_remaining(tracker.ongoing[one].latest)
        on_the_page[labels] = watch.detailed(tracker, one, SEEN_MS).offsets_remaining
        in_the_command[labels] = watch.row(tracker, one, SEEN_MS).offsets_remaining
    assert on_the_page == in_the_command == observed
    known = {labels: offsets for labels, offsets in observed.items() if offsets is not None}
    assert series["caughtup_reassignment_offsets_remaining"] == known
