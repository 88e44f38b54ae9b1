"""Incidents of groups that two services watch: one reads the log, the other asks coordinators.

Each is staged with real clients on topics of four partitions that get records all the time, and says
which verdict it must get from either service.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, Self

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.groups.member_process import MemberProcess, records_flow
from tests.support.kafka.transactions import commit_in_transaction, transactional
from tests.support.service import Service, wait_for

#: By asking, commits are seen at most this often (s): a group's rhythm seems no faster.
ASK_SECONDS = 2.0
_PARTITIONS = 4
_PATIENCE_SECONDS = 120.0
_COMMIT_SECONDS = 0.5
#: For how long (s) a group works as usual before something happens to it.
_USUAL_SECONDS = 14.0
#: A verdict after which nothing else is said: the group is gone.
GONE = "gone"


class Seen(NamedTuple):
    """When (s) after the incident each service first gave the verdict that it must give."""

    reads: float
    asks: float


class Scene:
    """A group of its own on a topic of its own."""

    def __init__(self, cluster: EmbeddedCluster, topic: str, running: ExitStack) -> None:
        self.cluster, self.topic, self.running = cluster, topic, running
        self.group = f"incident-{uuid.uuid4().hex[:8]}"
        self.admin = AdminClient(cluster.client_config())

    def member(self, name: str = "first", **config: object) -> MemberProcess:
        """Start a member that commits what it reads."""
        given = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 500, "client_id": name}
        given |= {"topic_metadata_refresh_interval_ms": 1_000, **config}
        return self.running.enter_context(
            MemberProcess(self.cluster, self.group, [self.topic], **given)
        )

    def committer(self, position: Callable[[int, int], int]) -> Committer:
        """Commit ``position(end, last)`` of each partition again and again, without a member."""
        return self.running.enter_context(Committer(self, position))

    def produce(self, count: int) -> None:
        """Write records to each partition."""
        producer = Producer(self.cluster.client_config())
        for partition in range(_PARTITIONS):
            for _ in range(count):
                producer.produce(self.topic, b"more", partition=partition)
        assert producer.flush(30) == 0

    def everywhere(self, offset: int) -> list[TopicPartition]:
        """Return an offset of each partition."""
        return [TopicPartition(self.topic, number, offset) for number in range(_PARTITIONS)]


class Committer:
    """Commits offsets of all partitions twice a second, on a thread of its own."""

    def __init__(self, scene: Scene, position: Callable[[int, int], int]) -> None:
        self.position = position
        self._scene = scene
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def stop(self) -> None:
        """Commit no more."""
        self._stopped.set()
        self._thread.join(30)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        scene = self._scene
        consumer = Consumer({**scene.cluster.client_config(), "group.id": scene.group})
        last = [0] * _PARTITIONS
        while not self._stopped.wait(_COMMIT_SECONDS):
            try:
                for number in range(_PARTITIONS):
                    place = TopicPartition(scene.topic, number)
                    _, end = consumer.get_watermark_offsets(place, timeout=30)
                    last[number] = max(0, self.position(end, last[number]))
            except KafkaException as error:
                if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:  # a new topic
                    raise
                continue
            consumer.commit(
                offsets=[TopicPartition(scene.topic, n, at) for n, at in enumerate(last)],
                asynchronous=False,
            )
        consumer.close()


def at_the_end(end: int, _: int) -> int:
    """Keep up."""
    return end


def where_it_was(_: int, last: int) -> int:
    """Commit the same offset again."""
    return last


def usual(scene: Scene) -> Committer:
    """Commit as usual for a while."""
    committer = scene.committer(at_the_end)
    time.sleep(_USUAL_SECONDS)
    return committer


def commits_end(scene: Scene) -> None:
    """A group without members stops to commit."""
    usual(scene).stop()


def same_offset_again(scene: Scene) -> None:
    """A group commits the same offset again and again."""
    usual(scene).position = where_it_was


def members_leave(scene: Scene) -> None:
    """The only member leaves."""
    member = scene.member()
    time.sleep(_USUAL_SECONDS)
    member.leave()


def member_is_killed(scene: Scene) -> None:
    """The only member is killed."""
    member = scene.member()
    time.sleep(_USUAL_SECONDS)
    member.kill()


def member_of_the_new_protocol_is_killed(scene: Scene) -> None:
    """The only member of a KIP-848 group is killed."""
    new = {"group_protocol": "consumer", "session_timeout_ms": None, "heartbeat_interval_ms": None}
    member = scene.member(**new)
    time.sleep(_USUAL_SECONDS)
    member.kill()


def member_polls_no_more(scene: Scene) -> None:
    """The only member is alive and polls no more."""
    member = scene.member(max_poll_interval_ms=300_000)
    time.sleep(_USUAL_SECONDS)
    member.tell("stall")


def another_takes_over(scene: Scene) -> None:
    """One of two members is killed, and the other takes over."""
    scene.member("stays")
    doomed = scene.member("doomed")
    time.sleep(_USUAL_SECONDS)
    doomed.kill()


def goes_back(scene: Scene) -> None:
    """A group goes back by 100 offsets, and stays that far behind."""
    scene.produce(200)
    usual(scene).position = lambda _, last: last - 100 if last > 150 else last + 1


def is_reset(scene: Scene) -> None:
    """A group's offsets are reset to the start by a tool."""
    usual(scene).stop()
    places = [ConsumerGroupTopicPartitions(scene.group, scene.everywhere(1))]
    scene.admin.alter_consumer_group_offsets(places)[scene.group].result(30)


def stays_behind(scene: Scene) -> None:
    """A group is behind by a constant number of records."""
    scene.produce(400)
    usual(scene).position = lambda end, _: end - 300


def falls_behind(scene: Scene) -> None:
    """A group reads more slowly than records come."""
    usual(scene).position = lambda _, last: last + 1


def is_behind_a_transaction(scene: Scene) -> None:
    """A group that reads committed records stands at an open transaction."""
    committer = usual(scene)
    # Not beyond the last stable offset: a group that was seen there reads uncommitted records.
    committer.position = where_it_was
    time.sleep(2 * _COMMIT_SECONDS)
    producer = transactional(scene.cluster)
    producer.begin_transaction()
    for number in range(_PARTITIONS):
        producer.produce(scene.topic, b"open", partition=number)
    producer.flush(30)
    scene.running.callback(producer.abort_transaction, 30)
    places = [TopicPartition(scene.topic, number) for number in range(_PARTITIONS)]
    listed = scene.admin.list_offsets(
        dict.fromkeys(places, OffsetSpec.latest()), isolation_level=IsolationLevel.READ_COMMITTED
    )
    stable = itertools.cycle([listed[place].result(30).offset for place in places])
    committer.position = lambda _, last: max(last, next(stable))


def commits_in_transactions(scene: Scene) -> None:
    """A group commits in a transaction that is committed."""
    producer = transactional(scene.cluster)
    commit_in_transaction(producer, scene.group, scene.everywhere(1))
    producer.commit_transaction(30)
    usual(scene)


def aborts_a_commit(scene: Scene) -> None:
    """A transaction with a commit far ahead is aborted: the group is where it was."""
    usual(scene)
    producer = transactional(scene.cluster)
    commit_in_transaction(producer, scene.group, scene.everywhere(1_000_000))
    producer.abort_transaction(30)


def is_deleted(scene: Scene) -> None:
    """A group is deleted."""
    usual(scene).stop()
    scene.admin.delete_consumer_groups([scene.group])[scene.group].result(30)


def topic_is_deleted(scene: Scene) -> None:
    """The topic is deleted: coordinators remove its commits."""
    usual(scene).stop()
    scene.admin.delete_topics([scene.topic])[scene.topic].result(30)


def commits_beyond_the_end(scene: Scene) -> None:
    """A group commits offsets that do not exist."""
    committer = usual(scene)
    committer.position = lambda end, _: end + 1_000_000
    time.sleep(4 * _COMMIT_SECONDS)
    committer.stop()  # a newer commit than the look at the log end may be right


def topic_grows(scene: Scene) -> None:
    """The topic gets more partitions, which a member reads."""
    scene.member()
    time.sleep(_USUAL_SECONDS)
    scene.admin.create_partitions([NewPartitions(scene.topic, 6)])[scene.topic].result(30)


def never_commits(scene: Scene) -> None:
    """A member reads and never commits."""
    scene.member(enable_auto_commit=False, max_poll_interval_ms=8_000)
    time.sleep(_USUAL_SECONDS)


def goes_on(scene: Scene) -> None:
    """A group that had stopped goes on."""
    usual(scene).stop()
    time.sleep(_USUAL_SECONDS)
    scene.committer(at_the_end)


class Incident(NamedTuple):
    """What is staged, and the verdict that each service must give.

    ``slowly``: by asking it may take three intervals more than one: the group's rhythm is known no
    better.
    """

    act: Callable[[Scene], None]
    reads: str
    asks: str
    slowly: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.act.__name__


INCIDENTS = [
    Incident(commits_end, "stopped", "stopped", slowly=True),
    Incident(same_offset_again, "stalled", "stopped", slowly=True),
    Incident(members_leave, "stopped", "stopped", slowly=True),
    Incident(member_is_killed, "stopped", "stopped", slowly=True),
    Incident(member_of_the_new_protocol_is_killed, "stopped", "stopped", slowly=True),
    Incident(member_polls_no_more, "stopped", "stopped", slowly=True),
    Incident(another_takes_over, "ok", "ok"),
    Incident(goes_back, "rewound", "rewound"),
    Incident(is_reset, "rewound", "rewound"),
    Incident(stays_behind, "slow", "slow", slowly=True),
    Incident(falls_behind, "diverging", "diverging", slowly=True),
    Incident(is_behind_a_transaction, "blocked", "blocked", slowly=True),
    Incident(commits_in_transactions, "ok", "ok"),
    Incident(aborts_a_commit, "ok", "ok"),
    Incident(is_deleted, GONE, GONE),
    Incident(topic_is_deleted, GONE, GONE),
    Incident(commits_beyond_the_end, "rewound", "rewound"),
    Incident(topic_grows, "ok", "ok"),
    # No answer has max.poll.interval.ms: Kafka's default of five minutes counts.
    Incident(never_commits, "stopped", "unknown"),
    Incident(goes_on, "ok", "ok"),
]


def verdict(service: Service, group: str) -> str:
    """Return a service's verdict on a group."""
    name = urllib.parse.quote(group)
    with urllib.request.urlopen(f"{service.url}api/view?group={name}", timeout=60) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return str(found["group"].get("status")) if "group" in found else GONE


def staged(
    incident: Incident, cluster: EmbeddedCluster, topic: str, reads: Service, asks: Service
) -> Seen:
    """Stage an incident; return when each service gave its verdict. Raises AssertionError."""
    with ExitStack() as running:
        scene = Scene(cluster, topic, running)
        incident.act(scene)
        began = time.monotonic()
        seen: dict[str, float] = {}
        last: dict[str, str] = {}

        def done() -> bool:
            for name, service in (("reads", reads), ("asks", asks)):
                last[name] = verdict(service, scene.group)
                if name not in seen and last[name] == getattr(incident, name):
                    seen[name] = time.monotonic() - began
            return len(seen) == 2

        try:
            wait_for(f"{incident.name}: both verdicts", done, _PATIENCE_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen}, last {last}") from None
        return Seen(**seen)


@contextmanager
def topics(cluster: EmbeddedCluster, count: int) -> Iterator[list[str]]:
    """Make topics that all get records all the time."""
    names = [f"incidents-{uuid.uuid4().hex[:8]}" for _ in range(count)]
    admin = AdminClient(cluster.client_config())
    for made in admin.create_topics([NewTopic(name, _PARTITIONS) for name in names]).values():
        made.result(30)
    with records_flow(cluster, names):
        yield names
