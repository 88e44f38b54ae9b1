"""What must hold of every story: nothing is owned twice, and all runs in the end, soon enough."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from caughtup.models.simulation.streams.run import StreamsRun
from caughtup.models.simulation.time_line import Activity, TimeSpan
from tests.models.simulation.stories.drawn import Story

ACTIVE = frozenset({Activity.PROCESSING, Activity.RESTORING, Activity.WAITING})


def owned_twice(run: StreamsRun) -> list[str]:
    """Name the tasks that two running threads have as actives."""
    owners: dict[str, list[str]] = {}
    for thread in run.running_threads():
        for task in thread.active:
            owners.setdefault(str(task), []).append(thread.member_id)
    return [
        f"at {run.time.now_ms} ms {task} is active on {', '.join(who)}"
        for task, who in sorted(owners.items())
        if len(who) > 1
    ]


def unfinished(run: StreamsRun) -> list[str]:
    """Name the tasks that nobody processes."""
    processed = {
        task for thread in run.running_threads() for task, runs in thread.active.items() if runs
    }
    return [
        f"in the end nobody processes {task}"
        for task in sorted(run.tasks.sources)
        if task not in processed
    ]


def slow_to_converge(story: Story, run: StreamsRun) -> list[str]:
    """Hold the rounds after the last happening to Kafka's bound (TaskAssignorConvergenceTest).

    There every copy has caught up by the next round. Here one takes its time, which may be more
    than a probing interval: at worst one thread restores all that was ever begun, one after the
    other, since hardly anything of it may be restored when the last thing happens.
    """
    application = story.application
    stateful = len(application.changelogs)
    rounds = 2 * stateful * (1 + application.configs.num_standby_replicas)
    slowest = application.restore_per_second * min(story.restores.values(), default=1.0)
    begun = run.shared.to_restore / slowest
    rounds += 1 + int(begun * 1_000 // application.configs.probing_rebalance_interval_ms)
    probing = sum(one.kind == "probing" and one.at_ms > story.last_ms for one in run.line.marks)
    if probing <= rounds:
        return []
    return [f"{probing} probing rebalances after the last happening, {rounds} at most"]


def processed_twice(spans: Sequence[TimeSpan]) -> list[str]:
    """Name the moments in which two clients had one active."""
    wrong = []
    active = sorted(
        (span for span in spans if span.activity in ACTIVE),
        key=lambda span: (span.task, span.start_ms, span.end_ms),
    )
    for one, other in pairwise(active):
        if one.task == other.task and other.start_ms < one.end_ms and one.client != other.client:
            wrong.append(
                f"{one.task} was active on {one.client} and {other.client} at {other.start_ms}"
            )
    return wrong
