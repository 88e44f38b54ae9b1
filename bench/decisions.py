"""``caughtup bench decisions``: how soon a generation's decision can be read, and what the fence costs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.bench.figures import Figures
from caughtup.bench.freshness import summary
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.errors import CaughtupError
from caughtup.models.records.topics import RECOMMENDATIONS

if TYPE_CHECKING:
    from caughtup.demo.cluster.cluster import EmbeddedCluster

#: By user: whether the service may write in transactions.
_USERS = {"fenced": True, "plain": False}
_PROCESSES, _TASKS = 3, 24
_READY_SECONDS, _DECIDED_SECONDS = 60.0, 30.0
_POLL_SECONDS = 0.1
_PAUSE_SECONDS = 0.2


@click.command(
    short_help="Measure the time from a generation to its decision, fenced or not.",
    epilog=examples("caughtup bench decisions --generations 50"),
)
@click.option(
    "--generations",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="How many generations.",
)
@format_option
def decisions(generations: int, output: str) -> None:
    """Measure how long after the broker has a generation a reader gets its decision.

    A generated group of 24 tasks on three processes, a generation at a time. Two services decide
    each: one may write in transactions, by which a replaced instance is fenced, and the other may
    not. The broker has an authorizer, and the readers read what is committed.
    """
    try:
        from caughtup.demo.cluster.broker_config import Security
        from caughtup.demo.cluster.cluster import EmbeddedCluster
    except ImportError as error:
        raise not_in_checkout(error) from error
    security = Security(
        "sasl_plaintext", {name: f"of {name}" for name in ("admin", *_USERS)}, authorizer=True
    )
    try:
        with EmbeddedCluster(nodes=1, security=security) as cluster:
            found = _measure(cluster, generations)
    except CaughtupError as error:
        raise UserError(error.message) from error
    if output == "json":
        click.echo(msgspec.json.encode(found).decode())
        return
    table = Table("milliseconds", *found, title=f"Generation to decision, {generations} times")
    for name in ("median", "p90", "p99", "max"):
        each = (f"{1000 * figures[f'{name}_seconds']:.0f}" for figures in found.values())
        table.add_row(name, *each)
    Console().print(table)


def _measure(cluster: EmbeddedCluster, generations: int) -> dict[str, Figures]:
    from caughtup.demo.cluster.load import produce_empty
    from caughtup.demo.cluster.topics import create_topics
    from caughtup.demo.fleet.large_group import CHANGELOG, END_OFFSET, GROUP, SOURCE, LargeGroup
    from caughtup.demo.fleet.offset_commits import (
        RawRecord,
        make_offsets_topic,
        offsets_producer,
        produce_record,
    )

    _allow(cluster)
    group = LargeGroup(_PROCESSES, _TASKS)
    create_topics(cluster, {SOURCE: group.tasks, CHANGELOG: group.tasks})
    make_offsets_topic(cluster)
    produce_empty(cluster, group.partitions(), END_OFFSET)
    admin = AdminClient(cluster.client_config())
    known = admin.list_topics("__consumer_offsets", timeout=10).topics["__consumer_offsets"]
    home = coordinator_partition(GROUP, len(known.partitions))
    for user in _USERS:
        _start_service(cluster, user)
    producer = offsets_producer(cluster.internal_bootstrap_servers, linger_ms=0)
    seconds: dict[str, list[float]] = {user: [] for user in _USERS}
    with _reading(cluster, "fenced") as fenced, _reading(cluster, "plain") as plain:
        for number in range(1, generations + 2):
            at_ms = now_ms()
            produce_record(producer, RawRecord(home, 0, at_ms, *group.rebalance(at_ms)))
            producer.flush()
            written = time.monotonic()
            for user, heard in (("fenced", fenced), ("plain", plain)):
                at = _decided(heard, number)
                if number > 1:  # the first one also waits for what is read at the start
                    seconds[user].append(at - written)
            time.sleep(_PAUSE_SECONDS)
    return {user: _figures(each) for user, each in seconds.items()}


def _figures(seconds: list[float]) -> Figures:
    figures = summary(seconds)
    figures["generations"] = figures.pop("commits")
    return figures


def _allow(cluster: EmbeddedCluster) -> None:
    """Give the users all rights but one: only some may write in transactions."""
    rights = [
        (ResourceType.TOPIC, "*", AclOperation.ALL),
        (ResourceType.GROUP, "*", AclOperation.ALL),
        (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE),
    ]
    bindings = []
    for user, is_fenced in _USERS.items():
        of_user = [*rights]
        if is_fenced:
            of_user.append((ResourceType.TRANSACTIONAL_ID, "*", AclOperation.WRITE))
        bindings += [
            AclBinding(
                kind,
                name,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for kind, name, operation in of_user
        ]
    admin = AdminClient(cluster.client_config())  # held: a collected client drops its requests
    for done in admin.create_acls(bindings).values():
        done.result(30)


def _start_service(cluster: EmbeddedCluster, user: str) -> None:
    """Start a service as a user, and wait until it says that it is active."""
    from caughtup.demo.story.stage import caughtup_command

    path = Path(cluster.processes.directory) / f"decisions-{user}.toml"
    own = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "application_id": user,
        "topic_prefix": f"{user}-",
        "web_port": 0,
        "end_offsets_interval": _POLL_SECONDS,
    }
    kafka = {**cluster.security.client_config(user)}
    lines = [f"{name} = {json.dumps(value)}" for name, value in own.items()]
    lines += ["[kafka]", *(f'"{name}" = {json.dumps(value)}' for name, value in kafka.items())]
    path.write_text("\n".join(lines) + "\n")
    process = cluster.processes.start(
        path.stem, [*caughtup_command(), "run", "--config", str(path)]
    )
    deadline = time.monotonic() + _READY_SECONDS
    while "active: " not in process.output():
        if time.monotonic() > deadline or process.exit_code is not None:
            raise CaughtupError("bench_failed", f"never active: {process.first_error()}")
        time.sleep(_POLL_SECONDS)


@contextmanager
def _reading(cluster: EmbeddedCluster, user: str) -> Iterator[dict[int, float]]:
    """Read a service's decisions; yield when each generation's was read (s, monotonic)."""
    consumer = Consumer({**cluster.client_config(), "group.id": f"reader-{user}"})
    consumer.assign([TopicPartition(f"{user}-{RECOMMENDATIONS}", 0, OFFSET_BEGINNING)])
    heard: dict[int, float] = {}
    stopped = threading.Event()

    def read() -> None:
        while not stopped.is_set():
            message = consumer.poll(_POLL_SECONDS)
            if message is not None and message.error() is None:
                at = time.monotonic()
                heard.setdefault(json.loads(message.value() or b"{}").get("generation", 0), at)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        stopped.set()
        thread.join()
        consumer.close()


def _decided(heard: dict[int, float], generation: int) -> float:
    deadline = time.monotonic() + _DECIDED_SECONDS
    while generation not in heard:
        if time.monotonic() > deadline:
            raise CaughtupError("bench_failed", f"generation {generation} is not decided")
        time.sleep(_POLL_SECONDS / 20)
    return heard[generation]
