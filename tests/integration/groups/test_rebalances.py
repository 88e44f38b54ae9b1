"""Rebalances of real consumer groups, each staged: the service names its cause within five seconds."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewPartitions

from caughtup.agents.main import main
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.conftest import MakeTopic
from tests.support.groups.member_process import MemberProcess, records_flow
from tests.support.service import Service, wait_for

CLASSIC: dict[str, object] = {
    "session_timeout_ms": 6_000,
    "max_poll_interval_ms": 300_000,
    "heartbeat_interval_ms": 500,
}
CONSUMER: dict[str, object] = {"group_protocol": "consumer", "max_poll_interval_ms": 300_000}
PROTOCOLS = {"classic": CLASSIC, "consumer": CONSUMER}
#: How soon (s) after a rebalance the service has to name its cause.
SOON = 5.0


class Watched:
    """A group under the service's eyes."""

    def __init__(self, cluster: EmbeddedCluster, service: Service, group: str) -> None:
        self.cluster, self.service, self.group = cluster, service, group

    def member(self, name: str, topics: list[str], **config: object) -> MemberProcess:
        return MemberProcess(self.cluster, self.group, topics, client_id=name, **config)

    def rebalances(self) -> list[dict[str, Any]]:
        """Return the rebalances that the page's view has, the newest first."""
        with urllib.request.urlopen(
            f"{self.service.url}api/view?group={self.group}", timeout=30
        ) as got:
            found: list[dict[str, Any]] = json.loads(got.read())["rebalances"]
        return found

    def settled(self, members: int) -> None:
        """Wait until the group has so many members with all partitions, and commits."""

        def there() -> bool:
            url = f"{self.service.url}api/view?group={self.group}"
            with urllib.request.urlopen(url, timeout=30) as got:
                view = json.loads(got.read())
            about = view.get("group", {})
            owned = {one.get("member") for one in view.get("partitions", ())} - {None}
            committed = [one for one in view.get("partitions", ()) if one.get("committed")]
            return about.get("members") == len(owned) == members and len(committed) >= 4

        wait_for(f"{members} members have partitions and commit", there, 60)
        time.sleep(1.5)

    def caused(self, act: Callable[[], object], seconds: float = SOON) -> dict[str, Any]:
        """Return the surest cause of the first rebalance after ``act``."""
        before = {one["generation"] for one in self.rebalances()}
        act()

        def newer() -> dict[str, Any] | None:
            found = [one for one in self.rebalances() if one["generation"] not in before]
            return found[-1] if found else None

        rebalance = wait_for("the rebalance is told", newer, seconds)
        cause: dict[str, Any] = rebalance["causes"][0]
        return cause


@pytest.fixture
def watched(cluster: EmbeddedCluster, service: Service, group: str) -> Watched:
    return Watched(cluster, service, group)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_joins_leaves_resubscribes_and_what_grows(
    watched: Watched, make_topic: MakeTopic, protocol: str
) -> None:
    topics, config = [make_topic(partitions=4), make_topic(partitions=4)], PROTOCOLS[protocol]
    metadata = {"topic_metadata_refresh_interval_ms": 1_000}
    with (
        records_flow(watched.cluster, topics),
        watched.member("first", topics[:1], **config, **metadata) as first,
    ):
        watched.settled(1)
        joining: list[MemberProcess] = []
        cause = watched.caused(
            lambda: joining.append(watched.member("second", topics[:1], **config, **metadata)), 10
        )
        assert (cause["kind"], cause["sure"], cause["client"]) == ("joined", "certain", "second")
        with joining[0] as second:
            watched.settled(2)
            cause = watched.caused(lambda: second.tell(f"subscribe {','.join(topics)}"), 10)
            assert (cause["kind"], cause["client"]) == ("resubscribed", "second"), cause
            watched.settled(2)
            admin = AdminClient(watched.cluster.client_config())
            cause = watched.caused(
                lambda: admin.create_partitions([NewPartitions(topics[0], 6)])[topics[0]].result(),
                # the coordinator looks for new partitions at each heartbeat, clients once a second
                30,
            )
            assert (cause["kind"], cause["sure"]) == ("topic_grew", "certain"), cause
            assert cause["topic"] == topics[0]
            watched.settled(2)
            cause = watched.caused(second.leave, 15)
            assert (cause["kind"], cause["client"]) == ("left", "second"), cause
            assert cause["sure"] != "certain"
        first.leave()
    wait_for("it is empty", lambda: watched.rebalances()[0]["members"] == 0, 10)
    arguments = ["explain", "-b", watched.cluster.bootstrap_servers, watched.group]
    assert CliRunner().invoke(main, arguments).exit_code == 3  # it has no members any more


def test_a_session_that_times_out_and_a_member_that_polls_too_seldom(
    watched: Watched, make_topic: MakeTopic
) -> None:
    topics = [make_topic(partitions=4)]
    slow = {**CLASSIC, "session_timeout_ms": 6_000, "max_poll_interval_ms": 12_000}
    with records_flow(watched.cluster, topics), watched.member("steady", topics, **CLASSIC):
        with watched.member("doomed", topics, **CLASSIC) as doomed:
            watched.settled(2)
            cause = watched.caused(doomed.kill, 30)
            assert (cause["kind"], cause["client"]) == ("session_timed_out", "doomed"), cause
        with watched.member("slow", topics, **slow) as member:
            watched.settled(2)
            cause = watched.caused(lambda: member.tell("stall"), 40)
            assert (cause["kind"], cause["client"]) == ("poll_interval_exceeded", "slow"), cause
            assert cause["sure"] != "certain"


def test_a_static_member_returns_and_an_explanation_lists_the_rebalances_of_the_log(
    watched: Watched, make_topic: MakeTopic
) -> None:
    topics = [make_topic(partitions=4)]
    with records_flow(watched.cluster, topics), watched.member("steady", topics, **CONSUMER):
        with watched.member("fixed", topics, group_instance_id="two", **CONSUMER) as fixed:
            watched.settled(2)
            fixed.leave()
        with watched.member("fixed", topics, group_instance_id="two", **CONSUMER):
            watched.settled(2)
            arguments = ["explain", "-b", watched.cluster.bootstrap_servers, watched.group]
            shown = " ".join(CliRunner().invoke(main, arguments).output.split())
            ran = CliRunner().invoke(main, [*arguments, "--format", "json"])
    assert "Last rebalances" in shown
    told = json.loads(ran.stdout)["rebalances"]
    assert "fixed joined" in [
        f"{one['causes'][0]['client']} {one['causes'][0]['kind']}" for one in told
    ]
    assert not [
        cause
        for one in told
        for cause in one["causes"]
        if cause["kind"] in ("left", "session_timed_out")
    ]
