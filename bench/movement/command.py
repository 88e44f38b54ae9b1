"""``caughtup bench movement``: what a change of membership costs, recommended and by Kafka."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.agents.progress import Progress
from caughtup.bench.figures import Figures, printed
from caughtup.bench.movement.changes import CHANGES, VARIETIES, Change, Variety, changed_group
from caughtup.bench.movement.fewest import fewest_copies
from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.simulation.rounds import PlayedRounds, play

if TYPE_CHECKING:
    from caughtup.demo.apps.published_assignor import PublishedAssignor

#: With racks and more tasks, Kafka's search takes seconds for each of hundreds of decisions.
_MOST_TASKS_WITH_RACKS = 100


def kafka_assignor(
    published: PublishedAssignor, change: Change, variety: Variety
) -> tuple[str, Callable[[Scenario], Decision]] | None:
    """Return a name and a function that decides like Kafka; None if that takes too long."""
    if variety.racks and change.tasks > _MOST_TASKS_WITH_RACKS:
        return None
    if variety.racks or variety.tags:
        return "our reproduction", decide
    return "the published jar", lambda scenario: _by_the_jar(published, scenario)


def _by_the_jar(published: PublishedAssignor, scenario: Scenario) -> Decision:
    """Return the published jar's decision, which does not show which standbys are warm-ups."""
    configs = scenario.configs
    published.load(
        {
            "assignor": "high_availability",
            "config": {
                "acceptable.recovery.lag": configs.acceptable_recovery_lag,
                "max.warmup.replicas": configs.max_warmup_replicas,
                "num.standby.replicas": configs.num_standby_replicas,
                "probing.rebalance.interval.ms": configs.probing_rebalance_interval_ms,
            },
            "tasks": {str(task): {"stateful": True} for task in scenario.stateful},
            "clients": {
                str(client.process_id): {
                    "capacity": client.capacity,
                    "previous_active": [str(task) for task in client.previous_active],
                    "previous_standby": [str(task) for task in client.previous_standby],
                    "lags": {str(task): lag for task, lag in client.lags.items()},
                }
                for client in scenario.clients
            },
        }
    )
    decided = published.decide().decision
    return Decision(
        decided["probing_rebalance_needed"],
        {
            ProcessId.parse(process): ClientDecision(
                tuple(map(TaskId.parse, given["active"])),
                tuple(map(TaskId.parse, given["standby"])),
                (),
            )
            for process, given in decided["clients"].items()
        },
        tuple,
    )


#: The promises: at most this many times the fewest possible copies, and this many extra rebalances.
MOST_COPIES_RATIO = 1.1
MORE_ROUNDS = 3


@click.command(
    short_help="Count copies and rounds until a changed group is balanced.",
    epilog=examples("caughtup bench movement --seeds 20"),
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How many groups of each kind minimal_movement balances.",
)
@click.option(
    "--kafka-seeds",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="How many of these groups HighAvailabilityTaskAssignor balances, too.",
)
@click.option("--only", default="", help="Only groups with this in their name, such as tags.")
@click.option(
    "--plain", is_flag=True, help="Leave out the groups with client tags and those with racks."
)
@format_option
def movement(seeds: int, kafka_seeds: int, only: str, plain: bool, output: str) -> None:
    """Change the members of balanced groups, and count until they are balanced again.

    Every copy is caught up by the next rebalance. Kafka's figures are those of the published jar;
    with tags or racks they are those of our HighAvailabilityTaskAssignor, which decides the same.
    The exit status is 1 if a property that is promised for minimal_movement does not hold.
    """
    varieties = [
        one for one in VARIETIES if only in str(one) and not (plain and (one.tags or one.racks))
    ]
    if not varieties:
        known = "; ".join(map(str, VARIETIES))
        raise UserError(f"no group has {only!r} in its name: there are {known}")
    try:
        measured = measure_movement(CHANGES, varieties, seeds, kafka_seeds)
        figures = printed(measured, output, movement_table)
    except ImportError as error:
        raise not_in_checkout(error) from error
    except CaughtupError as error:
        raise UserError(error.message) from error
    if any(figure["broken"] for figure in figures):
        raise SystemExit(1)


def measure_movement(
    changes: Sequence[Change], varieties: Sequence[Variety], seeds: int, kafka_seeds: int
) -> Iterator[dict[str, object]]:
    """Play each change of each variety; ``broken``: the promises that some seed breaks.

    Raises CaughtupError when the jar cannot be run.
    """
    from caughtup.demo.apps.published_assignor import PublishedAssignor

    with (
        PublishedAssignor() as published,
        Progress().task("Playing", len(changes) * len(varieties) * seeds) as advance,
    ):
        for variety in varieties:
            for change in changes:
                ours, theirs, fewest = [], [], []
                for seed in range(seeds):
                    group = changed_group(change, variety, seed)
                    ours.append(play(replace(group, assignor="minimal_movement")))
                    fewest.append(fewest_copies(group))
                    by = kafka_assignor(published, change, variety)
                    if seed < kafka_seeds and by is not None:
                        kafkas = replace(group, assignor="high_availability")
                        theirs.append(play(kafkas, decide=by[1]))
                    advance(1)
                yield {
                    "change": str(change),
                    "variety": str(variety),
                    "seeds": seeds,
                    "ours": _summary(ours),
                    **_bound(ours, fewest),
                    "broken": sorted(
                        {
                            promise
                            for outcome, least in zip(ours, fewest, strict=True)
                            for promise in broken_promises(outcome, least, variety)
                        }
                    ),
                    "kafka": {"by": by[0], **_summary(theirs)} if by and theirs else None,
                }


def broken_promises(outcome: PlayedRounds, fewest: int | None, variety: Variety) -> Iterator[str]:
    """Yield the promises of minimal_movement that an outcome breaks.

    If no placement is balanced with the given tags, nothing is promised about the number of copies.
    If standbys are spread over tags, a warm-up may be dropped.
    """
    most = outcome.scenario.configs.max_warmup_replicas
    if not outcome.converged:
        yield "converges"
    if fewest is not None and outcome.copies_built > MOST_COPIES_RATIO * fewest:
        yield "copies"
    if outcome.rounds > outcome.copies_built / most + MORE_ROUNDS:
        yield "rounds"
    if outcome.avoidable_cold_hand_overs:
        yield "no avoidable cold hand-over"
    if outcome.active_spread > 1:
        yield "spread"
    if outcome.most_extra_copies > most:
        yield "extra copies"
    if outcome.wasted_warm_ups and not (variety.tags and variety.standbys):
        yield "no wasted warm-up"


def movement_table(figures: Sequence[Figures]) -> Table:
    """Return the figures as a table: means over the seeds, except the ratio."""
    table = Table(
        title="Until a changed group is balanced again: means",
        caption="Ratio: the most copies built, over the fewest with which any assignor could "
        "balance the group. None: with these tags no assignor could.",
    )
    for column in ("group", "change"):
        table.add_column(column, no_wrap=True)
    for column in (
        "copies",
        "fewest",
        "ratio",
        "rounds",
        "cold",
        "Kafka's copies",
        "rounds",
        "cold",
        "promises",
    ):
        table.add_column(column, justify="right")
    for figure in figures:
        ours, kafka = figure["ours"], figure["kafka"]
        table.add_row(
            figure["variety"],
            figure["change"],
            f"{ours['copies']:,.1f}",
            "none" if figure["fewest"] is None else f"{figure['fewest']:,.1f}",
            "" if figure["most_ratio"] is None else f"{figure['most_ratio']:.2f}",
            f"{ours['rounds']:,.1f}",
            f"{ours['cold']:,.1f}",
            *(
                (f"{kafka['copies']:,.1f}", f"{kafka['rounds']:,.1f}", f"{kafka['cold']:,.1f}")
                if kafka
                else ("", "", "")
            ),
            ", ".join(figure["broken"]) or "kept",
        )
    return table


def _bound(outcomes: Sequence[PlayedRounds], fewest: Sequence[int | None]) -> dict[str, object]:
    """Summarize the fewest possible copies, over groups that can be balanced."""
    pairs = [
        (outcome.copies_built, least)
        for outcome, least in zip(outcomes, fewest, strict=True)
        if least is not None
    ]
    return {
        "balanceable": len(pairs),
        "fewest": statistics.fmean(least for _, least in pairs) if pairs else None,
        "most_ratio": max(
            (built / least if least else 1.0 + built for built, least in pairs), default=None
        ),
    }


def _summary(outcomes: Sequence[PlayedRounds]) -> dict[str, object]:
    """Summarize outcomes: means, and the worst values of what is promised."""
    if not outcomes:
        return {}
    return {
        "seeds": len(outcomes),
        "copies": statistics.fmean(one.copies_built for one in outcomes),
        "rounds": statistics.fmean(one.rounds for one in outcomes),
        "cold": statistics.fmean(one.cold_hand_overs for one in outcomes),
        "avoidable_cold": sum(one.avoidable_cold_hand_overs for one in outcomes),
        "active_hand_overs": statistics.fmean(one.active_hand_overs for one in outcomes),
        "most_extra_copies": max(one.most_extra_copies for one in outcomes),
        "most_active_spread": max(one.active_spread for one in outcomes),
        "most_copy_spread": max(one.copy_spread for one in outcomes),
        "wasted_warm_ups": sum(one.wasted_warm_ups for one in outcomes),
    }
