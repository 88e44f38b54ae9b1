"""The ways in which an instance of the service goes; each lasts until the end of its context."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from tests.chaos.cluster import ChaosCluster
from tests.support.service import Service

_CAUGHT_SECONDS = 40.0


@contextmanager
def killed(_: ChaosCluster, service: Service) -> Iterator[None]:
    service.kill()
    yield


@contextmanager
def ended(_: ChaosCluster, service: Service) -> Iterator[None]:
    os.kill(service.process.pid, signal.SIGTERM)
    yield


@contextmanager
def suspended(_: ChaosCluster, service: Service) -> Iterator[None]:
    os.kill(service.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(service.process.pid, signal.SIGCONT)


@contextmanager
def cut_off(cluster: ChaosCluster, service: Service) -> Iterator[None]:
    """The network holds back all that comes, from a decision on that is on its way."""
    proxy = cluster.proxy
    proxy.catch_produce(service.topic("recommended-assignments"))
    try:
        assert proxy.caught.wait(_CAUGHT_SECONDS)
        proxy.hold()
        yield
    finally:
        proxy.release()
        proxy.let_go()


Leaving = Callable[[ChaosCluster, Service], AbstractContextManager[None]]
LEAVING: Sequence[Leaving] = (killed, ended, suspended, cut_off)
#: The exit code of an instance that had groups, unless it is killed.
CODES: Mapping[Leaving, int] = {ended: 0, suspended: 1, cut_off: 1}
