"""Rebalances of real consumer groups, each with a cause that is known because it is staged."""

from __future__ import annotations

import json
import random
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.groups.member_process import MemberProcess, records_flow
from tests.support.service import wait_for

CLASSIC, CONSUMER = "classic", "consumer"
#: Of members on each protocol; a coordinator of KIP-848 groups has a session timeout of 45 s.
CONFIGS: dict[str, dict[str, object]] = {
    CLASSIC: {
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 500,
        "max_poll_interval_ms": 300_000,
    },
    CONSUMER: {"group_protocol": "consumer", "max_poll_interval_ms": 300_000},
}
_PARTITIONS = 4


class Named(NamedTuple):
    """The surest cause that the service names, and how long (s) after the rebalance."""

    cause: dict[str, Any]
    seconds: float

    @property
    def about(self) -> str:
        """The client or the topic that it names, empty for neither."""
        return str(self.cause.get("client") or self.cause.get("topic") or "")


class Stage:
    """A group on a cluster that a service watches, its topics, and its members."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        url: str,
        protocol: str,
        rng: random.Random,
        running: ExitStack,
        old_topic: str,
        replicas: list[list[int]] | None = None,
    ) -> None:
        """``old_topic`` was there before the service started: it can't have appeared lately.

        ``replicas`` are those of each partition of the first topic, by default the brokers' choice.
        """
        self.cluster, self.url, self.protocol, self.rng = cluster, url, protocol, rng
        self.running = running
        #: The broker that an incident may lose.
        self.lost = 0
        self.group = f"staged-{uuid.uuid4().hex[:8]}"
        self.prefix = f"{self.group}-topic"
        self.admin = AdminClient(cluster.client_config())
        self.topics = [self.make_topic(replicas), old_topic]
        running.enter_context(records_flow(cluster, self.topics[:1]))

    def make_topic(self, replicas: list[list[int]] | None = None) -> str:
        """Make another topic with the group's prefix."""
        name = f"{self.prefix}-{uuid.uuid4().hex[:6]}"
        placed = {} if replicas is None else {"replica_assignment": replicas}
        self.admin.create_topics([NewTopic(name, _PARTITIONS, **placed)])[name].result(30)
        return name

    def grow(self, topic: str, count: int) -> None:
        """Give a topic more partitions."""
        self.admin.create_partitions([NewPartitions(topic, count)])[topic].result(30)

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        self.admin.delete_topics([topic])[topic].result(30)

    def member(self, name: str, topics: list[str] | None = None, **config: object) -> MemberProcess:
        """Start a member, by default of the first topic."""
        given = {
            **CONFIGS[self.protocol],
            "topic_metadata_refresh_interval_ms": 1_000,
            "client_id": name,
            **config,
        }
        member = MemberProcess(self.cluster, self.group, topics or self.topics[:1], **given)
        return self.running.enter_context(member)

    def view(self) -> dict[str, Any]:
        """Return the group's view, as the page gets it."""
        name = urllib.parse.quote(self.group)
        with urllib.request.urlopen(f"{self.url}api/view?group={name}", timeout=30) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    def settle(self, members: int) -> None:
        """Wait until so many members have partitions and commit, and a little longer."""

        def there() -> bool:
            view = self.view()
            partitions = view.get("partitions", ())
            owners = {one.get("member") for one in partitions} - {None}
            committed = [one for one in partitions if one.get("committed")]
            known = view.get("group", {}).get("members")
            return known == len(owned_by(owners)) == members and len(committed) >= _PARTITIONS

        try:
            wait_for(f"{members} members have partitions and commit", there, 90)
        except AssertionError as error:
            raise AssertionError(f"{error}; the service says {self.view()}") from None
        time.sleep(1.5 + self.rng.random())

    def named(self, act: Callable[[], object], seconds: float, skip: str = "") -> Named:
        """Act, and return what the service says of the first rebalance after that.

        ``skip`` is a cause that may come before the one that is asked for.
        """
        before = {(one["generation"], one["at_ms"]) for one in self.view().get("rebalances", ())}
        act()

        def newer() -> dict[str, Any] | None:
            found = [
                one
                for one in self.view().get("rebalances", ())
                if (one["generation"], one["at_ms"]) not in before
                and one["causes"][0]["kind"] != skip
            ]
            return found[-1] if found else None

        rebalance = wait_for(f"{self.group}: a rebalance is told", newer, seconds)
        waited = time.time() - rebalance["at_ms"] / 1000
        return Named(rebalance["causes"][0], waited)


def owned_by(owners: set[Any]) -> list[str]:
    """Return the members that have partitions, sorted."""
    return sorted(str(one) for one in owners)


class Staged(NamedTuple):
    """What was staged, what the service named, and whether that is right."""

    kind: str
    about: str
    named: Named

    @property
    def is_right(self) -> bool:
        """Whether the cause and the client or topic are those that were staged."""
        return (self.named.cause["kind"], self.named.about) == (self.kind, self.about)


def old_topic(cluster: EmbeddedCluster) -> str:
    """Make a topic, to be called before the service starts."""
    name = f"old-{uuid.uuid4().hex[:8]}"
    admin = AdminClient(cluster.client_config())  # Held: a collected client drops its requests.
    admin.create_topics([NewTopic(name, _PARTITIONS)])[name].result(30)
    return name


def joined(stage: Stage) -> Staged:
    """A second member joins."""
    stage.member("steady")
    stage.settle(1)
    return Staged("joined", "second", stage.named(lambda: stage.member("second"), 30))


def left(stage: Stage) -> Staged:
    """A member closes its consumer."""
    stage.member("steady")
    second = stage.member("second")
    stage.settle(2)
    return Staged("left", "second", stage.named(second.leave, 30))


def session_timed_out(stage: Stage) -> Staged:
    """A member is killed."""
    stage.member("steady")
    doomed = stage.member("doomed")
    stage.settle(2)
    return Staged("session_timed_out", "doomed", stage.named(doomed.kill, 90))


def poll_interval_exceeded(stage: Stage) -> Staged:
    """A member polls no more."""
    stage.member("steady")
    slow = stage.member("slow", max_poll_interval_ms=stage.rng.choice([12_000, 16_000]))
    stage.settle(2)
    return Staged("poll_interval_exceeded", "slow", stage.named(lambda: slow.tell("stall"), 90))


def resubscribed(stage: Stage) -> Staged:
    """One of two members subscribes to another topic as well."""
    stage.member("steady")
    second = stage.member("second")
    stage.settle(2)
    topics = ",".join(stage.topics)
    return Staged(
        "resubscribed", "second", stage.named(lambda: second.tell(f"subscribe {topics}"), 30)
    )


def topic_grew(stage: Stage) -> Staged:
    """The topic gets more partitions."""
    stage.member("steady")
    stage.member("second")
    stage.settle(2)
    topic = stage.topics[0]
    count = _PARTITIONS + stage.rng.randint(1, 4)
    return Staged("topic_grew", topic, stage.named(lambda: stage.grow(topic, count), 60))


def topic_appeared(stage: Stage) -> Staged:
    """A topic is made that matches the members' pattern."""
    pattern = [f"^{stage.prefix}-.*"]
    stage.member("steady", pattern)
    stage.member("second", pattern)
    stage.settle(2)
    made: list[str] = []
    named = stage.named(lambda: made.append(stage.make_topic()), 90)
    return Staged("topic_appeared", made[0], named)


def topic_vanished(stage: Stage) -> Staged:
    """One of the topics that match the members' pattern is deleted."""
    pattern = [f"^{stage.prefix}-.*"]
    doomed = stage.make_topic()
    stage.member("steady", pattern)
    stage.member("second", pattern)
    stage.settle(2)
    # A member may notice before the service lists topics again, and the other one after that.
    named = stage.named(lambda: stage.delete(doomed), 90, skip="resubscribed")
    return Staged("topic_vanished", doomed, named)


def static_member_returned(stage: Stage) -> Staged:
    """A static member returns, and subscribes to one topic more: without that nothing is assigned."""
    stage.member("steady", group_instance_id="one")
    fixed = stage.member("fixed", group_instance_id="two")
    stage.settle(2)
    fixed.leave()
    config = {"group_instance_id": "two"}
    again = stage.named(lambda: stage.member("fixed", stage.topics, **config), 30)
    return Staged("static_member_returned", "fixed", again)


def assignor_changed(stage: Stage) -> Staged:
    """The last member that doesn't know the other assignor leaves in a rolling bounce.

    A coordinator takes the assignor that most members ask for, and range before uniform.
    """
    if stage.protocol == CONSUMER:
        stage.member("bounced", group_remote_assignor="range")
        stage.member("next", group_remote_assignor="uniform")
        last = stage.member("last", group_remote_assignor="uniform")
        stage.settle(3)
    else:
        stage.member("bounced", partition_assignment_strategy="roundrobin,range")
        last = stage.member("last", partition_assignment_strategy="range")
        stage.settle(2)
    return Staged("assignor_changed", "", stage.named(last.leave, 30))


def follow_up(stage: Stage) -> Staged:
    """A member joins a cooperative group: what others revoke is assigned in a second generation."""
    config = {"partition_assignment_strategy": "cooperative-sticky"}
    stage.member("steady", **config)
    stage.settle(1)
    return Staged(
        "follow_up", "", stage.named(lambda: stage.member("second", **config), 30, "joined")
    )


def protocol_converted(stage: Stage) -> Staged:
    """A member on the new protocol joins a classic group, which the coordinator converts."""
    stage.member("steady")
    stage.settle(1)
    config = {"group_protocol": "consumer"}

    def join() -> None:
        given = dict.fromkeys(("session_timeout_ms", "heartbeat_interval_ms"))
        stage.member("second", **config, **given)

    return Staged("protocol_converted", "", stage.named(join, 30))


#: What can be staged on each protocol. A static member's return is no rebalance on the classic one.
SCENARIOS: dict[str, list[Callable[[Stage], Staged]]] = {
    CLASSIC: [
        joined,
        left,
        session_timed_out,
        poll_interval_exceeded,
        resubscribed,
        topic_grew,
        topic_appeared,
        topic_vanished,
        assignor_changed,
        follow_up,
        protocol_converted,
    ],
    CONSUMER: [
        joined,
        left,
        session_timed_out,
        poll_interval_exceeded,
        resubscribed,
        topic_grew,
        topic_appeared,
        topic_vanished,
        static_member_returned,
        assignor_changed,
    ],
}


def staged(
    cluster: EmbeddedCluster,
    url: str,
    protocol: str,
    scenario: Callable[[Stage], Staged],
    seed: int,
    old_topic: str,
) -> Staged:
    """Stage one rebalance, and end its members. ``old_topic`` as in Stage."""
    rng = random.Random(f"{seed} {protocol} {scenario.__name__}")
    with ExitStack() as running:
        return scenario(Stage(cluster, url, protocol, rng, running, old_topic))
