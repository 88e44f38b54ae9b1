"""A broker whose connections stay open and that answers nothing: the others' ends go on coming."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack

import pytest
from confluent_kafka.admin import AdminClient

from caughtup.agents.end_offsets import CLIENT
from caughtup.agents.kafka.end_offset_listing import ANSWER_SECONDS, EndOffsetLister
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.demo.cluster.topics import create_topics
from tests.chaos.cluster import ChaosCluster
from tests.support.service import wait_for

PARTITIONS = 6
#: A listing without anybody to wait for takes some hundredths of a second.
QUICK_SECONDS = 1.5
SECONDS = 15.0


@pytest.mark.thorough
def test_one_hung_broker_delays_one_listing_and_no_other() -> None:
    with ChaosCluster(3, 1) as cluster, ExitStack() as stack:
        create_topics(cluster, {"words": PARTITIONS}, replicas=1)
        config = {
            **cluster.client_config(),
            "bootstrap.servers": cluster.behind_proxy().bootstrap_servers,
            **CLIENT,
        }
        lister = EndOffsetLister(AdminClient(config))
        servers = {"bootstrap_servers": config["bootstrap.servers"]}
        protocol = ClusterProtocol(servers, ANSWER_SECONDS, most_pause_seconds=5)
        runner = stack.enter_context(asyncio.Runner())

        def listed() -> tuple[int, float]:
            began = time.monotonic()
            found = runner.run(lister.list_ends(protocol, lambda topic: topic == "words")).found
            return len(found), time.monotonic() - began

        wait_for("all are listed", lambda: listed()[0] == PARTITIONS)
        cluster.proxy.hold(*cluster.proxy_ports(3))
        deadline, took = time.monotonic() + SECONDS, []
        while time.monotonic() < deadline:
            count, seconds = listed()
            assert 0 < count < PARTITIONS
            took.append(seconds)
            time.sleep(0.2)
        print(f"{len(took)} listings; the three slowest took", sorted(took)[-3:], "s")
        assert sum(seconds > QUICK_SECONDS for seconds in took) <= 4
        assert took[-1] < QUICK_SECONDS
        cluster.proxy.release(*cluster.proxy_ports(3))
        wait_for("all are listed again", lambda: listed()[0] == PARTITIONS, 15)
