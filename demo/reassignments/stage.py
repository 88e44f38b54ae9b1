"""A staged reassignment: its operations on a real cluster, the expected verdict, and those given."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.demo.story.stage import View
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition

_POLL_SECONDS = 0.3
#: Verdicts for which operators are alerted.
ALARMS = ("stalled", "dead target", "throttled out", "blocked", "no source", "diverging")


#: The word for an orphaned throttle, which is no partition's verdict.
ORPHANED = "orphaned throttle"


@dataclass(slots=True)
class StagedReassignment:
    """The reassignment of one partition.

    ``due``: the expected verdict, None for none. ``also``: another verdict that may come before or
    after it. ``cause``: the expected cause. ``outcome``: the expected end. ``trouble_at``: when the
    trouble began, in monotonic seconds; the time until the verdict counts from there.
    """

    name: str
    partition: TopicPartition
    due: str | None = None
    also: str | None = None
    cause: str | None = None
    outcome: str | None = None
    listed: bool = True
    trouble_at: float = field(default_factory=time.monotonic)
    #: When each verdict and cause was first given.
    said: dict[tuple[str, str | None], float] = field(default_factory=dict)
    ended: str | None = None
    seen: bool = False

    @property
    def named_after(self) -> float | None:
        """The seconds from the trouble to the expected verdict; None without that verdict."""
        times = [at for (verdict, _), at in self.said.items() if verdict == self.due]
        return max(0.0, min(times) - self.trouble_at) if times else None

    @property
    def named_cause(self) -> str | None:
        """The cause given with the expected verdict, preferably the expected one."""
        causes = [cause for verdict, cause in self.said if verdict == self.due]
        return next((c for c in causes if c == self.cause), causes[0] if causes else None)

    @property
    def false_alarms(self) -> list[str]:
        """The alarms that were given and not expected."""
        said = {verdict for verdict, _ in self.said}
        return sorted(said & set(ALARMS) - {self.due, self.also})

    @property
    def ok(self) -> bool:
        """Whether all expected verdicts were given, and no false alarm."""
        named = self.due is None or (
            self.named_after is not None and (self.cause is None or self.named_cause == self.cause)
        )
        return (
            named
            and not self.false_alarms
            and self.ended == self.outcome
            and (self.listed or not self.seen)
        )


class VerdictWatch:
    """Records the service's verdicts on reassignments, in a thread, until the context ends.

    ``page`` returns the page's state; failures are retried.
    """

    def __init__(self, page: Callable[[], View]) -> None:
        self._page = page
        self._staged: dict[TopicPartition, StagedReassignment] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="verdict-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._stop.set()
        self._thread.join()

    def add(self, reassignment: StagedReassignment) -> StagedReassignment:
        """Record the verdicts on this reassignment from now on."""
        self._staged[reassignment.partition] = reassignment
        return reassignment

    def _run(self) -> None:
        while not self._stop.wait(_POLL_SECONDS):
            try:
                page = self._page()
            except OSError:
                continue
            self._note(page, time.monotonic())

    def _note(self, page: View, now: float) -> None:
        for row in page["reassignments"]:
            staged = self._staged.get(TopicPartition(row["topic"], row["partition"]))
            if staged is not None and staged.ended is None:
                staged.seen = True
                staged.said.setdefault((row["verdict"], row.get("cause")), now)
        left = {row["name"] for row in page["throttles"] if row["kind"] == "topic"}
        for staged in self._staged.values():
            if staged.partition.topic in left:
                staged.said.setdefault((ORPHANED, None), now)
        for row in page["recent_reassignments"]:
            staged = self._staged.get(TopicPartition(row["topic"], row["partition"]))
            if staged is not None:
                staged.ended = row["outcome"]


#: Reassigns a partition to these brokers; None cancels.
Reassign = Callable[[TopicPartition, list[int] | None], None]

_RECORD_BYTES: Final = 10_000
_WRITES_PER_SECOND: Final = 90.0
_NAMED_SECONDS: Final = 150.0
_END_SECONDS: Final = 240.0


class ReassignmentStage:
    """A cluster whose partitions are reassigned, and the service that watches it.

    ``reassign`` starts or cancels a reassignment, ``page`` returns what the service shows, and
    ``say`` prints each step.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        reassign: Reassign,
        page: Callable[[], View],
        say: Callable[[str], None],
    ) -> None:
        self.cluster = cluster
        self.reassign = reassign
        self._page = page
        self._say = say
        self._admin = AdminClient(cluster.client_config())

    def watch(self) -> VerdictWatch:
        """Return a watch for the service's verdicts."""
        return VerdictWatch(self._page)

    def start(
        self, watch: VerdictWatch, name: str, partition: TopicPartition, to: list[int], outcome: str
    ) -> StagedReassignment:
        """Reassign a partition to these brokers, and record its verdicts."""
        self._say(f"{name}: {partition} to {to}")
        staged = watch.add(StagedReassignment(name, partition, outcome=outcome))
        self.reassign(partition, to)
        return staged

    def topic(self, name: str, replicas: list[int], megabytes: int) -> TopicPartition:
        """Create a topic of one partition on these brokers, and fill it."""
        topic = NewTopic(name, 1, replica_assignment=[replicas])
        try:
            self._admin.create_topics([topic])[name].result(60)
        except KafkaException as problem:
            raise CaughtupError("stage_failed", f"topic {name}: {problem}") from problem
        count = megabytes * 1_000_000 // _RECORD_BYTES
        produce(self.cluster, name, count, value_bytes=_RECORD_BYTES)
        return TopicPartition(name, 0)

    def delete(self, partition: TopicPartition) -> None:
        """Delete a partition's topic."""
        self._admin.delete_topics([partition.topic])[partition.topic].result(30)

    def throttle(self, partition: TopicPartition, rate: int) -> None:
        """Throttle the copying of a partition, in bytes/s, until ``clear_throttle``."""
        set_throttle(self.cluster, partition.topic, rate)

    def clear_throttle(self, partition: TopicPartition) -> None:
        """Remove a partition's throttle."""
        clear_throttle(self.cluster, partition.topic)

    @contextmanager
    def throttled(self, partition: TopicPartition, rate: int) -> Iterator[None]:
        """Throttle the copying of a partition inside the context, in bytes/s."""
        self.throttle(partition, rate)
        yield
        self.clear_throttle(partition)

    @contextmanager
    def writing(self, partition: TopicPartition) -> Iterator[None]:
        """Write 0.9 MB/s to a partition inside the context."""
        stop = Event()
        writer = Thread(
            target=produce,
            args=(self.cluster, partition.topic, 1_000_000),
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

    def await_named(
        self, reassignments: Sequence[StagedReassignment], seconds: float = _NAMED_SECONDS
    ) -> None:
        """Wait for the expected verdicts; a missing one shows in the result."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(one.named_after is None for one in reassignments):
            time.sleep(0.2)

    def await_ends(self, reassignments: Sequence[StagedReassignment]) -> None:
        """Wait for the reassignments' ends; a missing one shows in the result."""
        deadline = time.monotonic() + _END_SECONDS
        while time.monotonic() < deadline and any(one.ended is None for one in reassignments):
            time.sleep(0.2)
