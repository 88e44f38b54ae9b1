"""The command line: one click group, one file for each command."""

from __future__ import annotations

import os
import signal

import click
from click.shell_completion import get_completion_class

import caughtup
from caughtup.agents.cli.commands import CheckoutCommand, LazyCommand, LazyGroup, examples
from caughtup.agents.process.exiting import exit_process
from caughtup.agents.process.memory import limit_bytes, too_little

# Commands import numpy, whose threads would take the signals before the supervisor blocks them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

#: The process id in a container. The kernel drops signals that such a process doesn't handle, and
#: SIGTERM may come while it still imports.
_FIRST = 1


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(caughtup.__version__, prog_name="caughtup")
def main() -> None:
    """Watch a Kafka cluster: lag, copies of tasks, rebalances, reassignments, and what to do about them."""


class _ServiceCommand(LazyCommand):
    """The service; importing it may exceed a small memory limit, which must be said before."""

    def load(self) -> click.Command:
        """Import the command."""
        if (problem := too_little(limit_bytes())) is not None:
            click.echo(f"caughtup: {problem}", err=True)
        return super().load()


main.add_command(_ServiceCommand("caughtup.agents.cli.run:run", "Run the service."))


@main.command(
    short_help="Print the shell completion script.",
    epilog=examples('eval "$(caughtup completion bash)"', "caughtup completion fish | source"),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL, of commands and options."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(main, {}, "caughtup", "_CAUGHTUP_COMPLETE").source())


for origin, short_help in (
    ("caughtup.agents.cli.lag.main:lag", "Show the lag of groups and tasks."),
    (
        "caughtup.agents.cli.reassignments.main:reassignments",
        "Show partitions in movement: progress, ETA, and what is wrong.",
    ),
    (
        "caughtup.agents.cli.transactions:transactions",
        "Show open transactions: who holds which partitions and groups back.",
    ),
    (
        "caughtup.agents.cli.connect.main:connect",
        "Show Connect groups: which worker runs what, and what is unassigned.",
    ),
    (
        "caughtup.agents.cli.top.main:top",
        "Watch groups, tasks and reassignments on the whole terminal.",
    ),
    ("caughtup.agents.cli.why:why", "Say why a group lags: the true cause first."),
    ("caughtup.agents.cli.explain.main:explain", "Explain a group's last assignment."),
    (
        "caughtup.agents.cli.history.main:history",
        "Query the history's tables: what happened, when, and who caused it.",
    ),
    (
        "caughtup.agents.cli.configs:configs",
        "Show the configs of applications, and how each is known.",
    ),
    (
        "caughtup.agents.cli.assign:assign",
        "Decide assignments: scenarios in, decisions out.",
    ),
    ("caughtup.agents.cli.check:check", "Check connection and permissions."),
    ("caughtup.agents.cli.rules.main:rules", "Print the alert rules."),
    (
        "caughtup.agents.cli.simulate.main:simulate",
        "Play a change to a group in virtual time: what would it cost?",
    ),
    ("caughtup.agents.cli.simulate.safe:safe", "Check whether an instance can be stopped now."),
    (
        "caughtup.agents.cli.replay.main:replay",
        "Decide recorded generations again under other settings.",
    ),
    (
        "caughtup.agents.cli.mcp.main:mcp",
        "Answer programs that speak the Model Context Protocol (MCP).",
    ),
    (
        "caughtup.agents.cli.files:files",
        "Write rules, dashboards, docs and the follower into a directory.",
    ),
):
    main.add_command(LazyCommand(origin, short_help))


@main.group(cls=LazyGroup, short_help="Run the jobs on Spark.")
def pipeline() -> None:
    """Run jobs on Spark: record the history of a cluster, and use it."""


for origin, short_help in (
    (
        "caughtup.agents.cli.pipeline_tables:compact",
        "Merge the history's small files into large ones.",
    ),
    (
        "caughtup.agents.cli.pipeline_tables:convert",
        "Make Delta Lake tables of the history that 0.1 wrote.",
    ),
    (
        "caughtup.agents.cli.pipeline_jobs:generations",
        "Record the generations of Kafka Streams groups.",
    ),
    (
        "caughtup.agents.cli.pipeline_jobs:history",
        "Write what happens on the cluster to Delta Lake tables.",
    ),
    ("caughtup.agents.cli.pipeline_jobs:rates", "Measure how fast copies catch up."),
):
    pipeline.add_command(LazyCommand(origin, short_help))
for origin, short_help, instead in (
    (
        "caughtup.demo.command:demo",
        "Start a demo cluster on this machine and watch it.",
        "make demo",
    ),
    (
        "caughtup.bench.main:bench",
        "Measure caughtup on this machine.",
        "make install && .venv/bin/caughtup bench --help",
    ),
):
    main.add_command(CheckoutCommand(origin, short_help, instead))


def _end(received: int, _: object) -> None:
    os._exit(128 + received)


def program() -> None:
    """Run the command line and end the process."""
    if os.getpid() == _FIRST:
        signal.signal(signal.SIGTERM, _end)
    try:
        main(prog_name="caughtup")
    except SystemExit as end:
        exit_process(end.code)
        raise
