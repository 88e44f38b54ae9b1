"""The series of groups' partitions from columns against those made one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from caughtup.agents.process.health import Health
from caughtup.agents.web.metrics import exposition as metrics
from caughtup.agents.web.metrics import group_labels
from caughtup.agents.web.metrics.compatible.kafka_exporter import KAFKA_EXPORTER_FAMILIES
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.models.state.cluster import ClusterState
from tests.support.changes import Change, changes
from tests.support.groups.records import START_MS
from tests.support.plain_scrape import plain_lag_sums, plain_lines
from tests.support.states import cluster_state, judged

#: A group's partitions are more than a slice, and so are those of several groups.
SLICE = 5


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_labels, "SLICE", SLICE)
    monkeypatch.setattr(metrics, "now_ms", lambda: START_MS)


def pieces(state: ClusterState, labels: GroupLabels) -> Iterator[bytes]:
    return metrics.exposition(state, Health(ready=True), labels, others=KAFKA_EXPORTER_FAMILIES)


def of_partitions(text: bytes) -> list[str]:
    """The lines of groups' partitions."""
    lines = text.decode().split("\n")
    found = [line for line in lines if ",partition=" in line and "group=" in line]
    return [line for line in found if not line.startswith("#")]


same_fixture = settings(
    print_blob=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@same_fixture
@given(changes)
def test_every_scrape_has_the_lines_that_are_made_one_by_one(made: list[Change]) -> None:
    state, labels = cluster_state(), GroupLabels()
    for change in made:
        change(state)
        text = b"".join(pieces(state, labels))
        assert of_partitions(text) == plain_lines(state)
        sums = [
            line
            for line in text.decode().split("\n")
            if line.startswith("kafka_consumergroup_lag_sum{")
        ]
        assert sorted(sums) == sorted(plain_lag_sums(state))
        assert not state.faults.totals


@same_fixture
@given(changes, changes)
def test_no_series_comes_twice_whatever_changes_between_two_pieces(
    before: list[Change], meanwhile: list[Change]
) -> None:
    state, labels = cluster_state(), GroupLabels()
    for change in before:
        change(state)
    list(pieces(state, labels))
    waiting, text = iter(meanwhile * 20), b""
    for piece in pieces(state, labels):
        text += piece
        next(waiting, lambda _: None)(state)
    series = [line.rpartition(" ")[0] for line in of_partitions(text)]
    assert len(set(series)) == len(series)
    assert of_partitions(b"".join(pieces(state, labels))) == plain_lines(state)
    assert not state.faults.totals


def test_what_a_first_scrape_found_is_kept_for_the_next_one() -> None:
    labels = GroupLabels()
    list(pieces(judged(), labels))
    assert len(labels) == len(judged().group_names())
