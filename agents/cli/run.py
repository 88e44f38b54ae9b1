"""``caughtup run``: the service, until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from errno import EADDRNOTAVAIL
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from aiokafka.errors import KafkaError
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from caughtup.agents.app import Wired, create_app
from caughtup.agents.cli.commands import examples, missing_extra
from caughtup.agents.cli.options import Connection, connection_options, settings_of
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.first_contact import connect, unreachable
from caughtup.agents.process.fault_log import FaultLog
from caughtup.agents.process.logs import set_up_logging
from caughtup.agents.process.supervisor import Supervisor, describe
from caughtup.agents.process.turns import collect_seldom, switch_often, use_few_arenas
from caughtup.agents.settings import Settings
from caughtup.agents.topics.checks import describe_topics
from caughtup.agents.topics.definitions import create_topics
from caughtup.agents.topics.permissions import missing, requirements, with_source
from caughtup.agents.web.addresses import authority
from caughtup.models.state.cluster import ClusterState
from caughtup.models.watching import Watching
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

log = logging.getLogger(__name__)


@click.command(
    short_help="Run the service.",
    epilog=examples(
        "caughtup run -b broker:9092", "caughtup run --config /etc/caughtup/caughtup.toml"
    ),
)
@connection_options
@click.option("--web-host", metavar="ADDRESS", help="Where to listen. [default: 127.0.0.1]")
@click.option("--web-port", metavar="PORT", help="Which port. [default: 8080]")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="[default: info]"
)
@click.option(
    "--compat-metrics",
    is_flag=False,
    flag_value="kafka_exporter",
    metavar="EXPORTER,…",
    help="Serve lag under the metric names of these exporters, too: kafka_exporter (the default "
    "if none is named), kminion, burrow_exporter, kafka_lag_exporter.",
)
def run(
    web_host: str | None,
    web_port: str | None,
    log_level: str | None,
    compat_metrics: str | None,
    connection: Connection,
) -> None:
    """Run the service beside a cluster: lag, recommendations, /metrics and the page."""
    settings = settings_of(
        connection,
        web_host=web_host,
        web_port=web_port,
        log_level=log_level,
        compat_metrics=compat_metrics,
    )
    set_up_logging(settings.log_level, settings.log_format)
    require_free_port(settings)
    if settings.otlp_endpoint is not None:
        require_otlp()
    with Supervisor() as supervisor:
        try:
            collect_seldom()
            switch_often()
            use_few_arenas()
            asyncio.run(serve(*prepare(settings), supervisor))
        except click.ClickException:
            raise
        except Exception as error:
            log.debug("the service broke", exc_info=error)
            raise UserError(f"the service broke: {describe(error)}") from None


def prepare(settings: Settings) -> tuple[Settings, ClusterState]:
    """Connect, and create what is missing; return the settings with the source. Raises UserError."""
    admin, cluster = connect(settings, keep_trying=True)
    try:
        settings = with_source(admin, settings)
        if settings.own_topics:
            described = describe_topics(admin, settings)
            create_topics(settings, [*described.missing, *described.hidden])
    except KafkaException as error:
        raise unreachable(settings, error.args[0]) from None
    except KafkaError as error:
        raise UserError(f"cannot ask about {CONSUMER_OFFSETS}: {error!r}") from None
    require_permissions(admin, settings)
    state = ClusterState(cluster, settings.parameters(), Watching(settings.watching()))
    FaultLog().attach(state)
    return settings, state


def require_permissions(admin: AdminClient, settings: Settings) -> None:
    """Raise UserError for a missing permission: clients would retry the request for ever."""
    for wanted in requirements(settings):
        try:
            refused = missing(admin, settings, wanted)
        except KafkaException as error:
            raise UserError(f"cannot ask about {wanted.name}: {error.args[0].str()}") from None
        except (KafkaError, OSError) as error:
            raise UserError(f"cannot ask about {wanted.name}: {error!r}") from None
        if refused is not None:
            raise UserError(f"missing: {refused}; `caughtup check` names all that is missing")


async def serve(settings: Settings, state: ClusterState, supervisor: Supervisor) -> None:
    """Run the service until it is stopped, or a part of it breaks for good.

    Raises UserError when one did.
    """
    with _scratch() as scratch:
        wired = create_app(settings, state, Path(scratch))
        async with supervisor.serving(wired.health) as stop:
            try:
                await _until_stopped(wired, stop)
            except OSError as error:
                raise UserError(
                    f"cannot listen on {authority(settings.web_host, settings.web_port)}: {error}"
                ) from None
            finally:
                if wired.app.crashed:
                    supervisor.broke(describe(wired.app.crash_reason))
                supervisor.end(1, "the service ends")
                await wired.app.stop()
    if wired.health.broken is not None:
        raise UserError(f"the service broke: {wired.health.broken}")


def _scratch() -> TemporaryDirectory[str]:
    """Make a directory for the time of the service. Raises UserError where none can be made."""
    try:
        return TemporaryDirectory(prefix="caughtup-")
    except OSError as error:
        raise UserError(
            f"cannot make a temporary directory ({error.strerror}): "
            "mount a tmpfs at /tmp, or name a writable directory in TMPDIR"
        ) from None


async def _until_stopped(wired: Wired, stop: asyncio.Event) -> None:
    # Starting is raced too.
    starting = asyncio.ensure_future(wired.app.start())
    stopping = asyncio.ensure_future(stop.wait())
    crashing = asyncio.ensure_future(wired.app.wait_until_stopped())
    await asyncio.wait({starting, stopping, crashing}, return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        starting.result()
        await asyncio.wait({stopping, crashing}, return_when=asyncio.FIRST_COMPLETED)
    for waiting in (starting, stopping, crashing):
        waiting.cancel()


def require_otlp() -> None:
    """Raise UserError without the extra that an OTLP endpoint needs."""
    try:
        import_module("caughtup.agents.otlp.exporter")
    except ImportError as error:
        raise missing_extra("otlp", error) from None


def require_free_port(settings: Settings) -> None:
    """Raise UserError when the web port is taken, before anything else is started.

    A name may have several addresses, of which this machine has to have one.
    """
    host, port = settings.web_host, settings.web_port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        absent = [address for family, *_, address in found if not _can_listen(family, address)]
        if len(absent) == len(found):
            raise OSError(EADDRNOTAVAIL, os.strerror(EADDRNOTAVAIL))
    except OSError as error:
        raise UserError(
            f"cannot listen on {authority(host, port)} ({error.strerror}): "
            "choose another with --web-port"
        ) from None


def _can_listen(family: int, address: tuple[str | int | bytes, ...]) -> bool:
    """Return whether an address is this machine's. Raises OSError when its port is taken."""
    try:
        probe = socket.socket(family)
    except OSError:  # a machine without IPv6 may still have names with such an address
        return False
    with probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno == EADDRNOTAVAIL:
                return False
            raise
    return True
