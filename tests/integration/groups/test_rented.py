"""Clusters that refuse what rented ones refuse: lag is right, and what can't be known is said to be unknown.

No product was tried: tests/support/kafka/rented.py has what docs/rented.md says of each. A service runs
beside each set of refusals, with the document's settings, all at the same time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from caughtup.agents.kafka.protocol.client import reassigner
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.demo.cluster.broker_config import Security
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import set_throttle
from caughtup.demo.cluster.topics import create_topics
from caughtup.models import ids
from tests.support.groups.asked import Behind, Groups, standing_groups
from tests.support.kafka import rewriting_rules
from tests.support.kafka.acls import allow
from tests.support.kafka.rented import (
    CONFLUENT,
    EVENT_HUBS,
    MSK,
    ON_ONE_BROKER,
    REDPANDA,
    Rented,
)
from tests.support.kafka.rewriting import Rewriting
from tests.support.kafka.rewriting_rules import Versions
from tests.support.service import Service, commit, wait_for

#: A topic with an open transaction, and the group that reads it.
HELD, HELD_BACK = "held", "held-back"
#: A line of the brokers' authorizer.
_DENIED = re.compile(r"User:(\S+) is Denied operation = (\w+) .*on resource = ([^ ,]+)")
#: What repeats itself does so within so many rounds of questions, of a second each.
_ROUNDS = 12
#: What is refused is asked for at most this often of each broker: by two parts of the service.
_ASKED_MOST = 2


class Place(NamedTuple):
    """A group's partition of the topic that the groups read."""

    group: str
    partition: int


@dataclass
class Staging:
    """A cluster with groups, each product's network before it, and a service behind each."""

    cluster: EmbeddedCluster
    groups: Groups
    lags: Mapping[Place, int]
    proxies: Mapping[str, Rewriting]
    services: Mapping[str, Service]

    def denied(self, user: str) -> Counter[tuple[str, str]]:
        """Count what brokers denied a user, by operation and resource."""
        logs = "".join(self.cluster.node_log(node).read_text() for node in self.cluster.node_ids)
        return Counter(found[1:] for found in _DENIED.findall(logs) if found[0] == user)


@contextmanager
def staged(products: Sequence[Rented], nodes: int) -> Iterator[Staging]:
    """Start a cluster with groups, and a service behind each product's refusals."""
    users = {name: f"of {name}" for name in ("admin", *(one.user for one in products))}
    security = Security("sasl_plaintext", users, authorizer=True)
    with EmbeddedCluster(nodes, security=security) as cluster, ExitStack() as stack:
        admin = AdminClient({"bootstrap.servers": cluster.internal_bootstrap_servers})
        for product in products:
            allow(admin, product.user, *product.rights)
        groups = stack.enter_context(standing_groups(cluster))
        holder = held_back(cluster)
        stack.callback(holder.abort_transaction, 30)
        proxies, services = {}, {}
        for product in products:
            rules = product.rules((groups.consumer,))
            proxy = stack.enter_context(
                Rewriting(cluster.bootstrap_servers, *rules, one_address=product.one_address)
            )
            behind = Behind(proxy.bootstrap_servers, cluster.processes, cluster.security)
            settings = product.settings(cluster.processes.directory)
            service = Service(behind, user=product.user, **{"ask_interval": 1, **settings})
            service.begin()
            stack.callback(service.process.terminate, 10)
            proxies[product.heading], services[product.heading] = proxy, service
        yield Staging(cluster, groups, lags_by_admin(admin, groups.all), proxies, services)


def held_back(cluster: EmbeddedCluster) -> Producer:
    """Make a topic whose last stable offset an open transaction holds back, and its reader."""
    create_topics(cluster, {HELD: 1})
    produce(cluster, HELD, 10)
    commit(cluster, HELD_BACK, HELD, 5)
    config = {"transactional.id": HELD, "transaction.timeout.ms": 600_000}
    producer = Producer({**cluster.client_config(), **config})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(HELD, b"open")
    producer.flush(30)
    return producer


def lags_by_admin(admin: AdminClient, groups: Iterable[str]) -> dict[Place, int]:
    """Return groups' lags in records, as Kafka's own figures have them."""
    lags = {}
    for group in groups:
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group]
        committed = asked.result(30).topic_partitions or []
        places = {TopicPartition(one.topic, one.partition): one.offset for one in committed}
        ends = admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
        for place, offset in places.items():
            lags[Place(group, place.partition)] = ends[place].result(30).offset - offset
    return lags


@pytest.fixture(scope="module")
def staging() -> Iterator[Staging]:
    with staged(ON_ONE_BROKER, 1) as staging:
        yield staging


def shows_what_can_be_known(staging: Staging, product: Rented) -> None:
    """Check a service behind a product's refusals."""
    service, proxy = staging.services[product.heading], staging.proxies[product.heading]
    service.wait_ready()
    groups = staging.groups
    shown = {groups.classic, groups.consumer, *groups.empty}
    if not product.has_consumer_groups:
        shown.discard(groups.consumer)
    if not product.lists_without_members:
        shown -= set(groups.empty)
    expected = {place: lag for place, lag in staging.lags.items() if place.group in shown}
    assert {place.group for place in expected} == shown

    def lags() -> dict[Place, float]:
        return {
            Place(one.labels["group"], int(one.labels["partition"])): one.value
            for one in service.metrics("group_lag_records")
            if one.labels["group"] in groups.all
        }

    wait_for(f"the lags are {expected}", lambda: lags() == expected, 15)
    service.wait_value(1, "group_members", group=groups.classic)
    source = service.metrics("source")
    assert [one.labels["source"] for one in source if one.value] == [product.source]

    untold = set(product.untold)
    wait_for(
        f"it says that it doesn't know {untold}",
        lambda: untold <= set(service.page()["reassignments_missing"]),
    )
    if product.holder:
        wait_for(
            "it says that it doesn't know the holder",
            lambda: any(
                product.holder in why
                for view in service.lines("api/view?view=transactions")
                for why in view["transactions_missing"]
            ),
        )
    age = {"name": "snapshot_age_seconds", "source": "reassignments"}
    if product.listed:
        wait_for("reassignments are listed", lambda: service.value(**age) is not None)
    else:
        assert service.value(**age) is None
    assert service.page()["reassignments"] == []
    if product.source == "ask":
        wait_for(f"{_ROUNDS} rounds", lambda: proxy.requests[Key.LIST_GROUPS] >= _ROUNDS)
    denied = staging.denied(product.user)
    most = _ASKED_MOST * len(staging.cluster.node_ids)
    assert max(denied.values(), default=0) <= most, denied
    for key in product.refused:
        assert proxy.requests[key] <= most
    assert not proxy.not_offered, "it asks for nothing that isn't offered"
    assert not re.search(r"\b(ERROR|CRITICAL|Traceback)\b", service.log), service.log
    assert service.value("active") == 1


@pytest.mark.parametrize("product", [MSK, *ON_ONE_BROKER], ids=lambda one: one.user)
def test_the_document_states_what_is_refused(product: Rented) -> None:
    assert "**Not tried.**" in product.section
    for sentence in product.says:
        assert sentence in product.section


@pytest.mark.parametrize("product", ON_ONE_BROKER, ids=lambda one: one.user)
def test_a_service_behind_what_a_product_refuses(staging: Staging, product: Rented) -> None:
    shows_what_can_be_known(staging, product)


@pytest.mark.thorough
def test_a_service_with_the_settings_for_three_brokers() -> None:
    with staged([MSK], 3) as staging:
        shows_what_can_be_known(staging, MSK)


@pytest.mark.thorough
def test_a_reassignment_where_only_leaders_tell_log_ends() -> None:
    with staged([REDPANDA], 3) as staging:
        cluster, service = staging.cluster, staging.services[REDPANDA.heading]
        proxy, moved = staging.proxies[REDPANDA.heading], ids.TopicPartition("moved", 0)
        proxy.rules = [*proxy.rules, rewriting_rules.without_replicas(led_by=0)]
        admin = AdminClient({"bootstrap.servers": cluster.internal_bootstrap_servers})
        topic = NewTopic(moved.topic, 1, replica_assignment=[[1, 2]])
        admin.create_topics([topic])[moved.topic].result(30)
        produce(cluster, moved.topic, 10_000)
        set_throttle(cluster, moved.topic, 1)
        reassigner(cluster.internal_bootstrap_servers)(moved, [1, 3])
        service.wait_ready()

        def copies() -> list[dict[str, Any]]:
            shown = service.page()["reassignments"]
            return next((one["copies"] for one in shown if one["topic"] == moved.topic), [])

        wait_for("it shows the reassignment", copies)
        wait_for(
            "brokers 2 and 3 don't tell", lambda: sum("unanswered" in c for c in copies()) == 2
        )
        asked = proxy.requests[Key.LIST_PARTITION_REASSIGNMENTS]
        wait_for(
            "some observations",
            lambda: proxy.requests[Key.LIST_PARTITION_REASSIGNMENTS] >= asked + _ROUNDS // 2,
        )
        assert not any(copy.get("missing") for copy in copies()), copies()


def test_a_group_of_event_hubs_is_gone_with_its_last_member(staging: Staging) -> None:
    group, service = "leaving", staging.services[EVENT_HUBS.heading]
    member = Consumer(
        {
            **staging.cluster.client_config(),
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        member.subscribe([HELD])
        wait_for("a record", lambda: member.poll(0.1))
        member.commit(asynchronous=False)
        service.wait_value(1, "group_members", group=group)
    finally:
        member.close()
    service.wait_value(None, "group_members", group=group)
    service.wait_value(None, "group_lag_records", group=group)
    # Elsewhere it has stopped.
    staging.services[CONFLUENT.heading].wait_value(0, "group_members", group=group)


@pytest.mark.parametrize(
    ("versions", "missing"),
    [
        ({"Metadata": 5}, "does not support Metadata 7: it offers 0 to 5"),
        ({"ListGroups": (0, 1)}, "does not support ListGroups 4 or 5: it offers 0 to 1"),
    ],
    ids=["as its emulator", "as in 2019"],
)
def test_an_event_hubs_whose_versions_are_too_old(
    staging: Staging, versions: dict[str, Versions], missing: str
) -> None:
    product = Rented(
        EVENT_HUBS.heading,
        ("Metadata up to 5", "ListGroups and DescribeGroups up to 1"),
        versions={**EVENT_HUBS.versions, **versions},
        offers=EVENT_HUBS.offers,
    )
    for sentence in product.says:
        assert sentence in product.section
    rules = product.rules(())[:1]
    with Rewriting(staging.cluster.bootstrap_servers, *rules, one_address=True) as proxy:
        behind = Behind(
            proxy.bootstrap_servers, staging.cluster.processes, staging.cluster.security
        )
        settings = product.settings(staging.cluster.processes.directory)
        settings["state_file"] += "-old"
        service = Service(behind, user=product.user, **{"ask_interval": 1, **settings})
        service.begin()
        try:
            said = wait_for(
                "it says what is missing",
                lambda: text if missing in (text := service.unready()) else "",
            )
            assert len([line for line in said.splitlines() if missing in line]) == 1, said
            failures = {"name": "probe_errors_total", "probe": "offsets"}
            wait_for("it goes on trying", lambda: (service.value(**failures) or 0) >= 3)
            lines = [line for line in service.log.splitlines() if "asking about groups" in line]
            assert len(lines) == 1, lines
            assert not proxy.not_offered
            assert "Traceback" not in service.log
        finally:
            service.process.terminate(10)
