"""Connect groups on ``/metrics``."""

from __future__ import annotations

import pytest

from caughtup.agents.web.metrics import exposition
from caughtup.models.connect.work import written
from caughtup.models.connect_clusters.contradictions import STARTING_MS
from tests.support.connect.clusters import WorkerCluster, settled
from tests.support.connect.playing import GROUP
from tests.support.observability.scraping import scrape


def series(cluster: WorkerCluster, monkeypatch: pytest.MonkeyPatch, after_ms: int = 0):
    monkeypatch.setattr(exposition, "now_ms", lambda: cluster.group.now_ms + after_ms)
    found = scrape(cluster.state)
    return {name: of for name, of in found.items() if name.startswith("caughtup_connect_")}


def test_a_group_at_rest_has_its_figures_and_no_contradiction(monkeypatch: pytest.MonkeyPatch):
    cluster = settled()
    cluster.source_offset("A")
    found = series(cluster, monkeypatch, 5_000)
    assert found["caughtup_connect_generation"] == {(GROUP,): 1}
    assert found["caughtup_connect_workers"] == {(GROUP,): 3}
    assert found["caughtup_connect_unassigned"] == {(GROUP,): 0}
    assert found["caughtup_connect_decisions_total"][GROUP, "match"] == 1
    assert sum(found["caughtup_connect_assigned"].values()) == 5
    assert set(found["caughtup_connect_contradictions"].values()) == {0}
    assert found["caughtup_connect_uneven_seconds"] == {(GROUP,): 0}
    assert found["caughtup_connect_groups_ceased_total"] == {(): 0}
    assert found["caughtup_connect_connector_tasks"] == {(GROUP, "A"): 2, (GROUP, "B"): 1}
    assert found["caughtup_connect_source_offset_age_seconds"] == {(GROUP, "A"): 5}
    absent = ("contradiction", "storm_generations", "delay_ends_timestamp_seconds")
    assert not {f"caughtup_connect_{name}" for name in absent} & found.keys()


def test_a_worker_that_may_be_back_contradicts_nothing_until_its_delay_is_over(
    monkeypatch: pytest.MonkeyPatch,
):
    cluster = settled()
    names = written(cluster.group.owned["W2"])
    cluster.group.leave("W2")
    cluster.round()
    ends_ms = cluster.group.now_ms + 300_000
    found = series(cluster, monkeypatch)
    assert found["caughtup_connect_delay_ends_timestamp_seconds"] == {(GROUP,): ends_ms / 1000}
    assert found["caughtup_connect_unassigned"] == {(GROUP,): len(names)}
    assert found["caughtup_connect_contradictions"][GROUP, "zombie"] == 0
    cluster.round(300_000)
    found = series(cluster, monkeypatch, STARTING_MS + 1)
    assert found["caughtup_connect_contradictions"][GROUP, "zombie"] == len(names)
    connector, _, task = names[-1].rpartition("-")
    named = (GROUP, task, connector, "zombie", "w2:8083")
    assert named in found["caughtup_connect_contradiction"]


def test_a_worker_that_comes_and_goes_is_named(monkeypatch: pytest.MonkeyPatch):
    cluster = settled()
    for _ in range(3):
        cluster.group.leave("W3")
        cluster.round()
        cluster.group.join("W3")
        cluster.round()
    assert series(cluster, monkeypatch)["caughtup_connect_storm_generations"] == {
        (GROUP, "worker", "w3:8083"): 7
    }
