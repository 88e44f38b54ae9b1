"""What the story runs: two brokers, the service, and two applications alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from caughtup.demo.apps.compiled import compiled
from caughtup.demo.apps.restore_listener import compile_restore_listener
from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.load import produce, producing
from caughtup.demo.story.growing import FIRST, FOLLOWING, KEYS, PROPERTIES, SUBTOPOLOGIES
from caughtup.demo.story.shares import has_left_behind, is_balanced
from caughtup.demo.story.stage import Stage

FOLLOWS, KAFKAS = "orders-caughtup", "orders-kafka"
SOURCE = "orders-placed"
TASKS = 24
#: Of state a task, several times what ``acceptable.recovery.lag`` is here.
RECORDS = 5_000
RECORDS_PER_SECOND = 200
_FOLLOWER = "follower"
_SETTLE_SECONDS = 120.0
#: So that instances which are started one after the other share their first generation: whoever
#: has to give tasks away again has their directories for a while.
_FIRST_GENERATION_MS = 4_000


class TwinStage(Stage):
    """Two applications that read the same topic, alike but in one thing: ``orders-caughtup`` follows.

    ``follower`` are the sources of what it needs for that; ``orders-kafka`` has Kafka's own
    assignor.
    """

    def __init__(self, follower: Sequence[Path], *, web_port: int = 0) -> None:
        super().__init__(
            nodes=2,
            web_port=web_port,
            broker_properties={"group.initial.rebalance.delay.ms": str(_FIRST_GENERATION_MS)},
        )
        self._follower = follower
        partitions = TASKS // SUBTOPOLOGIES
        self.application = StreamsApplication(
            self.cluster,
            FOLLOWS,
            source=SOURCE,
            partitions=partitions,
            properties={**PROPERTIES, **FOLLOWING},
            class_path=[self.processes.directory / _FOLLOWER],
        )
        self.twin = StreamsApplication(
            self.cluster, KAFKAS, source=SOURCE, partitions=partitions, properties=PROPERTIES
        )

    @property
    def applications(self) -> tuple[StreamsApplication, ...]:
        """The one that follows, and its twin."""
        return self.application, self.twin

    def compile_follower(self) -> None:
        """Compile what an application needs to follow. Raises CaughtupError."""
        compiled(self.processes, _FOLLOWER, self._follower)

    def start_instances(self) -> None:
        """Start three instances of each, and wait until they share the empty tasks.

        Nobody has to warm up while there is no state. Raises CaughtupError.
        """
        compile_restore_listener(self.processes)
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
        """Return what keeps producing while it is entered. Leaving raises CaughtupError."""
        return producing(self.cluster, SOURCE, RECORDS_PER_SECOND, keys=KEYS)

    def on_both(self, act: Callable[[StreamsApplication], object]) -> None:
        """Do the same with both applications at once, as neither is to have a lead."""
        with ThreadPoolExecutor(len(self.applications)) as pool:
            for done in [pool.submit(act, one) for one in self.applications]:
                done.result()


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
