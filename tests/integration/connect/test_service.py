"""The service beside real Connect workers: one that stands still, its work until it is dealt again,
a task that fails, and what the command prints.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.connect.group_log import GroupLog
from caughtup.demo.connect.workers import ConnectWorkers
from caughtup.demo.story.connect.play import file_sink, file_source
from tests.support.service import Ran, Service, caughtup, wait_for

pytestmark = pytest.mark.heavy

MAX_DELAY_MS = 8_000
#: What a scheduler may take, here and in three JVMs, on two cores that others use as well.
SLACK_MS = 5_000

Lines = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def workers(cluster: EmbeddedCluster, make_workers) -> ConnectWorkers:
    """Three workers at rest, with a sink of two tasks and a source of one."""
    found = make_workers(max_delay_ms=MAX_DELAY_MS)
    topic = f"{found.group}-lines"
    create_topics(cluster, {topic: 2})
    written, lines = found.directory / f"{topic}-out", found.directory / f"{topic}-in"
    lines.write_text("".join(f"line {number}\n" for number in range(100)))
    found.start("W1", "W2", "W3")
    found.wait_healthy("W1", "W2", "W3")
    found.configure("A", file_sink(written, topic, tasks=2))
    found.configure("B", file_source(lines, topic))
    return found


@pytest.fixture(scope="module")
def service(cluster: EmbeddedCluster, workers: ConnectWorkers):
    """The service, which found the workers at rest."""
    with Service(cluster) as running:
        yield running


def seen(service: Service, workers: ConnectWorkers, what: str, is_so, seconds=90.0) -> Lines:
    """Wait until the lines of the group are so, and return them."""

    def ask() -> Lines | None:
        lines = service.connect(workers.group)
        return lines if lines.get("group") and is_so(lines) else None

    return wait_for(what, ask, seconds)


def at_rest(lines: Lines) -> bool:
    """Whether three workers have all that is configured, and say that it runs."""
    (group,) = lines["group"]
    return (
        len(lines.get("worker", [])) == 3
        and not lines.get("unassigned")
        and not lines.get("contradiction")
        and "next_rebalance_ms" not in group
        and {one.get("state") for one in lines["connector"]} == {"RUNNING"}
    )


def names(worker: dict[str, Any]) -> list[str]:
    return [*worker["connectors"], *worker["tasks"]]


@pytest.mark.thorough
def test_a_worker_that_stands_still_is_a_zombie_until_its_work_goes_where_it_was_foreseen(
    service: Service, workers: ConnectWorkers, follow
) -> None:
    log: GroupLog = follow(workers)
    lines = seen(service, workers, "the group is at rest", at_rest)
    assert lines["group"][0]["topics"]["config"] == workers.config_topic
    assert sorted(name for one in lines["worker"] for name in names(one)) == [
        "A", "A-0", "A-1", "B", "B-0",
    ]  # fmt: skip
    victim = next(one for one in lines["worker"] if not one["leader"] and names(one))
    stopped = next(name for name in workers.names if victim["client_id"] == name)
    known = len(log.generations())
    workers[stopped].suspend()
    try:
        wait_for("the group goes on without it", lambda: len(log.generations()) > known)
        in_log_ms = log.generations()[known].written_ms
        away = seen(service, workers, "it is a zombie", lambda now: now.get("contradiction"))
        noticed_ms = int(time.time() * 1000)
        print(f"named {noticed_ms - in_log_ms} ms after the record")
        assert noticed_ms - in_log_ms < 1_000 + SLACK_MS
        zombies = away["contradiction"]
        assert {one["contradiction"] for one in zombies} == {"zombie"}
        assert {one["worker"] for one in zombies} == {victim["worker"]}
        assert sorted(one["name"] for one in zombies) == sorted(names(victim))
        assert all(one["waits"] for one in zombies)
        assert service.value("connect_contradictions", group=workers.group, kind="zombie") == 0
        plan = {one["name"]: (one["goes_to"], one["at_ms"]) for one in away["unassigned"]}
        assert sorted(plan) == sorted(names(victim))
        dealt = seen(service, workers, "it is dealt", lambda now: not now.get("unassigned"))
        has = {name: one["worker"] for one in dealt["worker"] for name in names(one)}
        assert {name: has[name] for name in plan} == {name: to for name, (to, _) in plan.items()}
        ((at_ms,),) = ({at for _, at in plan.values()},)
        print(f"dealt {log.generations()[-1].written_ms - at_ms} ms after it was foreseen")
        assert abs(log.generations()[-1].written_ms - at_ms) < SLACK_MS
    finally:
        workers[stopped].resume()
    back = seen(service, workers, "it is back and has its share", at_rest)
    (group,) = back["group"]
    assert [one["outcome"] for one in group["absences"]][:1] == ["late"]
    assert service.value("connect_decisions_total", group=workers.group, result="mismatch") == 0
    undetermined = [one for one in group["history"] if one["result"] == "undetermined"]
    assert undetermined == []


def test_a_task_that_fails_is_named_and_the_command_says_what_the_service_does(
    service: Service, workers: ConnectWorkers, tmp_path: Path
) -> None:
    nowhere = workers.directory / "no such directory" / "file"
    workers.configure("broken", file_sink(nowhere, f"{workers.group}-lines", tasks=1))
    lines = seen(
        service,
        workers,
        "its task has failed",
        lambda now: [one for one in now.get("contradiction", []) if one["name"] == "broken-0"],
    )
    (failed,) = [one for one in lines["contradiction"] if one["name"] == "broken-0"]
    assert failed["contradiction"] == "failed"
    assert failed["why"] == "failed: org.apache.kafka.connect.errors.ConnectException"
    service.wait_value(1, "connect_contradictions", group=workers.group, kind="failed")
    settings = ("--bootstrap-servers", workers._cluster.bootstrap_servers)

    def alike() -> Ran | None:
        """Look at the group as the service does; None if it changed between both looks."""
        ran = caughtup("connect", workers.group, "--json", *settings, directory=tmp_path)
        assert ran.code == 0, ran
        told = service.connect(workers.group)
        asked = caughtup("connect", "--json", "--service", service.url, directory=tmp_path)
        same = [one for one in asked.lines if one["kind"] == "worker"] == told["worker"]
        for kind in ("worker", "unassigned"):
            same &= [one for one in ran.lines if one["kind"] == kind] == told.get(kind, [])
        return ran if same else None

    ran = wait_for("both say the same", alike)
    assert failed["name"] in [one["name"] for one in ran.lines if one["kind"] == "contradiction"]
    assert {one["result"] for one in ran.lines if one["kind"] == "group"} <= {
        "match",
        "undetermined",
    }
