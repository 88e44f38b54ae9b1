"""Run an application with state and load, add an instance, with the service beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.load import produce, producing
from caughtup.demo.story.stage import APPLICATION, DemoStage


def actives(application: StreamsApplication) -> dict[str, int]:
    """Return the number of active tasks of every instance."""
    return {name: _count(application, name)[0] for name in application.instances}


def is_balanced(application: StreamsApplication, tasks: int) -> bool:
    """Return whether all tasks run and are evenly distributed, and nothing warms up."""
    names = application.instances
    counts = [_count(application, name) for name in names]
    active = [one for one, _ in counts]
    return (
        sum(active) == tasks
        and max(active) - min(active) <= 1
        and not any(standby for _, standby in counts)
        and all(application.state(name) == "RUNNING" for name in names)
    )


def has_left_behind(application: StreamsApplication) -> bool:
    """Return whether an instance has a task on disk that is neither active nor standby there."""
    return any(
        application.tasks_on_disk(name)
        - {
            task
            for thread in application.threads(name).values()
            for task in (*thread.active, *thread.standby)
        }
        for name in application.instances
    )


def _count(application: StreamsApplication, name: str) -> tuple[int, int]:
    threads = application.threads(name).values()
    return sum(len(one.active) for one in threads), sum(len(one.standby) for one in threads)


FIRST = ("a", "b", "c")
LAST = "d"
#: The topology's two subtopologies both keep state, and have a task for each partition.
SUBTOPOLOGIES = 2
ACCEPTABLE_RECOVERY_LAG = 1_000
#: The least probing.rebalance.interval.ms that Kafka accepts.
PROBING_SECONDS = 60
#: The configs with which an application follows recommendations (it also needs the jar).
FOLLOWING = {
    "task.assignor.class": "caughtup.FollowingTaskAssignor",
    "metric.reporters": "caughtup.PositionReporter",
}
#: Configs with which the application behaves like a long-running one, and grows within a minute.
PROPERTIES = {
    "acceptable.recovery.lag": str(ACCEPTABLE_RECOVERY_LAG),
    "max.warmup.replicas": "2",
    "num.standby.replicas": "0",
    "probing.rebalance.interval.ms": str(1_000 * PROBING_SECONDS),
    # State of tasks that moved away is soon deleted from disk: see Growing.set_up.
    "state.cleanup.delay.ms": "5000",
}
KEYS = 3_000
_SETTLE_SECONDS = 180.0
_PROCESS_SECONDS = 300.0


class Growing(DemoStage):
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
            properties={**PROPERTIES, **(properties or {})},
            class_path=class_path,
        )

    def set_up(self, records: int) -> None:
        """Start everything, distribute the tasks, and give each task about ``records`` of state.

        Tasks are distributed while they are empty, so that no warm-ups are needed. The first
        instance had all tasks, and still has their directories, unlike in a long-running
        application. So this waits until these are deleted. Raises CaughtupError.
        """
        self.start_cluster()
        self.start_service()
        for name in FIRST:
            self.application.start_instance(name, wait=False)
        for name in FIRST:
            self.application.wait_running(name)
        self.wait("three instances share the tasks", self.is_balanced, _SETTLE_SECONDS)
        self.wait(
            "nothing is left behind", lambda: not has_left_behind(self.application), _SETTLE_SECONDS
        )
        produce(
            self.cluster,
            self.application.source,
            records * (self.tasks // SUBTOPOLOGIES),
            keys=KEYS,
        )
        self.wait("every record is processed", self._no_lag, _PROCESS_SECONDS)
        self.application.wait_caught_up()

    def load(self, records_per_second: float) -> AbstractContextManager[None]:
        """Return a context in which records are produced. Leaving it may raise CaughtupError."""
        return producing(self.cluster, self.application.source, records_per_second, keys=KEYS)

    def grow(
        self, seconds: float, advance: Callable[[int], None] = lambda _: None
    ) -> tuple[int, int]:
        """Start the fourth instance, and wait until tasks are balanced; return both times (ms).

        ``advance`` is called with the number of tasks that the instance got. Raises CaughtupError
        after ``seconds``.
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
        """Return the number of active tasks of every instance."""
        return actives(self.application)

    def is_balanced(self) -> bool:
        """Return whether all tasks run and are evenly distributed, and nothing warms up."""
        return is_balanced(self.application, self.tasks)

    def _no_lag(self) -> bool:
        groups = {group["group"]: group for group in self.page()["groups"]}
        return bool(groups.get(APPLICATION, {}).get("lag") == 0)


def now_ms() -> int:
    """Return this machine's clock (ms), which brokers and instances use too."""
    return int(time.time() * 1000)
