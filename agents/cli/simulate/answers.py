"""A simulated plan as a table row, remarks, JSON, a drawing in the terminal, an HTML page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from shutil import get_terminal_size

from caughtup.agents.cli.text_tables import printable
from caughtup.models.durations import counted, duration
from caughtup.models.simulation.streams.plan import SimulationResult
from caughtup.models.simulation.time_line import Activity, draw, letters_of
from caughtup.models.what_if.question import WhatIfAnswer
from caughtup.models.what_if.setting import Playable

#: The columns after the plan's name.
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
    """Return a simulated plan as a row: its name, then its figures."""
    fast, slow = answer.fast.figures, answer.slow.figures
    known = answer.restoring_known or not answer.slow.offsets_restored
    return [
        plan_name(group, answer),
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


def plan_name(group: Playable, answer: WhatIfAnswer) -> str:
    """Return a short name of a simulated plan and its setting."""
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
    """Return the sentences under a table: unknown rates, and groups that never settle."""
    found = []
    if any(not one.restoring_known and one.slow.offsets_restored for one in answers):
        found.append(
            "caughtup has seen no copy restore: times with ≥ do not include restoring. "
            "Set how fast a thread restores with --restore-rate."
        )
    found += [
        f"The group never reaches a stable assignment: {one.slow.endless}"
        for one in answers
        if one.slow.endless
    ]
    return found


def answer_fields(group: Playable, answer: WhatIfAnswer) -> dict[str, object]:
    """Return a simulated plan as a JSON object."""
    return {
        "group": group.name,
        "played": plan_name(group, answer),
        "assignor": answer.setting.assignor,
        "config": dict(answer.setting.config),
        "protocol": answer.setting.protocol,
        "restoring_known": answer.restoring_known,
        "fast": _fields(answer.fast),
        "slow": _fields(answer.slow),
    }


def _fields(end: SimulationResult) -> dict[str, object]:
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


#: The most tasks in a drawing: those that stand still longest.
_MOST_TASKS = 40
#: The columns between two times above a drawing.
_MARK_COLUMNS = 10
#: A drawing ends this long after the group is at rest.
_CALM_MS = 10_000
_STEPS_SECONDS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200)


def terminal_drawing(end: SimulationResult, step_seconds: float | None) -> Iterator[str]:
    """Yield the lines of a drawing as wide as the terminal, with its legend."""
    still = end.figures.still_ms
    worst = set(sorted(end.tasks, key=lambda task: -still.get(task, 0))[:_MOST_TASKS])
    shown = [task for task in end.tasks if task in worst]
    until_ms = min(end.until_ms, (end.figures.calm_ms or end.until_ms) + _CALM_MS)
    room = max(get_terminal_size().columns - max(map(len, end.tasks)) - 2, 20)
    step_ms = round(step_seconds * 1_000) if step_seconds else _step_ms(until_ms, room)
    letters = letters_of(end.clients)
    rows = draw(end.spans, shown, letters, from_ms=0, until_ms=until_ms, step_ms=step_ms)
    names = max(map(len, shown), default=0)
    columns = max(len(row) for row in rows) - names - 1 if rows else 0
    yield f"{'':<{names}} {_axis(columns, step_ms)}"
    yield from rows
    rest = len(end.tasks) - len(shown)
    if rest:
        yield f"and {counted(rest, 'more task')}; none stands still for longer"
    yield f"A column is {duration(step_ms / 1_000)}: A runs the task, a restores it, . means that no client has it."
    yield "Rows with + are standbys and warm-ups: a is behind, A is caught up."
    yield from (f"  {letter} = {printable(client)}" for client, letter in letters.items())


def html_page(group: Playable, answers: Sequence[WhatIfAnswer]) -> str:
    """Return an HTML page with the time line of each simulated plan."""
    page = files("caughtup.agents.cli.simulate").joinpath("page.html").read_text("utf-8")
    data = [
        {
            "name": plan_name(group, answer)
            + ("" if answer.setting.assignor else ", by the group's assignor"),
            "until": answer.slow.until_ms,
            "tasks": list(answer.slow.tasks),
            "clients": list(answer.slow.clients),
            "still": answer.slow.figures.still_ms,
            "spans": [
                [span.task, span.client, span.activity.value, span.start_ms, span.end_ms]
                for span in answer.slow.spans
            ],
            "marks": [
                [mark.at_ms, mark.kind, mark.what]
                for mark in answer.slow.marks
                if mark.kind != "copy"
            ],
        }
        for answer in answers
    ]
    # In a script element only < has to be escaped.
    text = json.dumps(data).replace("<", "\\u003c")
    return (
        page.replace("{{group}}", escape(group.name))
        .replace("{{activities}}", json.dumps([one.value for one in Activity]))
        .replace("{{data}}", text)
    )


def _axis(columns: int, step_ms: int) -> str:
    """Return the line of times above a drawing, each above its column."""
    line = ""
    for at in range(0, columns, _MARK_COLUMNS):
        mark = f"|{duration(at * step_ms / 1_000) if at else '0'}"
        if at + len(mark) <= columns:
            line = f"{line:<{at}}{mark}"
    return line


def _step_ms(until_ms: int, room: int) -> int:
    fitting = (seconds for seconds in _STEPS_SECONDS if until_ms / (seconds * 1_000) <= room)
    return round(next(fitting, until_ms / room / 1_000) * 1_000)
