"""An application with state and load that gets one more instance, and the service beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.load import produce
from caughtup.demo.story.stage import APPLICATION, Stage
from caughtup.models.errors import CaughtupError

FIRST = ("a", "b", "c")
LAST = "d"
#: The topology's two subtopologies both keep state, and have a task for each partition.
SUBTOPOLOGIES = 2
ACCEPTABLE_RECOVERY_LAG = 1_000
#: Kafka accepts no shorter one.
PROBING_SECONDS = 60
#: What an application needs in its configuration to follow recommendations, but for the jar.
FOLLOWING = {
    "task.assignor.class": "caughtup.FollowingTaskAssignor",
    "metric.reporters": "caughtup.PositionReporter",
}
_PROPERTIES = {
    "acceptable.recovery.lag": str(ACCEPTABLE_RECOVERY_LAG),
    "max.warmup.replicas": "2",
    "num.standby.replicas": "0",
    "probing.rebalance.interval.ms": str(1_000 * PROBING_SECONDS),
    # What an instance gave away leaves its disk soon: see Growing.set_up.
    "state.cleanup.delay.ms": "5000",
}
_KEYS = 3_000
_SETTLE_SECONDS = 180.0
_PROCESS_SECONDS = 300.0
_ENDLESS = 1 << 62


class Growing(Stage):
    """Two brokers, the service, and an application of three instances that gets a fourth.

    ``tasks`` of the application have state, as many in each of two subtopologies. ``properties``
    adds to its configuration, ``class_path`` has the classes that it names.
    """

    def __init__(
        self,
        *,
        tasks: int,
        properties: Mapping[str, str] | None = None,
        class_path: Sequence[Path] = (),
    ) -> None:
        super().__init__(nodes=2)
        self.tasks = tasks
        self.application = StreamsApplication(
            self.cluster,
            APPLICATION,
            partitions=tasks // SUBTOPOLOGIES,
            properties={**_PROPERTIES, **(properties or {})},
            class_path=class_path,
        )

    def set_up(self, records: int) -> None:
        """Start it all, share the tasks out, and give each about so many records of state.

        Tasks are shared out while they are empty: then nobody has to warm up. The instance that
        was there first had all of them; what it still has on its disk is nothing to start from,
        and not as an application is that runs for long. So it waits until that is gone. Raises
        CaughtupError.
        """
        self.start_cluster()
        self.start_service()
        for name in FIRST:
            self.application.start_instance(name, wait=False)
        for name in FIRST:
            self.application.wait_running(name)
        self.wait("three instances share the tasks", self.is_balanced, _SETTLE_SECONDS)
        self.wait("nothing is left behind", lambda: not self._left_behind(), _SETTLE_SECONDS)
        produce(
            self.cluster,
            self.application.source,
            records * (self.tasks // SUBTOPOLOGIES),
            keys=_KEYS,
        )
        self.wait("every record is processed", self._no_lag, _PROCESS_SECONDS)
        self.application.wait_caught_up()

    @contextmanager
    def load(self, records_per_second: float) -> Iterator[None]:
        """Keep producing meanwhile. Raises CaughtupError ``produce_failed``."""
        stop = threading.Event()
        failed: list[CaughtupError] = []

        def run() -> None:
            try:
                produce(
                    self.cluster,
                    self.application.source,
                    _ENDLESS,
                    keys=_KEYS,
                    records_per_second=records_per_second,
                    stop=stop,
                )
            except CaughtupError as error:
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        if failed:
            raise failed[0]

    def grow(
        self, seconds: float, advance: Callable[[int], None] = lambda _: None
    ) -> tuple[int, int]:
        """Start the fourth instance, wait until tasks are shared out again; give both times (ms).

        ``advance`` is told of tasks that the instance got. Raises CaughtupError after so many
        seconds.
        """
        self.application.start_instance(LAST, wait=False)
        started_ms = now_ms()
        most = 0

        def balanced() -> int | None:
            nonlocal most
            got = self.actives()[LAST]
            if got > most:
                advance(got - most)
                most = got
            return now_ms() if self.is_balanced() else None

        return started_ms, self.wait("four instances share the tasks", balanced, seconds)

    def actives(self) -> dict[str, int]:
        """Ask every instance how many tasks it runs."""
        return {name: self._count(name)[0] for name in self.application.instances}

    def is_balanced(self) -> bool:
        """Return whether tasks are shared out evenly, all run, and nothing warms up."""
        names = self.application.instances
        counts = [self._count(name) for name in names]
        active = [one for one, _ in counts]
        return (
            sum(active) == self.tasks
            and max(active) - min(active) <= 1
            and not any(standby for _, standby in counts)
            and all(self.application.state(name) == "RUNNING" for name in names)
        )

    def _count(self, name: str) -> tuple[int, int]:
        threads = self.application.threads(name).values()
        return sum(len(one.active) for one in threads), sum(len(one.standby) for one in threads)

    def _left_behind(self) -> bool:
        """Return whether an instance has a task on disk that it neither runs nor stands by for."""
        application = self.application
        return any(
            application.tasks_on_disk(name)
            - {
                task
                for thread in application.threads(name).values()
                for task in (*thread.active, *thread.standby)
            }
            for name in application.instances
        )

    def _no_lag(self) -> bool:
        groups = {group["group"]: group for group in self.page()["groups"]}
        return groups.get(APPLICATION, {}).get("lag") == 0


def now_ms() -> int:
    """Return this machine's clock (ms), which the brokers and instances share."""
    return int(time.time() * 1000)
