"""Reassignments of every kind, healthy and not, done to a real cluster of six nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.demo.reassignments.staged import ORPHANED, StagedReassignment, VerdictWatch
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition

#: Reassigns a partition to these brokers; None cancels that.
Reassign = Callable[[TopicPartition, list[int] | None], None]

NODES, CONTROLLERS = 6, 3
#: What can be played, and the method that does.
ACTS: Final[Mapping[str, str]] = {
    "healthy": "healthy_reassignments",
    "taken back": "cancelled_reassignments",
    "starved": "a_starved_reassignment",
    "target lost": "a_target_is_lost",
    "leader lost": "a_leader_is_lost",
    "controller lost": "the_controller_is_lost",
    "throttle left": "a_throttle_is_left",
}
#: Those that a test has time for; the others take minutes, or a machine with nothing else to do.
SHORT_ACTS: Final = ("taken back", "starved")
_RECORD_BYTES: Final = 10_000
_RATE: Final = 1_500_000
_STARVING_RATE: Final = 200_000
_WRITES_PER_SECOND: Final = 90.0
_MID_COPY_SECONDS: Final = 8.0
_NAMED_SECONDS: Final = 150.0
_END_SECONDS: Final = 240.0
_OUT_OF_SIGHT_SECONDS: Final = 6.0
_LEFT_SECONDS: Final = 780.0


class StagedReassignments:
    """The acts, in any order. Each returns what it staged once that is over.

    ``reassign`` starts or cancels a reassignment, ``quorum_leader`` names the active controller,
    ``page`` gives what the service shows. Raises CaughtupError ``stage_failed`` where the cluster
    doesn't do what was staged.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        reassign: Reassign,
        quorum_leader: Callable[[], int],
        page: Callable[[], Mapping[str, Any]],
        say: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._reassign = reassign
        self._quorum_leader = quorum_leader
        self._page = page
        self._say = say
        self._admin = AdminClient(cluster.client_config())

    def play(self, act: str) -> list[StagedReassignment]:
        """Play one of ACTS, and return what it staged. Raises CaughtupError for any other."""
        if act not in ACTS:
            raise CaughtupError("unknown_act", f"no act {act!r}: there are {', '.join(ACTS)}")
        reassignments: list[StagedReassignment] = getattr(self, ACTS[act])()
        return reassignments

    def healthy_reassignments(self) -> list[StagedReassignment]:
        """Unthrottled, throttled in plateaus, and a new order of the same replicas."""
        with VerdictWatch(self._page) as watch:
            full = self._topic("full-speed", [1, 2], megabytes=300)
            throttled = self._topic("plateaus", [1, 2], megabytes=60)
            order = self._topic("reordered", [4, 5], megabytes=5)
            with self._throttled(throttled, _RATE):
                reassignments = [
                    self._start(watch, "healthy, at full speed", full, [3, 4], "completed"),
                    self._start(watch, "healthy, throttled", throttled, [5, 6], "completed"),
                ]
                reordered = StagedReassignment("a new order only", order, listed=False)
                self._reassign(watch.add(reordered).partition, [5, 4])
                self._await_ends(reassignments)
        return [*reassignments, reordered]

    def cancelled_reassignments(self) -> list[StagedReassignment]:
        """Cancelled; sent elsewhere and then cancelled; and the topic deleted, all mid-copy."""
        with VerdictWatch(self._page) as watch:
            cancelled, reverted, deleted = (
                self._topic(name, [1], megabytes=40)
                for name in ("cancelled", "sent-elsewhere", "deleted")
            )
            with self._throttled(cancelled, _RATE), self._throttled(reverted, _RATE):
                set_throttle(self._cluster, deleted.topic, _RATE)
                reassignments = [
                    self._start(watch, "cancelled", cancelled, [4], "cancelled"),
                    self._start(
                        watch, "sent elsewhere, cancelled", reverted, [4, 5], "reverted-partial"
                    ),
                    self._start(watch, "topic deleted", deleted, [5], "vanished"),
                ]
                time.sleep(_MID_COPY_SECONDS)
                self._reassign(cancelled, None)
                self._reassign(reverted, [4, 6])
                time.sleep(_OUT_OF_SIGHT_SECONDS)
                self._reassign(reverted, None)
                self._admin.delete_topics([deleted.topic])[deleted.topic].result(30)
                self._await_ends(reassignments)
        return reassignments

    def a_starved_reassignment(self) -> list[StagedReassignment]:
        """More is written than the throttle lets through; then the throttle goes."""
        with VerdictWatch(self._page) as watch:
            starved = self._topic("starved", [4, 5], megabytes=20)
            with self._throttled(starved, _STARVING_RATE), self._writing(starved.topic):
                staged = self._start(
                    watch, "throttle starved by writes", starved, [4, 6], "completed"
                )
                staged.due, staged.cause = "throttled out", "throttle-starved"
                staged.also = "diverging"  # while a little still gets through
                self._await_named([staged])
            self._await_ends([staged])
        return [staged]

    def a_target_is_lost(self) -> list[StagedReassignment]:
        """A destination dies mid-copy and comes back; others want to go there meanwhile."""
        with VerdictWatch(self._page) as watch:
            lost = self._topic("target-lost", [1, 2], megabytes=60)
            fenced = self._topic("target-fenced", [2, 3], megabytes=5)
            blocked = self._topic("retained-lost", [1, 2, 3, 6], megabytes=5)
            with self._throttled(lost, _RATE):
                dies = self._start(watch, "target killed mid-copy", lost, [1, 6], "completed")
                time.sleep(_MID_COPY_SECONDS)
                self._cluster.kill_node(6)
                dies.due, dies.trouble_at = "dead target", time.monotonic()
                self._cluster.wait_ready()
                never = self._start(
                    watch, "target fenced from the start", fenced, [2, 6], "completed"
                )
                never.due = "dead target"
                # One replica less than before: the controller waits for all of them.
                waits = self._start(watch, "retained replica down", blocked, [2, 6, 4], "completed")
                waits.due, waits.cause = "blocked", "retained-replica-down"
                reassignments = [dies, never, waits]
                self._await_named(reassignments)
                self._cluster.start_node(6)
                self._await_ends(reassignments)
        return reassignments

    def a_leader_is_lost(self) -> list[StagedReassignment]:
        """The leader dies mid-copy; another replica takes over, and the reassignment goes on."""
        with VerdictWatch(self._page) as watch:
            partition = self._topic("leader-lost", [5, 4], megabytes=60)
            with self._throttled(partition, _RATE):
                staged = self._start(
                    watch, "leader killed mid-copy", partition, [2, 3], "completed"
                )
                time.sleep(_MID_COPY_SECONDS)
                self._cluster.kill_node(5)
                self._cluster.wait_ready()
                self._await_ends([staged])
            self._cluster.start_node(5)
            clear_throttle(self._cluster, partition.topic)
        return [staged]

    def the_controller_is_lost(self) -> list[StagedReassignment]:
        """The active controller dies mid-copy: nothing of the reassignment changes."""
        with VerdictWatch(self._page) as watch:
            partition = self._topic("controller-lost", [4, 5], megabytes=60)
            with self._throttled(partition, _RATE):
                staged = self._start(
                    watch, "active controller killed", partition, [4, 6], "completed"
                )
                time.sleep(_MID_COPY_SECONDS)
                controller = self._quorum_leader()
                self._cluster.kill_node(controller)
                self._await_ends([staged])
            self._cluster.start_node(controller)
            clear_throttle(self._cluster, partition.topic)
        return [staged]

    def a_throttle_is_left(self) -> list[StagedReassignment]:
        """A reassignment ends, and nobody takes its throttle off."""
        with VerdictWatch(self._page) as watch:
            partition = self._topic("throttle-left", [1, 2], megabytes=10)
            set_throttle(self._cluster, partition.topic, _RATE)
            staged = self._start(watch, "throttle left behind", partition, [1, 3], "completed")
            self._await_ends([staged])
            staged.due, staged.trouble_at = ORPHANED, time.monotonic()
            self._await_named([staged], _LEFT_SECONDS)
            clear_throttle(self._cluster, partition.topic)
        return [staged]

    def _start(
        self, watch: VerdictWatch, name: str, partition: TopicPartition, to: list[int], outcome: str
    ) -> StagedReassignment:
        self._say(f"{name}: {partition} to {to}")
        staged = watch.add(StagedReassignment(name, partition, outcome=outcome))
        self._reassign(partition, to)
        return staged

    def _topic(self, name: str, replicas: list[int], megabytes: int) -> TopicPartition:
        """Create a topic of one partition on these brokers, and fill it."""
        topic = NewTopic(name, 1, replica_assignment=[replicas])
        try:
            self._admin.create_topics([topic])[name].result(60)
        except KafkaException as problem:
            raise CaughtupError("stage_failed", f"topic {name}: {problem}") from problem
        count = megabytes * 1_000_000 // _RECORD_BYTES
        produce(self._cluster, name, count, value_bytes=_RECORD_BYTES)
        return TopicPartition(name, 0)

    @contextmanager
    def _throttled(self, partition: TopicPartition, rate: int):
        set_throttle(self._cluster, partition.topic, rate)
        yield
        clear_throttle(self._cluster, partition.topic)

    @contextmanager
    def _writing(self, topic: str):
        """Write 0.9 MB/s meanwhile."""
        stop = Event()
        writer = Thread(
            target=produce,
            args=(self._cluster, topic, 1_000_000),
            kwargs={
                "value_bytes": _RECORD_BYTES,
                "records_per_second": _WRITES_PER_SECOND,
                "stop": stop,
            },
        )
        writer.start()
        try:
            yield
        finally:
            stop.set()
            writer.join()

    def _await_named(
        self, reassignments: Sequence[StagedReassignment], seconds: float = _NAMED_SECONDS
    ) -> None:
        """Wait for the verdicts that are due; one that never comes shows in the result."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(one.named_after is None for one in reassignments):
            time.sleep(0.2)

    def _await_ends(self, reassignments: Sequence[StagedReassignment]) -> None:
        """Wait for the reassignments' ends; one that never comes shows in the result."""
        deadline = time.monotonic() + _END_SECONDS
        while time.monotonic() < deadline and any(one.ended is None for one in reassignments):
            time.sleep(0.2)
