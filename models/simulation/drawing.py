"""A time line as text: a row for each task, a column for each step of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase

from caughtup.models.ids import natural_order
from caughtup.models.simulation.time_line import Activity, TimeSpan

#: Of several activities within one step, the one with the greatest weight is drawn.
_WEIGHT = {
    Activity.PROCESSING: 0,
    Activity.FOLLOWING: 1,
    Activity.WARMING: 2,
    Activity.WAITING: 3,
    Activity.RESTORING: 4,
}
_ACTIVE = frozenset({Activity.PROCESSING, Activity.RESTORING, Activity.WAITING})
NOBODY = "."


def letters_of(clients: Iterable[str]) -> dict[str, str]:
    """Return a letter for each client, in their order; after 26 the letters repeat."""
    return {
        client: ascii_uppercase[number % len(ascii_uppercase)]
        for number, client in enumerate(sorted(clients, key=natural_order))
    }


def draw(
    spans: Sequence[TimeSpan],
    tasks: Iterable[str],
    letters: Mapping[str, str],
    *,
    from_ms: int,
    until_ms: int,
    step_ms: int,
) -> list[str]:
    """Draw who has each task: ``A`` processes it, ``a`` restores it or waits, ``.`` is no client.

    Standbys and warm-ups follow in a row of their own, if there are any: ``a`` is behind, ``A`` is
    caught up. Each step shows the longest standstill within it, so that no pause is hidden.
    """
    names = list(tasks)
    width = max(map(len, names), default=0)
    rows: list[str] = []
    for task in names:
        own = [span for span in spans if span.task == task]
        active = [span for span in own if span.activity in _ACTIVE]
        others = [span for span in own if span.activity not in _ACTIVE]
        steps = range(from_ms, until_ms, step_ms)
        rows.append(
            f"{task:<{width}} {''.join(_at(active, s, s + step_ms, letters) for s in steps)}"
        )
        for client in sorted({span.client for span in others}):
            kept = [span for span in others if span.client == client]
            line = "".join(_at(kept, s, s + step_ms, letters, gaps=False) for s in steps)
            if line.strip(NOBODY):
                rows.append(f"{'+':>{width}} {line}")
    return rows


def _at(
    spans: Sequence[TimeSpan],
    start_ms: int,
    end_ms: int,
    letters: Mapping[str, str],
    *,
    gaps: bool = True,
) -> str:
    """Return the character of one step; with ``gaps``, ``.`` if no client had it for long."""
    within = [
        (min(span.end_ms, end_ms) - max(span.start_ms, start_ms), span)
        for span in spans
        if span.start_ms < end_ms and span.end_ms > start_ms
    ]
    if not within or (gaps and sum(length for length, _ in within) * 2 < end_ms - start_ms):
        return NOBODY
    _, span = max(within, key=lambda one: (_WEIGHT[one[1].activity], one[0], one[1].client))
    letter = letters.get(span.client, "?")
    caught_up = span.activity in {Activity.PROCESSING, Activity.FOLLOWING}
    return letter if caught_up else letter.lower()
