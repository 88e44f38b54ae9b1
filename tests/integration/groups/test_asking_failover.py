"""Coordinators that end: their groups stay where they are asked about, and move on to other brokers."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.demo.cluster.load import produce
from tests.integration.conftest import MakeCluster
from tests.support.service import Service, commit, wait_for

_GROUPS = frozenset(f"group-{number}" for number in range(12))
#: Longer than a broker takes to be fenced, and its groups to be read by another.
_WATCHED_SECONDS = 20.0


@pytest.mark.thorough
@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_no_group_is_gone_while_its_coordinator_is_replaced(
    make_cluster: MakeCluster, *, killed: bool
) -> None:
    cluster = make_cluster(nodes=3)
    admin = AdminClient(cluster.client_config())  # Held: a collected client drops its requests.
    admin.create_topics([NewTopic("orders", 1, replication_factor=3)])["orders"].result(30)
    produce(cluster, "orders", 10)
    for group in _GROUPS:
        commit(cluster, group, "orders", 4)
    with Service(cluster, source="ask", own_topics=False, ask_interval=1) as service:

        def there() -> frozenset[str]:
            return frozenset(one.labels["group"] for one in service.metrics("group_lag_records"))

        wait_for("all groups", lambda: there() >= _GROUPS)
        node = cluster.running_nodes[1]  # the first one is the controller
        (cluster.kill_node if killed else cluster.stop_node)(node)
        ends = time.monotonic() + _WATCHED_SECONDS
        while time.monotonic() < ends:
            assert there() >= _GROUPS, _GROUPS - there()
            time.sleep(0.1)
        for group in _GROUPS:
            commit(cluster, group, "orders", 9)
        wait_for(
            "the lag by their new coordinators",
            lambda: {one.value for one in service.metrics("group_lag_records")} == {1},
        )
