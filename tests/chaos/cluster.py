"""The cluster that chaos is brought upon: three brokers, and a network to each that may hang."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.broker_config import Security, server_properties
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import Process, Processes, free_ports
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.errors import CaughtupError
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.chaos.proxy import Proxy

#: Of ``__consumer_offsets``, as the embedded cluster has it.
OFFSETS_PARTITIONS = 4
_PROPERTIES = {
    # What a dead producer left open holds up who reads committed, for so long.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "group.min.session.timeout.ms": "1000",
    "offsets.retention.check.interval.ms": "60000",
}


@dataclass(frozen=True)
class BehindProxy:
    """The same cluster as clients see it who connect through the proxy."""

    bootstrap_servers: str
    processes: Processes
    security: Security


class ChaosCluster(EmbeddedCluster):
    """Each broker has one more listener a way, which is advertised at the proxy's port.

    ``ways``: how many clients of the proxy can be cut off from the brokers one by one.
    """

    def __init__(
        self,
        nodes: int,
        controllers: int,
        broker_properties: Mapping[str, str] | None = None,
        *,
        ways: int = 1,
    ) -> None:
        super().__init__(nodes, controllers=controllers)
        # All that there is has as many copies as can be, so that a broker may go.
        self._properties = {
            **_PROPERTIES,
            "transaction.state.log.replication.factor": str(nodes),
            **(broker_properties or {}),
        }
        ports = iter(free_ports(2 * nodes * ways))
        #: By node and way: the port of the listener, and the proxy's in front of it.
        self._proxied = {
            node: [(next(ports), next(ports)) for _ in range(ways)] for node in self.node_ids
        }
        self.proxy = Proxy(
            {outer: inner for routes in self._proxied.values() for inner, outer in routes}
        )

    @property
    def controllers(self) -> tuple[int, ...]:
        """The nodes that are controllers, too."""
        return self._controllers

    def proxy_ports(self, node: int) -> list[int]:
        """Return the ports at which clients behind the proxy reach a node, by way."""
        return [outer for _, outer in self._proxied[node]]

    def process(self, node: int) -> Process:
        """Return the process of a node that runs."""
        return self._running_node(node)

    def behind_proxy(self, way: int = 0) -> BehindProxy:
        """Return how the service sees the cluster."""
        outer = (self.proxy_ports(node)[way] for node in self.node_ids)
        return BehindProxy(self._addresses(outer), self.processes, self.security)

    def start_nodes(self, nodes: Iterable[int]) -> None:
        """Start nodes at once, and wait until they serve: one alone may be no quorum."""
        for node in nodes:
            self._launch(node)
        self.wait_ready()

    def close(self) -> None:
        """End the proxy as well."""
        self.proxy.close()
        super().close()

    def _launch(self, node: int) -> None:
        listeners = advertised = protocols = ""
        for way, (inner, outer) in enumerate(self._proxied[node]):
            listeners += f",PROXIED{way}://127.0.0.1:{inner}"
            advertised += f",PROXIED{way}://127.0.0.1:{outer}"
            protocols += f",PROXIED{way}:PLAINTEXT"
        data = self.node_directory(node) / "data"
        plain = server_properties(node, self._ports, self._controllers, self.security, data)
        self._overrides = {
            **self._properties,
            "listeners": plain["listeners"] + listeners,
            "advertised.listeners": plain["advertised.listeners"] + advertised,
            "listener.security.protocol.map": plain["listener.security.protocol.map"] + protocols,
        }
        super()._launch(node)


def coordinator(cluster: EmbeddedCluster, group: str) -> tuple[int, tuple[str, int]]:
    """Return which broker coordinates a group, and where it is: who leads the group's partition."""
    admin = AdminClient({**cluster.client_config(), "log_level": 0})
    listed = admin.list_topics(CONSUMER_OFFSETS, timeout=10)
    place = coordinator_partition(group, OFFSETS_PARTITIONS)
    leader = listed.topics[CONSUMER_OFFSETS].partitions[place].leader
    if leader not in listed.brokers:
        raise CaughtupError("no_coordinator", f"nobody leads partition {place}")
    broker = listed.brokers[leader]
    return leader, (broker.host, broker.port)
