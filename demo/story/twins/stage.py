"""The processes of the story: two brokers, the service, and two equal applications."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from caughtup.demo.apps.restore_listener import compiled_restore_listener
from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.load import produce, producing
from caughtup.demo.story.growing import (
    FIRST,
    FOLLOWING,
    KEYS,
    PROPERTIES,
    SUBTOPOLOGIES,
    has_left_behind,
    is_balanced,
)
from caughtup.demo.story.stage import DemoStage
from caughtup.pipelines.java.compiling import compiled_java

FOLLOWS, KAFKAS = "orders-caughtup", "orders-kafka"
SOURCE = "orders-placed"
TASKS = 24
#: The records of state of each task: several times acceptable.recovery.lag.
RECORDS = 5_000
RECORDS_PER_SECOND = 200
_SETTLE_SECONDS = 120.0
#: The delay of the first generation, so that all instances are in it: an instance that loses tasks
#: later would keep their directories for some time.
_FIRST_GENERATION_MS = 4_000


class TwinStage(DemoStage):
    """Two applications that read the same topic and differ only in the assignor.

    ``orders-caughtup`` follows recommendations (``follower``: the sources of the follower, which is
    compiled here); ``orders-kafka`` has Kafka's own assignor. Raises as ``compiled_java`` does.
    """

    def __init__(self, follower: Sequence[Path], *, web_port: int = 0) -> None:
        super().__init__(
            nodes=2,
            web_port=web_port,
            broker_properties={"group.initial.rebalance.delay.ms": str(_FIRST_GENERATION_MS)},
        )
        partitions = TASKS // SUBTOPOLOGIES
        self.application = StreamsApplication(
            self.cluster,
            FOLLOWS,
            source=SOURCE,
            partitions=partitions,
            properties={**PROPERTIES, **FOLLOWING},
            class_path=[compiled_java("follower", follower)],
        )
        self.twin = StreamsApplication(
            self.cluster, KAFKAS, source=SOURCE, partitions=partitions, properties=PROPERTIES
        )

    @property
    def applications(self) -> tuple[StreamsApplication, ...]:
        """The application that follows, and the other one."""
        return self.application, self.twin

    def start_instances(self) -> None:
        """Start three instances of each, and wait until the empty tasks are distributed.

        Without state no warm-ups are needed. Raises CaughtupError.
        """
        compiled_restore_listener()
        for name in FIRST:
            self.on_both(partial(StreamsApplication.start_instance, name=name, wait=False))
        for application in self.applications:
            for name in FIRST:
                application.wait_running(name)
            self.wait(
                f"three instances of {application.application_id} share the tasks",
                partial(_is_settled, application),
                _SETTLE_SECONDS,
            )

    def build_state(self) -> None:
        """Produce, and wait until every task of both has its state. Raises CaughtupError."""
        produce(self.cluster, SOURCE, RECORDS * (TASKS // SUBTOPOLOGIES), keys=KEYS)
        for application in self.applications:
            self.wait(
                f"{application.application_id} has its state",
                partial(_has_state, application),
                _SETTLE_SECONDS,
            )

    def load(self) -> AbstractContextManager[None]:
        """Return a context in which records are produced. Leaving it may raise CaughtupError."""
        return producing(self.cluster, SOURCE, RECORDS_PER_SECOND, keys=KEYS)

    def on_both(self, act: Callable[[StreamsApplication], object]) -> None:
        """Call a function with both applications at the same time, so that neither has a lead."""
        pool = ThreadPoolExecutor(len(self.applications))
        try:
            for done in [pool.submit(act, one) for one in self.applications]:
                done.result()
        finally:
            # Interrupted, it doesn't wait: the calls fail once the processes are ended.
            pool.shutdown(wait=False)


def _is_settled(application: StreamsApplication) -> bool:
    return is_balanced(application, TASKS) and not has_left_behind(application)


def _has_state(application: StreamsApplication) -> bool:
    return _records_of_state(application) >= RECORDS * TASKS


def _records_of_state(application: StreamsApplication) -> int:
    """Count the records in the changelogs of an application whose tasks all run."""
    return sum(
        place.end
        for name in application.instances
        for partitions in application.lags(name).values()
        for place in partitions.values()
    )
