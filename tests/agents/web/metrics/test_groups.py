"""The series of groups' partitions: lag in seconds, rates, retention; kafka_exporter's names."""

from __future__ import annotations

import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from caughtup.agents.process.health import Health
from caughtup.agents.web.metrics.exposition import exposition
from caughtup.agents.web.metrics.group_labels import SLICE
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from tests.support.groups.records import START_MS, commit
from tests.support.observability.scraping import COMPATIBLE, scrape, text
from tests.support.states import (
    GAINING,
    JUDGED_MS,
    KEEPING_UP,
    NEVER_COMMITTED,
    STOPPED,
    cluster_state,
    everything,
    judged,
    read,
)


def test_how_groups_fare_is_told_in_seconds_rates_and_verdicts() -> None:
    found = scrape(judged())
    gaining, stopped = (GAINING, "clicks", "0"), (STOPPED, "clicks", "1")
    seconds = found["caughtup_group_lag_seconds"]
    assert seconds[stopped] == pytest.approx(49 * 60, abs=60)
    assert seconds[STOPPED, "clicks", "0"] == 0
    velocity = found["caughtup_group_lag_velocity"]
    assert velocity[gaining] == pytest.approx(-50 / 60)
    assert velocity[stopped] == pytest.approx(100 / 60)
    assert (STOPPED, "clicks", "0") not in velocity
    eta = found["caughtup_group_catchup_eta_seconds"]
    assert eta[gaining] == pytest.approx((4_000 - 50 * 59) / (50 / 60))
    assert eta[stopped] == math.inf
    assert eta[KEEPING_UP, "clicks", "0"] == 0
    never = (NEVER_COMMITTED, "clicks", "1")
    assert never not in velocity
    assert never not in eta


def test_the_last_commit_and_the_retention_used_are_told_of_what_was_committed() -> None:
    found = scrape(judged())
    last = found["caughtup_group_last_commit_timestamp_seconds"]
    assert last[STOPPED, "clicks", "1"] == START_MS / 1000 + 600
    assert last[KEEPING_UP, "clicks", "0"] == JUDGED_MS / 1000
    used = found["caughtup_group_retention_used_ratio"]
    assert used[STOPPED, "clicks", "1"] == pytest.approx(4_900 / 5_900)
    assert used[KEEPING_UP, "clicks", "0"] == 0
    never = (NEVER_COMMITTED, "clicks", "1")
    assert never in found["caughtup_group_has_commit"]
    assert never not in last
    assert never not in used


def test_a_group_whose_unread_records_were_deleted_has_used_more_than_its_retention() -> None:
    state = judged()
    ends = EndOffsets(2_000, 5_900, 5_900, JUDGED_MS)
    state.apply_ends(TopicPartition("clicks", 1), ends)
    used = scrape(state)["caughtup_group_retention_used_ratio"]
    assert used[STOPPED, "clicks", "1"] == pytest.approx(4_900 / 3_900)


def test_lag_is_there_under_kafka_exporters_names_when_asked_for() -> None:
    state = everything()
    assert "kafka_" not in text(state)
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text(state, others=COMPATIBLE))
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


def test_a_piece_is_never_more_than_a_few_hundred_lines() -> None:
    state = cluster_state()
    read(state, *(commit(number, 5, group="wide") for number in range(2 * SLICE + 1)))
    pieces = list(exposition(state, Health(ready=True)))
    assert max(piece.count(b"\n") for piece in pieces) == SLICE
    lines = b"".join(pieces).splitlines()
    committed = [line for line in lines if line.startswith(b"caughtup_group_committed_offset{")]
    assert len(set(committed)) == 2 * SLICE + 1


def test_the_start_of_the_log_is_told_beside_its_ends() -> None:
    found = scrape(everything())
    assert found["caughtup_partition_start_offset"]["clicks", "0"] == 20
    ends = found["caughtup_partition_end_offset"]
    assert {label[:2] for label in ends} == found["caughtup_partition_start_offset"].keys()
