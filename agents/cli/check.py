"""``caughtup check``: connection, permissions, and what is visible of the cluster."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import click
import msgspec
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaError,
    UnsupportedVersionError,
)
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from rich.console import Console
from rich.table import Table

from caughtup.agents.checkpoints.reading import CheckpointLooks
from caughtup.agents.cli.commands import examples
from caughtup.agents.cli.options import Connection, connection_options, format_option, loaded_from
from caughtup.agents.clock import now_ms
from caughtup.agents.configuration.s3_access import s3_variables
from caughtup.agents.configuration.text import printed
from caughtup.agents.election.instances import list_instances
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.asking.asker import GroupAsker
from caughtup.agents.kafka.clients import result_of
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.first_contact import broker_troubles, connect
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.described.calls import VERSIONS
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.agents.offsets.asking import BY_ASKING
from caughtup.agents.settings import Settings
from caughtup.agents.topics.checks import check_topics, describe_topics
from caughtup.agents.topics.definitions import creation_problem
from caughtup.agents.topics.permissions import (
    READ_OFFSETS,
    Requirement,
    fence_requirement,
    missing,
    requirements,
    with_source,
)
from caughtup.models.polls.asked import AskedGroups
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

_TIMEOUT_SECONDS = 10.0
_HIDDEN = "not known without DESCRIBE and DESCRIBE_CONFIGS on them, which are optional"
_WITHOUT_TOPICS = (
    "none, as set: recommendations are on the page and its API only, followers and Spark's rates don't "
    "reach the service, and there is one instance"
)


class Finding(NamedTuple):
    """The result of one check, with its detail or what to do."""

    check: str
    ok: bool
    detail: str


@click.command(
    short_help="Check connection and permissions.",
    epilog=examples(
        "caughtup check -b broker:9092", "caughtup check --config caughtup.toml --print-config"
    ),
)
@click.option(
    "--print-config",
    is_flag=True,
    help="Print the settings in force and where each was given, secrets hidden; don't connect.",
)
@connection_options
@format_option
def check(output: str, print_config: bool, connection: Connection) -> None:
    """Check connection and permissions; list what is visible. Exits 1 if anything is missing."""
    if print_config and output == "json":
        raise click.UsageError("--print-config prints TOML, not JSON")
    loaded = loaded_from(connection)
    if print_config:
        click.echo(printed(loaded), nl=False)
        return
    settings = loaded.settings
    findings = list(run_checks(settings))
    if output == "json":
        for finding in findings:
            click.echo(msgspec.json.encode(finding._asdict()).decode())
    else:
        # Names and messages come from the cluster: without markup, and never cut.
        table = Table("check", "")
        table.add_column("detail", overflow="fold")
        for finding in findings:
            table.add_row(finding.check, "ok" if finding.ok else "NOT OK", finding.detail)
        Console(markup=False).print(table)
    if failed := [finding for finding in findings if not finding.ok]:
        first = f"{failed[0].check}: {failed[0].detail}"
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        click.echo(f"caughtup: {first}{more}", err=True)
        sys.exit(1)


def run_checks(settings: Settings) -> Iterator[Finding]:
    """Run the checks, and yield the result of each; without a connection, only some."""
    try:
        admin, cluster = connect(settings)
    except UserError as error:
        yield Finding("connect", False, error.message)
        yield from _checkpoints(settings)
        return
    yield Finding("connect", True, f"cluster {cluster} at {settings.bootstrap_servers}")
    yield from _source(admin, settings)
    yield _checked("describe the cluster", lambda: _describe_cluster(admin))
    yield _checked("reach the brokers", lambda: _reach_brokers(admin, settings))
    yield _checked("list reassignments", lambda: _list_reassignments(settings))
    existing = admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
    for wanted in requirements(settings):
        if wanted == READ_OFFSETS:
            continue
        absent = wanted.kind == "topic" and wanted.name not in existing
        yield _checked(
            f"{wanted.kind} {wanted.name}", partial(_granted, admin, settings, wanted, absent)
        )
    if settings.own_topics:
        fenced = fence_requirement(settings).name
        yield _checked(f"transactional id {fenced}", partial(_fenced, admin, settings))
        yield from _topic_problems(admin, settings)
        yield _checked("instances", partial(_instances, settings))
    else:
        yield Finding("own topics", True, _WITHOUT_TOPICS)
    yield from _checkpoints(settings)


def _checkpoints(settings: Settings) -> Iterator[Finding]:
    """Read the checkpoints of Spark's queries once, and yield their problems."""
    if not settings.spark_checkpoints:
        return
    looks = CheckpointLooks(settings.spark_checkpoints, partial(s3_variables, settings))
    found = looks.look({}, now_ms())
    for path, problem in sorted(found.problems.items()):
        yield Finding(f"checkpoint {path}", False, f"{problem.reason}: {problem.message}")
    if found.queries or not found.problems:
        read = ", ".join(sorted(found.queries)) or "no checkpoint of a query that reads Kafka yet"
        yield Finding("spark_checkpoints", True, read)


def _topic_problems(admin: AdminClient, settings: Settings) -> Iterator[Finding]:
    """Yield the problems of caughtup's own topics, or that their configs are hidden."""
    try:
        described = describe_topics(admin, settings)
        found = check_topics(admin, settings, described)
    except KafkaException as error:
        yield Finding("own topics", False, error.args[0].str())
        return
    for topic, problems in sorted(found.items()):
        for problem, why in sorted((problems or {}).items()):
            yield Finding(f"{problem} of {topic}", False, why)
    if not any(found.values()):
        hidden = described.hidden or None in found.values()
        visible = "their configs are right" if found else "they do not exist yet"
        yield Finding("own topics", True, _HIDDEN if hidden else visible)


def _instances(settings: Settings) -> str:
    try:
        found = list_instances(settings)
    except GroupAuthorizationFailedError:
        return "not known without READ on the group"
    standby = f"; standby: {', '.join(found.standby)}" if found.standby else ""
    if len(found.active) > 1:
        return f"{', '.join(found.active)} share the groups{standby}"
    return f"{', '.join(found.active) or 'none'} is active{standby}"


def _source(admin: AdminClient, settings: Settings) -> Iterator[Finding]:
    """Tell where groups come from, which is no failure if they have to be asked about."""
    try:
        source = with_source(admin, settings).source
    except (KafkaException, KafkaError, UserError) as error:
        yield Finding("source", False, str(error) or type(error).__name__)
        return
    if source == "log":
        yield _checked(f"read {CONSUMER_OFFSETS}", lambda: _readable_offsets(admin, settings))
        return
    why = "as set" if settings.source == "ask" else f"{CONSUMER_OFFSETS} can't be read"
    yield Finding("source", True, f"{why}: {BY_ASKING.format(settings.ask_interval)}")
    yield _checked("list groups", lambda: _list_groups(settings))


def _list_groups(settings: Settings) -> str:
    async def groups() -> tuple[int, int]:
        problems: list[str] = []
        async with ClusterProtocol(aiokafka_config(settings)) as protocol:
            found = await GroupAsker(protocol, AskedGroups(), problems.append).listed()
            for broker in found:
                for key in (Key.OFFSET_FETCH, Key.DESCRIBE_GROUPS):
                    try:
                        await protocol.version(broker, key, VERSIONS[key])
                    except KafkaError as error:
                        problems.append(f"broker {broker}: {error}")
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise UserError(f"{problems[0]}{more}")
        return len({one.group for listed in found.values() for one in listed or ()}), len(found)

    number, brokers = asyncio.run(groups())
    if not number:
        raise UserError(f"missing: {READ_OFFSETS}, or DESCRIBE on groups: none is listed")
    return f"{number} on {brokers} brokers; a group is hidden without DESCRIBE on it"


def _readable_offsets(admin: AdminClient, settings: Settings) -> str:
    _granted(admin, settings, READ_OFFSETS, absent=False)
    topics = admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
    if CONSUMER_OFFSETS not in topics:
        return "no group has committed yet: the topic does not exist"
    partitions = topics[CONSUMER_OFFSETS].partitions
    spec = {TopicPartition(CONSUMER_OFFSETS, p): OffsetSpec.latest() for p in partitions}
    futures = admin.list_offsets(spec, request_timeout=_TIMEOUT_SECONDS)
    total = sum(result_of(future).offset for future in futures.values())
    return f"{len(partitions)} partitions, {total} offsets"


def _describe_cluster(admin: AdminClient) -> str:
    described = result_of(admin.describe_cluster(request_timeout=_TIMEOUT_SECONDS))
    return f"{len(described.nodes)} brokers"


def _reach_brokers(admin: AdminClient, settings: Settings) -> str:
    metadata = admin.list_topics(timeout=_TIMEOUT_SECONDS)
    if troubles := broker_troubles(settings, metadata):
        raise UserError(*troubles)
    return f"{len(metadata.brokers)}, each reachable at its advertised address"


def _granted(admin: AdminClient, settings: Settings, wanted: Requirement, absent: bool) -> str:
    if refused := missing(admin, settings, wanted):
        raise UserError(f"missing: {refused}")
    operations = " and ".join(operation.name for operation in wanted.operations)
    if absent:
        if (problem := creation_problem(admin, settings, wanted.name)) is not None:
            raise UserError(problem)
        return "it does not exist yet: `caughtup run` creates it"
    return f"{operations} allowed"


def _fenced(admin: AdminClient, settings: Settings) -> str:
    if refused := missing(admin, settings, fence_requirement(settings)):
        raise UserError(
            f"missing: {refused}: without it, an instance that was replaced can still write"
        )
    return "WRITE allowed"


def _list_reassignments(settings: Settings) -> str:
    async def count() -> int:
        async with ClusterProtocol(aiokafka_config(settings)) as protocol:
            return len(await protocol.list_reassignments())

    try:
        return f"{asyncio.run(count())} partitions in movement"
    except UnsupportedVersionError:
        return "not known: the brokers do not list them"


def _checked(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, check())
    except KafkaException as error:
        return Finding(name, False, error.args[0].str())
    except ClusterAuthorizationFailedError:  # its message has the broker's whole request
        return Finding(name, False, "missing: DESCRIBE on the cluster")
    except (KafkaError, UserError, OSError, TimeoutError) as error:
        return Finding(name, False, str(error) or type(error).__name__)
