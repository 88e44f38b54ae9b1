"""Measure the cost of giving a new instance its share of an application's tasks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from prometheus_client.parser import text_string_to_metric_families

from caughtup.demo.apps.restore_listener import RestoredCopy
from caughtup.demo.story.growing import ACCEPTABLE_RECOVERY_LAG, FIRST, PROBING_SECONDS, Growing
from caughtup.demo.story.stage import APPLICATION
from caughtup.demo.story.truth import GroupHistory, group_history, recommendations_in_log

_SETTLE_SECONDS = 60.0


def measure_growth(
    stage: Growing, calm_ms: int, started_ms: int, balanced_ms: int
) -> dict[str, object]:
    """Return figures of the time from the fourth instance's start until tasks were balanced (ms).

    Call it while the load continues: it waits for a later commit of each partition, and until the
    service has decided the last generation. ``calm_ms``: the start of the load. Raises CaughtupError
    after a time-out.

    - ``copies_built``: copies of stores' partitions that an instance started to restore from
      nothing, by the application's own listeners; ``copy_seconds``: the median time of these.
    - ``copies_recommended``: in the service's record of the first generation of four instances;
      ``copies_kafka``: in the same record, what Kafka's assignor would build.
    - ``cold_hand_overs``: actives that had to restore more than acceptable.recovery.lag.
    - ``interval_waits``: how often the next rebalance took probing.rebalance.interval.ms.
    - ``longest_pause_seconds``: the longest time of a source or repartition partition without a
      commit; ``calm_pause_seconds``: the same between ``calm_ms`` and the fourth instance's start.
      ``uncommitted``: partitions without any commit.
    - ``exact``: the number of each result, over all of the group's ``generations_in_log``.
    """
    history = stage.wait(
        "commits of every partition", lambda: _whole(stage, balanced_ms), _SETTLE_SECONDS
    )
    exact = stage.wait(
        "every generation decided",
        lambda: _decided(stage, len(history.generations)),
        _SETTLE_SECONDS,
    )
    copies = [
        copy
        for name in stage.application.instances
        for copy in stage.application.restored(name)
        if copy.started_ms >= started_ms
    ]
    records = recommendations_in_log(stage.cluster, APPLICATION)
    joined = next(record for record in records if len(record["process_ids"]) > len(FIRST))
    moments = [one.at_ms for one in history.generations.values()]
    during = [at_ms for at_ms in moments if started_ms <= at_ms <= balanced_ms]
    commits = history.commits.values()
    calm = [[at_ms for at_ms in times if calm_ms <= at_ms <= started_ms] for times in commits]
    return {
        "tasks": stage.tasks,
        "seconds": (balanced_ms - started_ms) / 1000,
        "interval_waits": interval_waits(during),
        "interval_seconds": PROBING_SECONDS,
        "generations": len(during),
        "actives": stage.actives(),
        **sum_copies(copies),
        "copies_recommended": joined["cost"]["copies"],
        "copies_kafka": joined["kafka_cost"]["copies"],
        "longest_pause_seconds": max(
            longest_pause(times, started_ms, balanced_ms) / 1000 for times in commits
        ),
        "calm_pause_seconds": max(
            longest_pause(times, calm_ms, started_ms) / 1000 for times in calm
        ),
        "uncommitted": sorted(
            str(partition)
            for partition, times in history.commits.items()
            if not any(started_ms < at_ms <= balanced_ms for at_ms in times)
        ),
        "generations_in_log": len(moments),
        "exact": exact,
        "undetermined_because": sorted(
            {
                record["leader"]["why"]
                for record in records
                if record["leader"]["result"] == "undetermined"
            }
        ),
    }


def sum_copies(copies: Sequence[RestoredCopy]) -> dict[str, object]:
    """Count copies built from nothing, actives handed over cold, and offsets restored."""
    built = [copy for copy in copies if copy.from_nothing]
    took = [copy.reached_ms - copy.started_ms for copy in built if copy.reached_ms is not None]
    return {
        "copies_built": len(built),
        "copies_dropped": sum(copy.ending == "MIGRATED" for copy in built),
        "cold_hand_overs": sum(
            copy.role == "active" and copy.behind > ACCEPTABLE_RECOVERY_LAG for copy in copies
        ),
        "copy_seconds": statistics.median(took) / 1000 if took else None,
        "offsets_restored": sum(
            copy.loaded + 1 - copy.start for copy in copies if copy.loaded is not None
        ),
    }


def interval_waits(moments: Sequence[int]) -> int:
    """Count the rebalances (ms) that came probing.rebalance.interval.ms after the one before.

    2 s less also count: the interval begins with the leader's decision, shortly after the time of
    the generation.
    """
    ordered = sorted(moments)
    least = 1000 * (PROBING_SECONDS - 2)
    return sum(later - one >= least for one, later in pairwise(ordered))


def longest_pause(times: Sequence[int], since: int, until: int) -> int:
    """Return the longest time (ms) between two successive times that overlaps a span.

    The time before the first and after the last does not count.
    """
    pauses = [later - one for one, later in pairwise(times) if later > since and one < until]
    return max(pauses, default=0)


def _whole(stage: Growing, balanced_ms: int) -> GroupHistory | None:
    """Return the group's history once every task has committed since, else None."""
    history = group_history(stage.cluster, APPLICATION)
    later = [times for times in history.commits.values() if times[-1] > balanced_ms]
    return history if len(later) == stage.tasks else None


def _decided(stage: Growing, generations: int) -> dict[str, int] | None:
    """Return the number of each result once ``generations`` are decided, else None."""
    counts = {
        sample.labels["result"]: int(sample.value)
        for family in text_string_to_metric_families(stage.metrics())
        for sample in family.samples
        if sample.name == "caughtup_exact_decisions_total" and sample.labels["group"] == APPLICATION
    }
    return counts if sum(counts.values()) >= generations else None
