"""A real Kafka Streams application whose second instance comes and goes."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.processes.children import ClosedOnExit
from caughtup.models.errors import CaughtupError

NAME, SOURCE, SOURCE_PARTITIONS = "orders", "orders-placed", 2
_RECORDS = 2_000
_STAYS_SECONDS = (20.0, 60.0)
_AWAY_SECONDS = (5.0, 25.0)


class ComingAndGoing(ClosedOnExit):
    """The first instance stays, and is started again when it fails; the second comes and goes."""

    def __init__(self, cluster: EmbeddedCluster, seed: int) -> None:
        self.application = StreamsApplication(
            cluster, NAME, source=SOURCE, partitions=SOURCE_PARTITIONS
        )
        self.starts = self.ends = self.failures = 0
        self._cluster = cluster
        self._random = Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """What the service's settings have to say of it."""
        return self.application.parameters

    def start(self) -> None:
        """Start the first instance, and the coming and going."""
        self.application.create_source()
        produce(self._cluster, self.application.source, _RECORDS)
        self.application.start_instance("a")
        self._thread.start()

    def close(self) -> None:
        """End it with all its instances."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(130)
        self.application.close()

    def _run(self) -> None:
        while not self._stop.wait(self._random.uniform(*_AWAY_SECONDS)):
            try:
                if not self._runs("a"):
                    self.application.start_instance("a", wait=False)
                self.application.start_instance("b", wait=False)
                self.starts += 1
                if self._stop.wait(self._random.uniform(*_STAYS_SECONDS)):
                    return
                if self._random.random() < 0.5:
                    self.application.kill_instance("b")
                else:
                    self.application.stop_instance("b")
                self.ends += 1
            except (CaughtupError, OSError):
                self.failures += 1
                self._clear("b")

    def _runs(self, name: str) -> bool:
        """Return whether an instance runs; one that has failed is cleared away."""
        try:
            if self.application.state(name) not in ("ERROR", "NOT_RUNNING", "PENDING_ERROR"):
                return True
        except (CaughtupError, OSError):
            pass
        self._clear(name)
        return False

    def _clear(self, name: str) -> None:
        if name in self.application.instances:
            self.application.kill_instance(name)
