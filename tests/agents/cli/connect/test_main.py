"""``caughtup connect``: what is printed, for people and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from caughtup.agents.cli.connect import main
from caughtup.models.connect.work import written
from caughtup.models.shown.connect import connect_lines
from caughtup.models.shown.connect_lines import Line
from tests.support.connect.clusters import WorkerCluster, settled
from tests.support.connect.playing import GROUP


@pytest.fixture
def bounced(monkeypatch: pytest.MonkeyPatch) -> WorkerCluster:
    """W2 went and came back in time, to a delay that still runs for 200 s."""
    cluster = settled()
    for name in written(cluster.group.owned["W2"]):
        cluster.status(name, "UNASSIGNED", "W2")
    cluster.group.leave("W2")
    cluster.round()
    cluster.group.join("W2")
    cluster.round(100_000)
    cluster.status("A-0", "FAILED", "W1" if "A-0" in written(cluster.group.owned["W1"]) else "W3")
    monkeypatch.setattr(main, "now_ms", lambda: cluster.group.now_ms)
    return cluster


def told(cluster: WorkerCluster) -> list[Line]:
    """Return the lines of all Connect groups."""
    groups, now_ms = sorted(cluster.state.connect.groups), cluster.group.now_ms
    return [one for group in groups for one in connect_lines(cluster.state, group, now_ms)]


def lines(cluster: WorkerCluster) -> list[dict[str, Any]]:
    return [json.loads(line) for line in main.output_lines(told(cluster), [GROUP], json=True)]


def test_json_has_the_contract_s_fields_of_workers_and_of_what_nobody_has(bounced: WorkerCluster):
    group, workers = bounced.group, [one for one in lines(bounced) if one["kind"] == "worker"]
    assert [one["worker"] for one in workers] == ["w1:8083", "w2:8083", "w3:8083"]
    first = workers[0]
    assert {
        name: first[name]
        for name in ("group", "generation", "protocol", "leader", "url", "revoked", "delay_ms")
    } == {
        "group": GROUP,
        "generation": 3,
        "protocol": "sessioned",
        "leader": True,
        "url": "http://w1:8083/",
        "revoked": [],
        "delay_ms": 200_000,
    }
    assert first["reassign_at_ms"] == group.now_ms + 200_000
    assert first["connectors"] + first["tasks"] == written(group.owned["W1"])
    unassigned = [one for one in lines(bounced) if one["kind"] == "unassigned"]
    assert unassigned
    for one in unassigned:
        assert one["group"] == GROUP
        assert one["since_ms"] == group.now_ms - 100_000
        assert (one["goes_to"], one["at_ms"]) == ("w2:8083", group.now_ms + 200_000)


def test_a_person_reads_the_same_and_the_worst_first(bounced: WorkerCluster):
    text = "\n".join(main.output_lines(told(bounced), ["connect-*"], json=False))
    assert text.startswith(
        "connect-cluster, generation 3 (sessioned), compared with Kafka's assignor: match\n"
    )
    assert "a delay runs (waiting); the next rebalance is due in 200 s" in text
    assert "w2:8083 left 100 s ago: in_time" in text
    at = [text.index(heading) for heading in ("CONTRADICTION", "UNASSIGNED", "LEADER", "TYPE")]
    assert at == sorted(at)
    assert "failed" in text


def test_a_name_that_a_terminal_would_obey_is_escaped(bounced: WorkerCluster):
    bounced.configure("\x1b[2Jx", 1)
    bounced.round()
    assert "\x1b" not in "\n".join(main.output_lines(told(bounced), [], json=False))


def test_groups_that_are_not_asked_for_are_not_shown(bounced: WorkerCluster):
    assert list(main.output_lines(told(bounced), ["other"], json=True)) == []
