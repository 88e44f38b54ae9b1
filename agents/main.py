"""The command line: one click group, one file for each command."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

import caughtup
from caughtup.agents.cli.assign import assign
from caughtup.agents.cli.check import check
from caughtup.agents.cli.demo import demo
from caughtup.agents.cli.explain import explain
from caughtup.agents.cli.lag import lag
from caughtup.agents.cli.pipeline.main import pipeline
from caughtup.agents.cli.reassignments import reassignments
from caughtup.agents.cli.replay.main import replay
from caughtup.agents.cli.run import run
from caughtup.bench.main import bench


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(caughtup.__version__, prog_name="caughtup")
def main() -> None:
    """Know which copies of which Kafka Streams task are caught up, and what to do about it."""


@main.command(short_help="Print the shell completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL: eval "$(caughtup completion bash)"."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(main, {}, "caughtup", "_CAUGHTUP_COMPLETE").source())


for command in (run, lag, reassignments, explain, assign, check, pipeline, replay, demo, bench):
    main.add_command(command)
