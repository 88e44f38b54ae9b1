"""What a played plan says, as a row of a table, as remarks and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caughtup.models.durations import duration
from caughtup.models.simulation.streams.plan import SimulationResult
from caughtup.models.what_if.question import WhatIfAnswer
from caughtup.models.what_if.setting import Playable

#: The columns beside what was played.
FIGURES = (
    "LONGEST STILL",
    "MEDIAN STILL",
    "TASKS STILL",
    "STATES COPIED",
    "OFFSETS",
    "REBALANCES",
    "AT REST AFTER",
)


def cells(group: Playable, answer: WhatIfAnswer) -> list[str]:
    """Return a played plan as a row: what it was, then its figures."""
    fast, slow = answer.fast.figures, answer.slow.figures
    known = answer.restoring_known or not answer.slow.offsets_restored
    return [
        named(group, answer),
        _span(fast.longest_still_ms, slow.longest_still_ms, known=known),
        _span(round(fast.median_still_ms), round(slow.median_still_ms), known=known),
        _range(*(sum(ms > 0 for ms in one.still_ms.values()) for one in (fast, slow))),
        _range(fast.copies_built, slow.copies_built),
        _range(answer.fast.offsets_restored, answer.slow.offsets_restored),
        _range(fast.rebalances, slow.rebalances),
        "never"
        if answer.slow.endless
        else _span(fast.calm_ms or 0, slow.calm_ms or 0, known=known),
    ]


def named(group: Playable, answer: WhatIfAnswer) -> str:
    """Describe in a few words what was played."""
    plan, setting = answer.plan, answer.setting
    words = [f"+{plan.add}"] if plan.add else []
    words += [f"stop {name}" for name in plan.stop]
    words += [f"kill {name}" for name in plan.kill]
    if plan.restart:
        everybody = sorted(plan.restart) == group.clients
        words.append(
            ("restart all at once" if plan.at_once else "rolling restart")
            if everybody
            else f"restart {', '.join(plan.restart)}"
        )
    words += [setting.assignor] if setting.assignor else []
    words += [f"{name}={value}" for name, value in setting.config]
    words += ["eager"] if setting.eager else []
    words += [f"{setting.protocol} protocol"] if setting.protocol else []
    words += ["static members"] if setting.static_members else []
    return ", ".join(words)


def remarks(answers: Sequence[WhatIfAnswer]) -> list[str]:
    """Return the sentences that belong under a table: what isn't known, and what goes round."""
    found = []
    if any(not one.restoring_known and one.slow.offsets_restored for one in answers):
        found.append(
            "No copy was seen restoring: times with ≥ do not include restoring. "
            "Set how fast a thread restores with --restore-rate."
        )
    found += [
        f"The group never reaches a stable assignment: {one.slow.endless}"
        for one in answers
        if one.slow.endless
    ]
    return found


def answer_fields(group: Playable, answer: WhatIfAnswer) -> dict[str, Any]:
    """Return a played plan as one JSON object."""
    return {
        "group": group.name,
        "played": named(group, answer),
        "assignor": answer.setting.assignor,
        "config": dict(answer.setting.config),
        "protocol": answer.setting.protocol,
        "restoring_known": answer.restoring_known,
        "fast": _fields(answer.fast),
        "slow": _fields(answer.slow),
    }


def _fields(end: SimulationResult) -> dict[str, Any]:
    figures = end.figures
    return {
        "longest_still_ms": figures.longest_still_ms,
        "median_still_ms": figures.median_still_ms,
        "still_ms": figures.still_ms,
        "copies_built": figures.copies_built,
        "offsets_restored": end.offsets_restored,
        "rebalances": figures.rebalances,
        "probing_rebalances": figures.probing,
        "at_rest_after_ms": None if end.endless else figures.calm_ms,
        "endless": end.endless,
        "spans": [
            [span.task, span.client, span.activity.value, span.start_ms, span.end_ms]
            for span in end.spans
        ],
    }


def _span(low_ms: int, high_ms: int, *, known: bool) -> str:
    low, high = (duration(ms / 1_000) for ms in sorted((low_ms, high_ms)))
    if not known:
        return f"≥ {low}"
    return high if low == high else f"{low} – {high}"


def _range(low: int, high: int) -> str:
    low, high = min(low, high), max(low, high)
    return f"{high:,}" if low == high else f"{low:,} – {high:,}"
