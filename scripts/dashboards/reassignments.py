"""The dashboard of partition reassignments: verdicts, causes, what is left to copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caughtup.models.verdicts import ENDLESS
from caughtup.models.verdicts import REASSIGNMENTS as VERDICTS
from scripts.dashboards.layout import REASSIGNMENTS, STARTS, made, topic_variable
from scripts.dashboards.links import REASSIGNMENTS as PAGE
from scripts.dashboards.links import Link
from scripts.dashboards.panels import lines, stat, table

_STATUSES = {term.word.replace(" ", "_"): term.chart for term in VERDICTS.terms}
_STUCK = "|".join(word.replace(" ", "[_ ]") for word in VERDICTS.words if word in ENDLESS)
#: Makes a sum 0 while nothing moves, as long as the cluster is observed.
_NONE = "0 * sum(caughtup_reassignment_partitions{CLUSTER})"


def reassignments() -> str:
    """Return the dashboard of reassignments as JSON."""
    return made(
        "caughtup-reassignments",
        "caughtup: reassignments",
        "Partitions in movement: their verdicts, what holds them up, and how long they take.",
        variables=(topic_variable("caughtup_reassignment_status{CLUSTER}"),),
        marks=(REASSIGNMENTS, STARTS),
        top=(stuck(PAGE, width=8), *_stats(), verdicts(), *_causes(), in_movement()),
        rows={"Progress": _progress()},
    )


def stuck(links: Sequence[Link], width: int) -> Any:
    """Return the panel that counts partitions in movement that need an operator."""
    return stat(
        "Reassignments stuck",
        "Partitions in movement that need an operator.",
        f'sum(caughtup_reassignment_status{{TOPIC,status=~"{_STUCK}"}}) or {_NONE}',
        links,
        alarm="red",
        width=width,
    )


def verdicts() -> Any:
    """Return the chart of verdicts on partitions in movement."""
    return lines(
        "Verdicts",
        "Partitions in movement, by verdict.",
        ("sum by (status) (caughtup_reassignment_status{TOPIC})", "{{status}}"),
        links=PAGE,
        colors=_STATUSES,
        stacked=True,
    )


def _stats() -> tuple[Any, ...]:
    return (
        stat(
            "Orphaned throttles",
            "Replication throttles that no reassignment has needed for some time; the page names them.",
            "count(caughtup_throttle_orphaned{CLUSTER})"
            " or 0 * sum(caughtup_reassignments_partial{CLUSTER})",
            PAGE,
            alarm="red",
            width=8,
        ),
        stat(
            "Incomplete observations",
            "Clusters whose last observation of reassignments was incomplete; the page says what was missing.",
            "sum(caughtup_reassignments_partial{CLUSTER})",
            PAGE,
            alarm="red",
            width=8,
        ),
    )


def _causes() -> tuple[Any, ...]:
    ended = "increase(caughtup_reassignments_ended_total{CLUSTER}[$__rate_interval])"
    return (
        lines(
            "Causes",
            "What holds partitions in movement up; 0 where nothing does.",
            (f"count by (cause) (caughtup_reassignment_cause{{TOPIC}}) or {_NONE}", "{{cause}}"),
            links=PAGE,
        ),
        lines(
            "Reassignments that ended",
            "By outcome, in each interval. reverted-partial and vanished raise a ticket.",
            (f"sum by (outcome) ({ended})", "{{outcome}}"),
            links=PAGE,
        ),
    )


def in_movement() -> Any:
    """Return the table of all partitions in movement."""
    largest = "max by (cluster, topic, partition) (caughtup_reassignment_%s{TOPIC})"
    figures = (
        "bytes_remaining",
        "offsets_remaining",
        "rate_bytes_per_second",
        "eta_seconds",
        "age_seconds",
        "idle_seconds",
    )
    return table(
        "In movement",
        "Every partition in movement, with its verdict.",
        "max by (cluster, topic, partition, status) (caughtup_reassignment_status{TOPIC}) > 0",
        *(largest % figure for figure in figures),
        columns={
            "topic": "Topic",
            "partition": "Partition",
            "cluster": "Cluster",
            "status": "Verdict",
            "Value #B": "Bytes left",
            "Value #C": "Offsets left",
            "Value #D": "Rate",
            "Value #E": "Time to go",
            "Value #F": "Age",
            "Value #G": "Without progress",
        },
        links=PAGE,
        units={
            "Bytes left": "bytes",
            "Offsets left": "short",
            "Rate": "Bps",
            "Time to go": "s",
            "Age": "s",
            "Without progress": "s",
        },
        width=24,
    )


def _progress() -> tuple[Any, ...]:
    partition = "{{topic}}-{{partition}}"
    return (
        lines(
            "Partitions in movement",
            "By phase: A while a replica that the controller waits for is out of the ISR.",
            ("sum by (phase) (caughtup_reassignment_partitions{CLUSTER})", "{{phase}}"),
            links=PAGE,
        ),
        lines(
            "Left to copy, the 10 partitions with the most",
            "Bytes that the required replicas have yet to copy.",
            ("topk(10, caughtup_reassignment_bytes_remaining{TOPIC})", partition),
            links=PAGE,
            unit="bytes",
        ),
        lines(
            "Rate of copying, the 10 fastest",
            "Bytes that the required replicas copy in a second. A throttle makes it move in steps.",
            ("topk(10, caughtup_reassignment_rate_bytes_per_second{TOPIC})", partition),
            links=PAGE,
            unit="Bps",
        ),
        lines(
            "Time to go, the 10 partitions with the longest",
            "Until the last replica is in sync; those that never end aren't drawn.",
            ("topk(10, caughtup_reassignment_eta_seconds{TOPIC} < +Inf)", partition),
            links=PAGE,
            unit="s",
            width=12,
        ),
        lines(
            "Without progress, the 10 longest",
            "Time since an added replica copied a record or joined the ISR. "
            "A throttled copy moves in steps, so its line is jagged.",
            ("topk(10, caughtup_reassignment_idle_seconds{TOPIC})", partition),
            links=PAGE,
            unit="s",
            width=12,
        ),
    )
