"""The processes of the Connect story: a broker, Connect workers and the service."""

from __future__ import annotations

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.connect.group_log import GroupLog
from caughtup.demo.connect.workers import ConnectWorkers
from caughtup.demo.story.stage import DemoStage

GROUP = "connect-demo"


class ConnectStage(DemoStage):
    """One broker, workers of one Connect cluster, and the service, which end with the context.

    ``max_delay_ms`` is the workers' ``scheduled.rebalance.max.delay.ms``.
    """

    def __init__(self, *, max_delay_ms: int, web_port: int = 0) -> None:
        super().__init__(nodes=1, web_port=web_port)
        self.workers = ConnectWorkers(self.cluster, GROUP, max_delay_ms=max_delay_ms)

    def start_cluster(self) -> None:
        """Start the broker."""
        self.cluster.start()

    def log(self) -> GroupLog:
        """Return a reader of the group's generations."""
        return GroupLog(self.cluster, GROUP)

    @property
    def applications(self) -> tuple[StreamsApplication, ...]:
        """No applications: the workers are no Kafka Streams application."""
        return ()
