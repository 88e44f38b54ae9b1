"""What the page says of reassignments, and how figures of them are written for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import isinf
from typing import Any

from caughtup.agents.views.reassignment_lines import (
    OngoingReassignment,
    reassignment_line,
    severity,
)
from caughtup.models.durations import counted, duration, size
from caughtup.models.reassignments.awaited_replica import State
from caughtup.models.reassignments.throttles.orphaned import OrphanedThrottle
from caughtup.models.reassignments.tracking import controllers
from caughtup.models.reassignments.tracking.ends import EndedReassignment
from caughtup.models.reassignments.tracking.tracked import TrackedReassignment
from caughtup.models.reassignments.tracking.tracker import ReassignmentTracker
from caughtup.models.reassignments.watch import ReassignmentWatch

#: Evidence that stands elsewhere, or that nobody but a machine needs.
_SHOWN_ELSEWHERE = frozenset(("looks", "idle_seconds", "eta_seconds"))
_YES_OR_NO = {"answers": ("answers", "doesn't answer")}
_BROKERS = frozenset(("leader", "quorum_leader", "throttled_broker"))
#: What most verdicts rest on, in words of its own; everything else is its name and its figure.
_PHRASES: Mapping[str, Callable[[Any], str]] = {
    "replica": lambda broker: f"broker {broker}",
    "offsets_behind": lambda offsets: f"{counted(offsets, 'offset')} behind",
    "bytes_behind": lambda number: f"{size(number)} behind",
    "stood_seconds": lambda seconds: f"no progress for {duration(seconds)}",
    "allowed_seconds": lambda seconds: f"{duration(seconds)} allowed",
    "usable_bytes": lambda number: f"{size(number)} free on its disk",
}


def page_reassignment(
    tracker: ReassignmentTracker, reassignment: OngoingReassignment, now_ms: int
) -> dict[str, Any]:
    """Describe a reassignment for the page: its line, words, and a bar for each copy."""
    row = reassignment_line(tracker, reassignment, now_ms)
    _, tracked, assessed = reassignment
    if assessed is not None:
        row["why"] = in_words(assessed.verdict.evidence)
        eta = assessed.figures.eta
        row["never"] = eta is not None and isinf(eta.seconds)
    row["copies"] = list(_copies(tracked))
    return row


def verdict_counts(tracker: ReassignmentTracker, watch: ReassignmentWatch) -> dict[str, int]:
    """Count the reassignments by verdict, the worst first."""
    counts: Counter[str] = Counter()
    for partition, tracked in tracker.ongoing.items():
        assessed = watch.find(partition, tracked)
        counts[State.MEASURING if assessed is None else assessed.verdict.verdict] += 1
    worst = sorted(counts, key=lambda verdict: -severity(verdict))
    return {verdict: counts[verdict] for verdict in worst}


def ended_reassignment(ended: EndedReassignment) -> dict[str, Any]:
    """Describe a reassignment that is over."""
    row = {
        "topic": ended.partition.topic,
        "partition": ended.partition.partition,
        "outcome": ended.outcome,
        "at_ms": ended.at_ms,
        "original": ended.original,
        "target": ended.target,
        "replicas": ended.replicas,
        "seconds": max(0, ended.at_ms - ended.since_ms) / 1000,
    }
    return {name: value for name, value in row.items() if value is not None}


def orphaned_throttle(throttle: OrphanedThrottle) -> dict[str, Any]:
    """Describe a throttle that is left over."""
    return throttle._asdict()


def in_words(evidence: Mapping[str, Any]) -> str:
    """Write evidence as a person reads it: ``1,200 offsets behind, no progress for 64 s``."""
    shown = {name: value for name, value in evidence.items() if name not in _SHOWN_ELSEWHERE}
    if shown.get("waits_for") == [shown.get("replica")]:
        del shown["waits_for"]
    return ", ".join(_words(name, value) for name, value in shown.items())


def _words(name: str, value: Any) -> str:
    words = name.replace("_", " ")
    match value:
        case int() | float() if name in _PHRASES:
            return _PHRASES[name](value)
        case bool():
            yes, no = _YES_OR_NO.get(name, (words, f"not {words}"))
            return yes if value else no
        case int() | float() if name.endswith("_seconds"):
            return f"{words.removesuffix(' seconds')} {duration(value)}"
        case int() | float() if name.endswith("bytes_per_second"):
            return f"{words.removesuffix('bytes per second')}{size(value)}/s"
        case int() | float() if name.endswith("_per_second"):
            return f"{words.removesuffix(' per second')} {value:,.0f}/s"
        case int() | float() if name.startswith("bytes_") or name.endswith("_bytes"):
            return f"{words.removesuffix(' bytes').removeprefix('bytes ')} {size(value)}"
        case int() if name in _BROKERS:
            return f"{words} {value}"
        case int():
            return f"{words} {value:,}"
        case float():
            return f"{words} {value:,.1f}"
        case list():
            return f"{words} {', '.join(map(str, value))}"
    return f"{words} {value}"


def _copies(tracked: TrackedReassignment) -> Iterator[dict[str, Any]]:
    """Yield each replica's own state: those to come first, in the order that they will have."""
    observation = tracked.latest
    target = controllers.target(observation)
    for broker in dict.fromkeys((*target, *observation.replicas)):
        in_sync = broker in observation.isr
        copy = {
            "broker": broker,
            "role": "added"
            if broker in observation.adding
            else ("removed" if broker not in target else "stays"),
            "in_sync": in_sync,
            "away": broker in observation.offline or None,
            "missing": broker in observation.not_hosted or None,
            "unanswered": broker in observation.unanswered or None,
            "log_end": observation.log_ends.get(broker),
            "share": 1.0 if in_sync else _share(tracked, broker),
        }
        yield {name: value for name, value in copy.items() if value is not None}


def _share(tracked: TrackedReassignment, broker: int) -> float | None:
    """Return how much of its leader's log a copy has: by bytes, else by offsets since it was seen."""
    observation = tracked.latest
    if observation.leader is None:
        return None
    whole, part = observation.sizes.get(observation.leader), observation.sizes.get(broker)
    if whole and part is not None:
        return min(1.0, part / whole)
    end, own = observation.log_ends.get(observation.leader), observation.log_ends.get(broker)
    if end is None or own is None:
        return None
    began = _first_log_end(tracked, broker, own)
    return 1.0 if own >= end else (own - began) / (end - began)


def _first_log_end(tracked: TrackedReassignment, broker: int, own: int) -> int:
    first = tracked.first.log_ends.get(broker, 0)
    return min(first, own)
