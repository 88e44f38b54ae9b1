"""Every epoch of real groups is decided again, while the service runs, as their coordinator did."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.pipelines.java.command_lines import quick_start
from caughtup.pipelines.java.find import find_java
from caughtup.pipelines.java.jars import classpath
from tests.integration.conftest import MakeTopic
from tests.integration.groups.test_explain import MEMBERS, java_members, librdkafka_members
from tests.support.groups.member_process import MemberProcess
from tests.support.oracles import compiled_java
from tests.support.releases import broker_classpath
from tests.support.service import Service, caughtup, wait_for


@pytest.fixture(
    scope="module",
    params=["4.3.1", pytest.param("4.4.0", marks=[pytest.mark.thorough, pytest.mark.timeout(300)])],
)
def cluster(
    request: pytest.FixtureRequest, shared_cluster: EmbeddedCluster
) -> Iterator[EmbeddedCluster]:
    """The shared cluster, and brokers of the release whose coordinators decide otherwise."""
    if request.param == "4.3.1":
        yield shared_cluster
        return
    with EmbeddedCluster(nodes=2, kafka=broker_classpath(request.param)) as cluster:
        yield cluster


class Decided:
    """What the service says about a group's decisions."""

    def __init__(self, service: Service, group: str) -> None:
        self.service, self.group = service, group

    def counts(self) -> Counter[str]:
        """Return the number of decisions by result."""
        found: Counter[str] = Counter()
        for sample in self.service.metrics("group_decisions_total"):
            labels = sample.labels
            if labels["group"] == self.group:
                found[labels["result"]] += int(sample.value)
        return found

    def view(self) -> dict[str, object]:
        url = f"{self.service.url}api/view?group={self.group}"
        with urllib.request.urlopen(url, timeout=30) as got:
            found: dict[str, object] = json.loads(got.read())
        return found

    def after(self, what: str, act: Callable[[], object], members: int) -> None:
        """Act, and wait until another assignment is decided and the group has so many members."""
        before = sum(self.counts().values())
        act()

        def there() -> bool:
            known = self.service.value("group_members", group=self.group)
            return sum(self.counts().values()) > before and known == members

        try:
            wait_for(what, there, 60)
        except AssertionError as error:
            raise AssertionError(
                f"{what}: {self.counts()}, {self.view().get('decision')}, "
                f"members {self.service.value('group_members', group=self.group)} of {members}"
            ) from error
        assert not set(self.counts()) - {"match", "consistent"}, (
            what,
            self.counts(),
            self.view()["decision"],
        )


@contextmanager
def coordinated_java_members(
    cluster: EmbeddedCluster, group: str, assignor: str, topics: list[str], count: int
) -> Iterator[Callable[[list[str]], None]]:
    """Run members on the new protocol in Java's client; yield what subscribes them otherwise."""
    path = os.pathsep.join((classpath(), str(compiled_java([MEMBERS]))))
    command = [str(find_java().program), *quick_start(), "-cp", path, "oracles.GroupMembers"]
    given = [cluster.bootstrap_servers, group, assignor, ",".join(topics), str(count), "consumer"]
    with subprocess.Popen(
        [*command, *given], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:

        def subscribe(to: list[str]) -> None:
            assert process.stdin is not None
            process.stdin.write(f"{','.join(to)}\n")
            process.stdin.flush()

        try:
            yield subscribe
        finally:
            process.kill()


@pytest.mark.heavy
def test_every_epoch_of_groups_on_the_new_protocol_matches(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str, tmp_path: Path
) -> None:
    assignors = ("uniform", "range")
    topics = [[make_topic(partitions=count) for count in (5, 3, 4)] for _ in assignors]
    groups = [Decided(service, f"{group}-{assignor}") for assignor in assignors]
    with ThreadPoolExecutor(len(assignors)) as at_once:
        for counts in at_once.map(partial(_played, cluster), groups, assignors, topics):
            assert counts["match"] >= 9, counts
    for decided, assignor in zip(groups, assignors, strict=True):
        decision = decided.view()["decision"]
        assert decision == {"assignor": assignor, "result": "match", "client": "group-coordinator"}
        of_group = ("explain", "-b", cluster.bootstrap_servers, decided.group)
        explained = caughtup(*of_group, directory=tmp_path)
        assert f"it assigns by {assignor} next" in explained.out, explained


def _played(
    cluster: EmbeddedCluster, decided: Decided, assignor: str, topics: list[str]
) -> Counter[str]:
    """Let members come and go, subscribe to other topics, and a topic grow; return the results."""
    config: dict[str, object] = {
        "group_protocol": "consumer",
        "group_remote_assignor": assignor,
        "topic_metadata_refresh_interval_ms": 1_000,
    }
    group, admin = decided.group, AdminClient(cluster.client_config())
    with ExitStack() as running:
        members: list[MemberProcess] = []

        def join(*read: str, **more: object) -> None:
            member = MemberProcess(cluster, group, list(read), **config, **more)
            members.append(running.enter_context(member))

        decided.after("the first joins", lambda: join(*topics[:2]), 1)
        decided.after("a second joins", lambda: join(*topics[:2]), 2)
        decided.after("a static one joins", lambda: join(*topics[:2], group_instance_id="s"), 3)
        decided.after("one joins with a topic more", lambda: join(*topics), 4)
        decided.after(
            "a topic grows",
            lambda: admin.create_partitions([NewPartitions(topics[0], 9)])[topics[0]].result(),
            4,
        )
        decided.after("one leaves", members[1].leave, 3)
        subscribe: list[Callable[[list[str]], None]] = []

        def java_joins() -> None:
            java = coordinated_java_members(cluster, group, assignor, topics[:2], 3)
            subscribe.append(running.enter_context(java))

        decided.after("members of Java join", java_joins, 6)
        decided.after("they resubscribe", lambda: subscribe[0](topics[1:]), 6)
        decided.after("one subscribes to a pattern", lambda: join(f"^{topics[0][:-2]}.*"), 7)
        counts = wait_for("all that waited are settled", lambda: _settled(decided), 90)
        wait_for(
            "the coordinator names the assignor",
            lambda: decided.view().get("next_assignor") == assignor,
        )
    print(f"{group}: {assignor}: {dict(counts)}")
    return counts


def _settled(decided: Decided) -> Counter[str] | None:
    counts = decided.counts()
    view = decided.view()["decision"]
    assert isinstance(view, dict)
    return counts if view["result"] == "match" else None


def test_every_generation_of_classic_groups_matches(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str
) -> None:
    topics = [make_topic(partitions=6), make_topic(partitions=3)]
    groups = {
        f"{group}-java": java_members(cluster, f"{group}-java", "cooperative-sticky", topics),
        f"{group}-librdkafka": librdkafka_members(
            cluster, f"{group}-librdkafka", topics, partition_assignment_strategy="range"
        ),
    }
    clients = {"java": "kafka-clients", "librdkafka": "librdkafka"}
    with ExitStack() as running:
        for members in groups.values():
            running.enter_context(members)
        for name in groups:
            one = Decided(service, name)

            def both(one: Decided = one, name: str = name) -> bool:
                return service.value("group_members", group=name) == 2 and one.counts()["match"] > 0

            wait_for(f"{name} is decided", both, 60)
            decision = one.view()["decision"]
            assert isinstance(decision, dict)
            assert decision["result"] == "match"
            assert decision["client"] == clients[name.rpartition("-")[2]]
            assert one.counts().keys() == {"match"}, (one.counts(), decision)


def test_every_epoch_of_an_application_on_the_streams_protocol_matches(
    cluster: EmbeddedCluster,
    service: Service,
    group: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    application = StreamsApplication(
        cluster, group, partitions=4, properties={"group.protocol": "streams"}
    )
    decided = Decided(service, group)
    with application:
        decided.after("the first starts", lambda: application.start_instance("one"), 1)
        produce(cluster, application.source, 100, keys=50)
        decided.after("the second starts", lambda: application.start_instance("two"), 2)
        decided.after("a third starts", lambda: application.start_instance("three"), 3)
        counts = wait_for("it is settled", lambda: _settled(decided), 90)
        decision = decided.view()["decision"]
        names_it = request.node.callspec.params["cluster"] == "4.4.0"
        named = "sticky" if names_it else ""
        says = "it assigns by sticky next" if names_it else "the coordinator names none"
        wait_for(
            f"the coordinator names {named}",
            lambda: decided.view().get("next_assignor") == named,
        )
        explained = caughtup("explain", "-b", cluster.bootstrap_servers, group, directory=tmp_path)
        assert says in explained.out, explained
    assert isinstance(decision, dict)
    assert decision["assignor"] == "sticky"
    print(f"{group}: {dict(counts)}, {decision}")
