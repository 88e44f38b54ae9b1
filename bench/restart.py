"""``caughtup bench restart``: how long no instance is ready after a start, a stop and a SIGKILL."""

from __future__ import annotations

import json
import statistics
import time
import urllib.error
import urllib.request
from collections import defaultdict
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.cluster.cluster import EmbeddedCluster
    from caughtup.demo.processes.children import Process

_DEADLINE_SECONDS = 90.0
_POLL_SECONDS = 0.02
#: How long an instance needs to settle after its start.
_SETTLED_SECONDS = 3.0


class _ServiceProcess:
    """A process of ``caughtup run``; several have the same settings except the ports."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        from caughtup.demo.processes.children import free_ports

        self._cluster = cluster
        self._port = free_ports(1)[0]
        self._process: Process | None = None

    @property
    def process(self) -> Process:
        assert self._process is not None
        return self._process

    def launch(self) -> None:
        """Start the process without waiting."""
        from caughtup.demo.story.stage import caughtup_command

        path = self._cluster.processes.directory / f"restart-{self._port}.toml"
        servers = json.dumps(self._cluster.bootstrap_servers)
        path.write_text(f"bootstrap_servers = {servers}\nweb_port = {self._port}\n")
        self._process = self._cluster.processes.start(
            path.stem, [*caughtup_command(), "run", "--config", str(path)]
        )

    def wait(self, status: int, says: str) -> None:
        """Wait until ``/ready`` has a status and contains a text. Raises CaughtupError."""
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while (found := self._ready())[0] != status or says not in found[1]:
            if time.monotonic() > deadline or self.process.exit_code is not None:
                raise CaughtupError("bench_failed", f"never {says}: {self.process.first_error()}")
            time.sleep(_POLL_SECONDS)

    def _ready(self) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/ready") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""


@click.command(
    short_help="Measure the time from a stop or a SIGKILL to ready again.",
    epilog=examples("caughtup bench restart --times 3"),
)
@click.option(
    "--times",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How often each case is measured.",
)
@format_option
def restart(times: int, output: str) -> None:
    """Measure how long it takes until an instance is ready, alone and in place of another.

    The embedded broker has next to nothing in __consumer_offsets; reading a long log takes
    additional time. By default, brokers let an empty group wait 3 s for more members.
    """
    try:
        from caughtup.demo.cluster.cluster import EmbeddedCluster
    except ImportError as error:
        raise not_in_checkout(error) from error
    delay = {"group.initial.rebalance.delay.ms": "3000"}
    found: dict[str, list[float]] = defaultdict(list)
    try:
        with EmbeddedCluster(nodes=1, broker_properties=delay) as cluster:
            for _ in range(times):
                for what, seconds in _round(cluster).items():
                    found[what].append(seconds)
    except CaughtupError as error:
        raise UserError(error.message) from error
    if output == "json":
        click.echo(msgspec.json.encode(found).decode())
        return
    table = Table("seconds until ready", "median", "most", title=f"{times} times each")
    for what, each in found.items():
        table.add_row(what, f"{statistics.median(each):.1f}", f"{max(each):.1f}")
    Console().print(table)


def _round(cluster: EmbeddedCluster) -> dict[str, float]:
    """Measure each case once, beginning and ending with no instance."""
    first, second = _ServiceProcess(cluster), _ServiceProcess(cluster)
    found = {}

    def measured(what: str, instance: _ServiceProcess, since: float) -> None:
        instance.wait(200, "ready")
        found[what] = time.monotonic() - since
        time.sleep(_SETTLED_SECONDS)

    began = time.monotonic()
    first.launch()
    measured("started, no other instance", first, began)
    began = time.monotonic()
    first.process.kill()
    first.launch()
    measured("started at once after SIGKILL", first, began)
    second.launch()
    second.wait(503, "is active")
    time.sleep(_SETTLED_SECONDS)
    began = time.monotonic()
    first.process.kill()
    measured("standby, after SIGKILL of the active one", second, began)
    first.launch()
    first.wait(503, "is active")
    time.sleep(_SETTLED_SECONDS)
    began = time.monotonic()
    second.process.terminate()
    measured("standby, after SIGTERM of the active one", first, began)
    first.process.terminate()
    return found
