"""Everything that chaos is brought upon: the cluster, its groups, the service, the truth teller."""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import ClosedOnExit
from tests.chaos.application import NAME, ComingAndGoing
from tests.chaos.cluster import ChaosCluster
from tests.chaos.groups import Groups
from tests.chaos.schedule import Fault
from tests.chaos.teller import TruthTeller
from tests.support.service import Service, wait_for

_READY_SECONDS = 180.0


class Instance:
    """An instance of the service, and whether it is due to run as far as whoever asks knows."""

    def __init__(self, service: Service) -> None:
        self.service = service
        #: Started and not ended by us since.
        self.wanted = False
        #: By SIGSTOP, or from all brokers.
        self.suspended = self.cut_off = False
        #: When it was started, or went on, last (s, monotonic).
        self.since = 0.0

    def begin(self) -> None:
        """Start it unless it runs, and don't wait."""
        if not self.runs:
            self.service.begin()
        self.wanted, self.since = True, time.monotonic()

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.wanted = False
        self.service.kill()

    def stop(self) -> None:
        """Ask it to end, and wait."""
        self.wanted = False
        self.service.stop()

    @property
    def is_ready(self) -> bool:
        """Whether ``/ready`` says so; one that doesn't answer isn't."""
        try:
            return self.service.ready()
        except (OSError, http.client.HTTPException):
            return False

    @property
    def runs(self) -> bool:
        """Whether its process is there."""
        return self.since > 0 and self.service.process.exit_code is None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Suspend it within."""
        pid = self.service.process.pid
        self.suspended = True
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            if self.runs:
                os.kill(pid, signal.SIGCONT)
            self.since, self.suspended = time.monotonic(), False


class Scene(ClosedOnExit):
    """Starts it all, and ends it all; ``applied``: whether a Streams application takes part.

    ``sharing``: how many instances share the groups; with 1, one is active. One more may join.
    """

    def __init__(
        self, seed: int, brokers: int, controllers: int, *, applied: bool = True, sharing: int = 1
    ) -> None:
        self._stack = ExitStack()
        self._sharing = sharing
        self.cluster = ChaosCluster(brokers, controllers, ways=sharing + 1)
        self.groups = Groups(self.cluster)
        self.application = ComingAndGoing(self.cluster, seed) if applied else None
        application_id = f"caughtup-{uuid.uuid4().hex[:8]}"
        settings: dict[str, Any] = {
            "application_id": application_id,
            "reassignments_interval": 1.0,
            "workers": "shared" if self.shares else "active",
        }
        behind = (self.cluster.behind_proxy(way) for way in range(sharing + 1))
        self.instances = tuple(
            Instance(Service(cast(EmbeddedCluster, place), **settings)) for place in behind
        )
        #: Whether nothing comes from one of the brokers or from any, whichever instance asks.
        self.network_hangs = False
        if self.application is not None:
            for instance in self.instances:
                _add_applications(instance.service.settings_file, self.application.parameters)
        applications = frozenset({NAME} if applied else ())
        #: Since when (s, monotonic) a reassignment copies, by topic and partition, whatever else is.
        self.moving: dict[tuple[str, int], float] = {}
        self.teller = TruthTeller(self.cluster, f"{application_id}-", applications)

    def start(self) -> None:
        """Start it, and wait until the service is ready, all its instances if they share."""
        for part in (self.cluster, self.groups, *filter(None, [self.application])):
            self._stack.push(part)
            part.start()
        self._stack.push(self.teller)
        for instance in self.instances[: self._sharing]:
            instance.begin()
        for instance in self.instances[: self._sharing]:
            wait_for("the service is ready", lambda one=instance: one.is_ready, _READY_SECONDS)
        self.teller.start()

    def close(self) -> None:
        """End it."""
        for instance in self.instances:
            if instance.runs:
                instance.kill()
        self._stack.close()

    @property
    def shares(self) -> bool:
        """Whether its instances share the groups."""
        return self._sharing > 1

    @property
    def can_serve(self) -> bool:
        """Whether an instance runs that is neither suspended nor cut off from a broker."""
        return not self.network_hangs and any(
            one.runs and not one.suspended and not one.cut_off for one in self.instances
        )

    def hit(self, fault: Fault) -> Instance:
        """Return the instance that a fault is about: the active one, or any of those that share."""
        wanted = [instance for instance in self.instances if instance.wanted]
        return Random(fault.seed).choice(wanted) if self.shares and wanted else self.active

    @contextmanager
    def cut_off(self, instance: Instance) -> Iterator[None]:
        """Let nothing through between an instance and the brokers within."""
        way = self.instances.index(instance)
        ports = [self.cluster.proxy_ports(node)[way] for node in self.cluster.node_ids]
        instance.cut_off = True
        try:
            with self.cluster.proxy.holding(*ports):
                yield
        finally:
            instance.cut_off = False

    @property
    def active(self) -> Instance:
        """The instance that was ready last, or else the first that is to run."""
        wanted = [instance for instance in self.instances if instance.wanted]
        return next((one for one in wanted if one.is_ready), (wanted or self.instances)[0])

    @property
    def other(self) -> Instance:
        """The instance that isn't to run, or stands by."""
        if self.shares:
            return next(one for one in self.instances if not one.wanted)
        active = self.active
        return next(one for one in self.instances if one is not active)


def _add_applications(settings: Path, parameters: Mapping[str, Mapping[str, Any]]) -> None:
    """Add tables to a settings file; a value's JSON is TOML, an object's isn't."""
    lines: list[str] = []
    for name, table in parameters.items():
        for at, values in ((name, table), (f"{name}.changelogs", table["changelogs"])):
            lines.append(f"[applications.{at}]")
            lines += [
                f'"{key}" = {json.dumps(value)}'
                for key, value in values.items()
                if not isinstance(value, Mapping)
            ]
    with settings.open("a") as file:
        file.write("\n".join(lines) + "\n")
