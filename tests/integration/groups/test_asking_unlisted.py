"""Brokers that list no groups: what the service and commands say, and that they go on."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.protocol.requests import Key
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.support.groups.asked import Behind, Groups
from tests.support.kafka import rewriting_rules
from tests.support.kafka.rewriting import Rewriting
from tests.support.service import Service, caughtup, wait_for

#: Kafka's error codes.
UNKNOWN_SERVER_ERROR = -1


def test_a_service_whose_broker_lists_no_groups_is_ready_without_them(
    shared_cluster: EmbeddedCluster, groups: Groups, tmp_path: Path
) -> None:
    rules = (
        rewriting_rules.refused(Key.LIST_GROUPS, UNKNOWN_SERVER_ERROR, nodes=(0,)),
        rewriting_rules.offering({Key.CONSUMER_GROUP_DESCRIBE: None, Key.OFFSET_FETCH: 5}),
    )
    with Rewriting(shared_cluster.bootstrap_servers, *rules) as proxy:
        seen = Behind(proxy.bootstrap_servers, shared_cluster.processes, shared_cluster.security)
        service = Service(seen, source="ask", own_topics=False, ask_interval=1)
        service.begin()
        try:
            said = wait_for(
                "it says why it is not ready",
                lambda: (text := service.unready()) and "listing its groups" in text and text,
            )
            assert [line for line in said.splitlines() if line.startswith("groups: broker ")], said
            wait_for("it is ready", service.ready, 30)
            wait_for(
                "the groups of the other broker",
                lambda: (
                    {s.labels["group"] for s in service.metrics("group_lag_records")}
                    & set(groups.all)
                ),
            )
            assert (service.value("probe_errors_total", probe="offsets") or 0) > 0
            proxy.rules = ()
            wait_for(
                "all groups",
                lambda: (
                    {s.labels["group"] for s in service.metrics("group_lag_records")}
                    >= set(groups.all)
                ),
            )
            lines = [line for line in service.log.splitlines() if "asking about groups" in line]
            assert 0 < len(lines) <= 2 * 10, lines  # a minute may have ended meanwhile
            assert service.page()["groups"]
        except AssertionError as error:
            # Seen once: no group of the other broker, though each coordinates some of them.
            admin = AdminClient(shared_cluster.client_config())
            log = admin.list_topics(CONSUMER_OFFSETS, timeout=10).topics[CONSUMER_OFFSETS]
            leaders = {number: one.leader for number, one in log.partitions.items()}
            error.add_note(f"leaders {leaders}, {groups.all}\n{service.log[-4000:]}")
            raise
        finally:
            service.process.terminate(10)


def test_commands_say_in_one_line_what_is_refused(
    shared_cluster: EmbeddedCluster, groups: Groups, tmp_path: Path
) -> None:
    environment = {"CAUGHTUP_SOURCE": "ask"}
    with Rewriting(shared_cluster.bootstrap_servers) as proxy:
        servers = ["--bootstrap-servers", proxy.bootstrap_servers]
        proxy.rules = [rewriting_rules.offering({Key.LIST_GROUPS: None})]
        for words in (
            ["lag", groups.classic],
            ["explain", groups.classic],
            ["why", groups.classic],
        ):
            ran = caughtup(*words, *servers, directory=tmp_path, environment=environment)
            assert "does not support ListGroups" in ran.message, words
        checked = caughtup("check", *servers, directory=tmp_path, environment=environment)
        assert "list groups: broker" in checked.message
        assert "does not support ListGroups" in checked.message
        assert checked.code == 1
        proxy.rules = [rewriting_rules.offering({Key.CONSUMER_GROUP_DESCRIBE: None})]
        ran = caughtup(
            "lag", groups.consumer, *servers, directory=tmp_path, environment=environment
        )
        assert ran.code == 0, ran
        assert len(ran.err.splitlines()) <= 2, ran.err


def test_the_log_is_not_read_by_requests_that_are_not_offered(
    shared_cluster: EmbeddedCluster, groups: Groups, tmp_path: Path
) -> None:
    with Rewriting(shared_cluster.bootstrap_servers) as proxy:
        for rules, source in (
            ([], "read __consumer_offsets"),
            ([rewriting_rules.offering({Key.FETCH: (10, 17)})], "source"),
            ([rewriting_rules.offering({Key.LIST_OFFSETS: (6, 11)})], "source"),
        ):
            proxy.rules = rules
            servers = ["--bootstrap-servers", proxy.bootstrap_servers, "--format", "json"]
            checked = caughtup("check", *servers, directory=tmp_path)
            said = {line["check"]: line for line in checked.lines}
            assert said[source]["ok"], said
            if rules:
                assert "can't be read: coordinators are asked" in said[source]["detail"]
                assert said["list groups"]["ok"], said
        assert not proxy.not_offered
