"""Brings the faults of a schedule upon the scene, one after the other, and waits for recovery."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from confluent_kafka import KafkaException

from caughtup.models.errors import CaughtupError
from tests.chaos.faults import INFLICT
from tests.chaos.judge import Judge
from tests.chaos.report import Report
from tests.chaos.rules import Around, Violation
from tests.chaos.scene import Scene
from tests.chaos.schedule import KINDS, Fault
from tests.chaos.sharing import UNSHARED_SECONDS

#: A cluster that isn't well again by then is none any more.
_CLUSTER_SECONDS = 180.0
_POLL_SECONDS = 0.25
#: For so long everything is watched before the first fault.
_SETTLED_SECONDS = 10.0


class ClusterLost(Exception):  # noqa: N818
    """The cluster itself did not come back: nothing can be said of the service."""


@dataclass(frozen=True)
class Run:
    """A run; ``advance`` is told of each second that went by, ``stop`` ends it early."""

    scene: Scene
    judge: Judge
    report: Report
    advance: Callable[[float], None]
    stop: threading.Event

    def faults(self, schedule: Iterable[Fault], seconds: float) -> None:
        """Inflict faults until the time is over. Raises ClusterLost."""
        until = time.monotonic() + seconds
        self._pause(_SETTLED_SECONDS)
        for fault in schedule:
            self._pause(fault.calm_seconds)
            if self.stop.is_set() or time.monotonic() > until:
                return
            self._inflict(fault)

    def _inflict(self, fault: Fault) -> None:
        self.report.begins(fault.kind, str(fault))
        self.judge.around = Around(fault_since=time.monotonic())
        kind = KINDS[fault.kind]
        self.judge.unshared.allowed = max(
            UNSHARED_SECONDS, kind.recovers_seconds if kind.brokers else 0.0
        )
        try:
            with ExitStack() as stack:
                stack.enter_context(INFLICT[fault.kind](self.scene, fault))
                self._pause(fault.seconds / 2)
                if fault.companion is not None:
                    stack.enter_context(INFLICT[fault.companion](self.scene, fault))
                self._pause(fault.seconds / 2)
        except (CaughtupError, KafkaException, TimeoutError, OSError) as error:
            self.report.note(f"{fault.kind} could not be inflicted as it should: {error}")
        self._recover(fault)

    def _recover(self, fault: Fault) -> None:
        """Wait until all is right again; the time counts once the cluster itself is well."""
        ended = time.monotonic()
        bound = KINDS[fault.kind].recovers_seconds
        well: float | None = None
        told = False
        while not self.stop.is_set():
            now = time.monotonic()
            if well is None and self.judge.cluster_is_well():
                well = now
            if well is None and now - ended > _CLUSTER_SECONDS:
                raise ClusterLost(str(fault))
            if self.judge.all_is_right(ended):
                self.report.recovered(fault.kind, now - (ended if well is None else well))
                break
            if well is not None and now - well > bound and not told:
                told = True
                self.report.violated(self._late(now, bound))
            if well is not None and now - well > bound + _CLUSTER_SECONDS:
                raise ClusterLost(f"{fault}: the service never recovered")
            self._pause(_POLL_SECONDS)
        self.judge.around = Around(calm_since=time.monotonic())

    def _late(self, now: float, bound: float) -> Violation:
        said = []
        for instance in self.scene.instances:
            if instance.wanted:
                said.append("no answer")
                with suppress(OSError):
                    said[-1] = instance.service.unready().strip() or "ready, and not up to date"
        return Violation(now, "recovers in time", " | ".join(said), f"the bound is {bound:.0f} s")

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self.stop.is_set():
            step = min(1.0, left)
            self.stop.wait(step)
            self.advance(step)
