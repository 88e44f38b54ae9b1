"""``caughtup bench``: measurements of caughtup on this machine, on a cluster of its own."""

from __future__ import annotations

import click

from caughtup.agents.cli.commands import LazyCommand, LazyGroup


@click.group(cls=LazyGroup, short_help="Measure caughtup on this machine.")
def bench() -> None:
    """Measure caughtup on this machine, on a cluster or in a JVM that is started for it.

    Only a checkout has this command: a wheel is made without the benchmarks.
    """


for origin, short_help in (
    ("caughtup.bench.assign.command:assign", "Decisions beside the published jar's."),
    (
        "caughtup.bench.stalls:churn",
        "Healthy reassignments for half an hour: false alarms, and ETAs.",
    ),
    (
        "caughtup.bench.door.command:door",
        "What others get while the web port is abused.",
    ),
    ("caughtup.bench.fleet:fleet", "A generated fleet's history."),
    ("caughtup.bench.follow:follow", "An application grows, with the follower and without."),
    ("caughtup.bench.freshness:freshness", "From a commit to /metrics."),
    ("caughtup.bench.history:history", "The rate of the history job on Spark."),
    ("caughtup.bench.live:live", "Commits as they come, among many group-partitions."),
    ("caughtup.bench.loop.command:loop", "What a large group costs the event loop."),
    (
        "caughtup.bench.movement.command:movement",
        "Copies and rounds until a changed group is balanced.",
    ),
    ("caughtup.bench.offsets.command:offsets", "The rate of reading __consumer_offsets."),
    ("caughtup.bench.reassignments:reassignments", "Looks at many partitions that are reassigned."),
    ("caughtup.bench.replay.command:replay", "A fleet replayed on one processor and on two."),
    ("caughtup.bench.restart:restart", "From an end or a SIGKILL to ready again."),
    ("caughtup.bench.scrape:scrape", "/metrics of many group-partitions."),
    ("caughtup.bench.stalls:stalls", "What is said of reassignments that fail, and how soon."),
):
    bench.add_command(LazyCommand(origin, short_help))
