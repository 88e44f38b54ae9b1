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
    (
        "caughtup.bench.asking:asking",
        "Measure what it costs to ask coordinators about every group.",
    ),
    (
        "caughtup.bench.assign.command:assign",
        "Compare the speed of decisions with the published jar's.",
    ),
    (
        "caughtup.bench.stalls:churn",
        "Watch healthy reassignments for half an hour: false alarms, and ETAs.",
    ),
    (
        "caughtup.bench.door.command:door",
        "Measure what other clients get while the web port is abused.",
    ),
    (
        "caughtup.bench.decisions:decisions",
        "Measure the time from a generation to its decision, fenced or not.",
    ),
    ("caughtup.bench.fleet:fleet", "Generate the history of a fleet of groups."),
    ("caughtup.bench.follow:follow", "Grow an application with the follower and without it."),
    (
        "caughtup.bench.footprint:footprint",
        "Measure the service's CPU and memory at rest, live and looked at.",
    ),
    ("caughtup.bench.freshness:freshness", "Measure the time from a commit to /metrics."),
    ("caughtup.bench.history:history", "Measure the rate of the history job on Spark."),
    ("caughtup.bench.live:live", "Measure the work on live commits, among many group-partitions."),
    ("caughtup.bench.loop.command:loop", "Measure what a large group costs the event loop."),
    (
        "caughtup.bench.movement.command:movement",
        "Count copies and rounds until a changed group is balanced.",
    ),
    ("caughtup.bench.offsets.command:offsets", "Measure the rate of reading __consumer_offsets."),
    (
        "caughtup.bench.reassignments:reassignments",
        "Measure observations of many partitions that are reassigned.",
    ),
    ("caughtup.bench.replay.command:replay", "Replay a fleet on one processor and on two."),
    ("caughtup.bench.restart:restart", "Measure the time from a stop or a SIGKILL to ready again."),
    ("caughtup.bench.scrape:scrape", "Measure /metrics with many group-partitions."),
    (
        "caughtup.bench.shared:shared",
        "Measure the CPU and memory of instances that share the groups.",
    ),
    (
        "caughtup.bench.stalls:stalls",
        "Show the verdicts on reassignments that fail, and how soon they come.",
    ),
):
    bench.add_command(LazyCommand(origin, short_help))
