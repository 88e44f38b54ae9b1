"""What workers say, against what their group was told."""

from __future__ import annotations

import pytest

from caughtup.models.connect.work import written
from caughtup.models.connect_clusters.contradictions import STARTING_MS
from tests.support.connect.clusters import WorkerCluster, settled

D_MS = 300_000


def of_w2(cluster: WorkerCluster) -> list[str]:
    return written(cluster.group.owned["W2"])


def owner(cluster: WorkerCluster, name: str) -> str:
    return next(w for w, work in cluster.group.owned.items() if name in written(work))


def test_a_group_at_rest_whose_workers_say_so_contradicts_nothing():
    cluster = settled()
    assert cluster.contradictions(STARTING_MS + 1) == []
    assert [one["result"] for one in cluster.lines("group")] == ["match"]
    assert cluster.lines("group")[0]["topics"]["config"] == "connect-configs"


def test_a_task_that_failed_under_a_running_connector_is_named_at_once_without_what_it_failed_of():
    cluster = settled()
    worker = owner(cluster, "A-1")
    trace = "org.apache.kafka.connect.errors.ConnectException: password=hunter2\n\tat a.b.C"
    cluster.status("A-1", "FAILED", worker, trace=trace)
    (one,) = cluster.lines("contradiction")
    assert (one["contradiction"], one["connector"], one["task"]) == ("failed", "A", 1)
    assert one["worker"] == f"{worker.lower()}:8083"
    assert one["why"] == "failed: org.apache.kafka.connect.errors.ConnectException"
    assert "hunter2" not in str(list(cluster.state.connect.topics.values()))


def test_a_worker_that_was_expelled_while_its_tasks_run_is_a_zombie_from_that_generation_on():
    cluster = settled()
    names = of_w2(cluster)
    cluster.group.leave("W2")
    cluster.round()
    found = cluster.lines("contradiction")
    assert [(one["contradiction"], one["name"], one["worker"]) for one in found] == [
        ("zombie", name, "w2:8083") for name in names
    ]
    assert all(one["waits"] for one in found)  # it may be back: no alarm yet
    cluster.round(D_MS)
    assert all(one["waits"] for one in cluster.lines("contradiction"))
    late = cluster.lines("contradiction", STARTING_MS + 1)
    assert {(one["contradiction"], one["waits"]) for one in late} == {("zombie", False)}
    cluster.run()
    assert cluster.contradictions(STARTING_MS + 1) == []


def test_a_worker_that_writes_after_another_took_over_is_a_zombie_whatever_it_says():
    cluster = settled()
    generation, names = cluster.group.generation, of_w2(cluster)
    cluster.group.leave("W2")
    cluster.round()
    cluster.round(D_MS)
    cluster.run()
    cluster.status(names[-1], "FAILED", "W2", generation)
    (one,) = cluster.lines("contradiction")
    assert (one["contradiction"], one["name"], one["waits"]) == ("zombie", names[-1], False)
    cluster.run()
    assert cluster.contradictions() == []


def test_a_restart_that_comes_back_in_time_contradicts_nothing():
    cluster = settled()
    names = of_w2(cluster)
    for name in names:
        cluster.status(name, "UNASSIGNED", "W2")
    cluster.group.leave("W2")
    cluster.round()
    assert cluster.contradictions() == []
    assert [one["name"] for one in cluster.lines("unassigned")] == names
    cluster.group.join("W2")
    cluster.round(100_000)
    assert {one["goes_to"] for one in cluster.lines("unassigned")} == {"w2:8083"}
    assert {one["at_ms"] for one in cluster.lines("unassigned")} == {cluster.group.now_ms + 200_000}
    cluster.round(200_000)
    cluster.run()
    assert cluster.contradictions() == []


def test_what_nobody_has_after_its_delay_is_named():
    cluster = settled()
    names = of_w2(cluster)
    for name in names:
        cluster.status(name, "UNASSIGNED", "W2")
    cluster.group.leave("W2")
    cluster.round()
    assert cluster.contradictions(D_MS) == []
    assert cluster.contradictions(D_MS + 10_000) == [("unassigned", name, "") for name in names]


def test_a_task_that_never_says_that_it_runs_is_named_once_it_had_time_to_start():
    cluster = WorkerCluster(settled().group)
    cluster.configure("A", 1)
    cluster.group.connectors = {"A": 1}
    cluster.round()
    cluster.run()
    worker = owner(cluster, "A-0")
    cluster.status("A-0", "UNASSIGNED", worker)
    assert cluster.contradictions(STARTING_MS + 1) == [
        ("not_running", "A-0", f"{worker.lower()}:8083")
    ]


def test_a_status_of_a_generation_that_is_not_read_yet_contradicts_nothing():
    cluster = settled()
    (name, *_) = of_w2(cluster)
    # Its worker was assigned it long ago, and stops it for a generation that is on its way.
    later = 2 * STARTING_MS
    cluster.group.now_ms += later
    cluster.status(name, "UNASSIGNED", "W2")
    assert cluster.contradictions() == []
    assert cluster.contradictions(STARTING_MS) == []
    assert cluster.contradictions(STARTING_MS + 1_000) == [("not_running", name, "w2:8083")]


@pytest.mark.parametrize("ahead_ms", [60_000, 86_400_000])
def test_a_workers_clock_that_is_ahead_hides_nothing(ahead_ms: int):
    cluster = settled()
    (name, *_) = of_w2(cluster)
    cluster.group.now_ms += ahead_ms
    cluster.status(name, "UNASSIGNED", "W2")
    cluster.group.now_ms -= ahead_ms
    assert cluster.contradictions(STARTING_MS + 1_000) == [("not_running", name, "w2:8083")]


def test_a_connector_without_tasks_is_named_unless_it_is_stopped():
    cluster = settled()
    cluster.configure("C", 0)
    cluster.round()
    cluster.run()
    assert cluster.contradictions() == []
    late = STARTING_MS + 1_000
    assert ("fewer_tasks", "C", "") in cluster.contradictions(late)
    cluster.config("target-state-C", {"state": "PAUSED", "state.v2": "STOPPED"})
    assert cluster.contradictions(late) == []


def test_tasks_whose_configurations_a_compacted_topic_has_lost_are_not_counted():
    cluster = settled()
    cluster.config("connector-C", {"properties": {"tasks.max": "2"}})
    cluster.config("task-C-1", {"properties": {}})
    cluster.config("commit-C", {"tasks": 2})
    cluster.group.connectors["C"] = 0
    cluster.round()
    cluster.run()
    assert cluster.lines("group")[0]["result"] == "match"
    (one,) = cluster.lines("contradiction", STARTING_MS + 1_000)
    assert one["why"] == "the config topic lacks configurations of its tasks"


def test_statuses_of_deleted_connectors_are_nobodys():
    cluster = settled()
    cluster.status("gone", "RUNNING", "W9", 1)
    cluster.status("gone-0", "FAILED", "W9", 1)
    assert cluster.contradictions(D_MS) == []
