"""What an instance of the service says at a moment, asked over HTTP as operators ask."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

COMMITTED, LAG, END, GENERATION, GROUP_LAG = "committed", "lag", "end", "generation", "group lag"
MOVING = "moving"
_SECONDS = 3.0
_STANDBY = "standby:"
_BY_METRIC = {
    "caughtup_group_committed_offset": COMMITTED,
    "caughtup_group_lag_records": LAG,
    "caughtup_partition_end_offset": END,
    "caughtup_group_generation": GENERATION,
}


class Figure(NamedTuple):
    """What a figure is of; what doesn't apply is empty."""

    kind: str
    group: str = ""
    topic: str = ""
    partition: int = 0

    def __str__(self) -> str:
        place = f"{self.topic}-{self.partition}" if self.topic else ""
        return " ".join(part for part in (self.kind, self.group, place) if part)


@dataclass(frozen=True)
class Said:
    """What was said between ``asked`` and ``answered`` (s, monotonic).

    A status is 0 where there was no answer. ``age_seconds`` is how old the figures are by their
    own word: those of the log, and those of end offsets. ``unreadable`` says what about an answer
    made no sense. ``stands_by``: before and after it was asked for figures it said so. ``moves``:
    reassignments that it lists, by topic and partition, and the verdict, empty where there is none
    yet; ``moves_age_seconds`` is how old it says that to be, None where it doesn't say.
    ``page_age_seconds`` is how old the page says the oldest part of another instance to be.
    """

    asked: float
    answered: float
    ready: int = 0
    ready_text: str = ""
    healthy: int = 0
    figures: dict[Figure, float] = field(default_factory=dict)
    age_seconds: float = 0.0
    unreadable: str = ""
    stands_by: bool = False
    moves: dict[tuple[str, int], str] = field(default_factory=dict)
    moves_age_seconds: float | None = None
    page_age_seconds: float = 0.0

    @property
    def is_ready(self) -> bool:
        """Whether ``/ready`` said so."""
        return self.ready == 200


def ask(url: str, page: bool) -> Said:
    """Ask an instance; with ``page`` also for what its page shows."""
    asked = time.monotonic()
    ready, ready_text = _get(f"{url}ready")
    healthy, _ = _get(f"{url}healthz") if ready else (0, "")
    figures: dict[Figure, float] = {}
    moves: dict[tuple[str, int], str] = {}
    moves_age: float | None = None
    age, page_age, unreadable = 0.0, 0.0, ""
    try:
        if healthy:
            status, text = _get(f"{url}metrics")
            if status == 200:
                figures, age = read_metrics(text, time.time())
                moves, moves_age = read_moves(text)
        if healthy and page:
            status, text = _get(f"{url}api/state")
            if status == 200:
                state = json.loads(text)
                figures |= read_page(state)
                page_age = read_page_age(state)
    except (ValueError, KeyError, TypeError) as error:
        unreadable = f"{type(error).__name__}: {error}"
    stands_by = _STANDBY in ready_text and _STANDBY in _get(f"{url}ready")[1]
    answered = time.monotonic()
    return Said(
        asked=asked,
        answered=answered,
        ready=ready,
        ready_text=ready_text,
        healthy=healthy,
        figures=figures,
        age_seconds=age,
        unreadable=unreadable,
        stands_by=stands_by,
        moves=moves,
        moves_age_seconds=moves_age,
        page_age_seconds=page_age,
    )


def read_metrics(text: str, now: float) -> tuple[dict[Figure, float], float]:
    """Read the figures of ``/metrics``, and their age in seconds by what it says itself."""
    figures: dict[Figure, float] = {}
    age = 0.0
    for sample in _samples(text):
        labels = sample.labels
        if sample.name == "caughtup_snapshot_age_seconds" and labels["source"] == "end_offsets":
            age = max(age, sample.value)
        elif sample.name == "caughtup_offsets_last_poll_timestamp_seconds":
            age = max(age, now - sample.value)
        elif (kind := _BY_METRIC.get(sample.name)) and (
            labels.get("isolation", "read_committed") == "read_committed"
        ):
            place = labels.get("topic", ""), int(labels.get("partition", 0))
            figures[Figure(kind, labels.get("group", ""), *place)] = sample.value
    return figures, age


def read_moves(text: str) -> tuple[dict[tuple[str, int], str], float | None]:
    """Read the reassignments of ``/metrics``, and how old it says them to be, in seconds."""
    moves: dict[tuple[str, int], str] = {}
    age: float | None = None
    for sample in _samples(text):
        labels = sample.labels
        if sample.name == "caughtup_snapshot_age_seconds" and labels["source"] == "reassignments":
            age = sample.value
        elif sample.name == "caughtup_reassignment_age_seconds":
            moves.setdefault((labels["topic"], int(labels["partition"])), "")
        elif sample.name == "caughtup_reassignment_status" and sample.value == 1:
            verdict = labels["status"].replace("_", " ")  # as the page has it
            moves[labels["topic"], int(labels["partition"])] = verdict
    return moves, age


def read_page(state: dict[str, Any]) -> dict[Figure, float]:
    """Read the lag of groups as the page shows it."""
    return {
        Figure(GROUP_LAG, row["group"]): row["lag"]
        for row in state["groups"]
        if row.get("lag") is not None
    }


def read_page_age(state: dict[str, Any]) -> float:
    """Read how old the oldest part of another instance is on a page, in seconds; 0 without any."""
    received = [one["as_of_ms"] for one in state.get("instances", ()) if one.get("as_of_ms")]
    return max((state["now_ms"] - at for at in received), default=0) / 1000


def _samples(text: str) -> Iterable[Sample]:
    for family in text_string_to_metric_families(text):
        yield from family.samples


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return 0, ""
