"""``caughtup check``: can it connect, what may it do, what can it see."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click
import msgspec
from aiokafka.errors import KafkaError
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, OffsetSpec
from rich.console import Console
from rich.table import Table

from caughtup.agents.errors import UserError
from caughtup.agents.kafka_config import aiokafka_config, rdkafka_config
from caughtup.agents.options import connection_options, format_option, settings_of
from caughtup.agents.protocol import ClusterProtocol
from caughtup.agents.settings import Settings
from caughtup.agents.snapshot import cluster_id
from caughtup.agents.topics import CONSUMER_OFFSETS, OWN_TOPICS, topic_name

_TIMEOUT_SECONDS = 10.0


class Finding(NamedTuple):
    """One thing that was checked: what, whether it holds, and what to do or know about it."""

    check: str
    ok: bool
    detail: str


@click.command(short_help="Check connection and permissions.")
@connection_options
@format_option
def check(output: str, **connection: Any) -> None:
    """Check the connection, the permissions, and what can be seen. Exits 1 if something is missing."""
    settings = settings_of(connection)
    findings = list(run_checks(settings))
    if output == "json":
        for finding in findings:
            click.echo(msgspec.json.encode(finding._asdict()).decode())
    else:
        table = Table("check", "", "detail")
        for finding in findings:
            table.add_row(finding.check, "ok" if finding.ok else "MISSING", finding.detail)
        Console().print(table)
    sys.exit(0 if all(finding.ok for finding in findings) else 1)


def run_checks(settings: Settings) -> Iterator[Finding]:
    """Run every check in turn; those that need a connection only once there is one."""
    admin = AdminClient(rdkafka_config(settings))
    try:
        cluster = cluster_id(admin, settings)
    except UserError as error:
        yield Finding("connect", False, error.message)
        return
    yield Finding("connect", True, f"cluster {cluster} at {settings.bootstrap_servers}")
    yield from _readable_offsets(admin)
    yield from _cluster_operations(admin)
    yield _guarded("list reassignments (DESCRIBE on the cluster)", lambda: _list_moves(settings))
    yield from _own_topics(admin, settings)


def _readable_offsets(admin: AdminClient) -> Iterator[Finding]:
    def list_ends() -> str:
        topic = admin.list_topics(CONSUMER_OFFSETS, timeout=_TIMEOUT_SECONDS).topics.get(
            CONSUMER_OFFSETS
        )
        if topic is None or not topic.partitions:
            return "no group has committed yet: the topic does not exist"
        spec = {TopicPartition(CONSUMER_OFFSETS, p): OffsetSpec.latest() for p in topic.partitions}
        futures = admin.list_offsets(spec, request_timeout=_TIMEOUT_SECONDS)
        total = sum(future.result().offset for future in futures.values())
        operations = _operations(admin, CONSUMER_OFFSETS)
        if operations is not None and AclOperation.READ not in operations:
            raise UserError(f"READ on the topic {CONSUMER_OFFSETS} is missing")
        return f"{len(topic.partitions)} partitions, {total} offsets"

    yield _guarded(f"read {CONSUMER_OFFSETS} (READ, DESCRIBE on the topic)", list_ends)


def _operations(admin: AdminClient, topic: str) -> set[AclOperation] | None:
    """Give what we may do with a topic; None where the broker doesn't say."""
    from confluent_kafka import TopicCollection

    future = admin.describe_topics(
        TopicCollection([topic]),
        include_authorized_operations=True,
        request_timeout=_TIMEOUT_SECONDS,
    )[topic]
    operations = future.result().authorized_operations
    return None if operations is None else set(operations)


def _cluster_operations(admin: AdminClient) -> Iterator[Finding]:
    def describe() -> str:
        future = admin.describe_cluster(
            include_authorized_operations=True, request_timeout=_TIMEOUT_SECONDS
        )
        described = future.result()
        return f"{len(described.nodes)} brokers"

    yield _guarded("describe the cluster", describe)


def _own_topics(admin: AdminClient, settings: Settings) -> Iterator[Finding]:
    existing = admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
    for own in OWN_TOPICS:
        name = topic_name(settings, own.name)
        if name not in existing:
            detail = "not there yet: `caughtup run` creates it (CREATE on the topic or the cluster)"
            yield Finding(f"topic {name}", True, detail)
            continue
        operations = _operations(admin, name)
        wanted = {AclOperation.READ, AclOperation.WRITE}
        missing = [] if operations is None else sorted(op.name for op in wanted - operations)
        detail = f"missing: {', '.join(missing)}" if missing else "readable and writable"
        yield Finding(f"topic {name}", not missing, detail)


def _list_moves(settings: Settings) -> str:
    async def count() -> int:
        async with ClusterProtocol(aiokafka_config(settings)) as protocol:
            return len(await protocol.list_reassignments())

    return f"{asyncio.run(count())} partitions in movement"


def _guarded(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, look())
    except KafkaException as error:
        return Finding(name, False, error.args[0].str())
    except (KafkaError, UserError, OSError, TimeoutError) as error:
        return Finding(name, False, str(error) or type(error).__name__)
