"""The lines around a table: who was asked and when, what there is to choose from, the keys."""

from __future__ import annotations

from collections.abc import Sequence

from caughtup.agents.cli.columns import elided, printable
from caughtup.agents.web.page.parts import WholeView
from caughtup.models.durations import duration
from caughtup.models.records.fields import or_none

KEYS = "q quit  / filter  s sort  ⏎ open  1-{count} tables  r look now"
KEYS_OPENED = "q quit  / filter  s sort  esc back  r look now"


def status(where: str, state: WholeView | None, age_seconds: float, why: str, width: int) -> str:
    """Describe whose figures they are, how old, and what keeps newer ones from coming (``why``).

    Without a state ``age_seconds`` is since when it was asked for.
    """
    if state is None:
        said = f"asking {where} for {_age(age_seconds)}" + (f": {why}" if why else "")
    elif why:
        said = f"{_age(age_seconds)} old, asking again: {why}"
    else:
        name = or_none(state.cluster_name) or state.cluster
        said = f"{name} at {where}, {_age(age_seconds)} ago"
        if state.unready:
            said += f", incomplete: {'; '.join(state.unready)}"
    return elided(printable(said), width)


def _age(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else duration(seconds)


def tabs(
    names: Sequence[str], short: Sequence[str], counts: Sequence[int], width: int
) -> list[str]:
    """Return what stands for each table: its name, a shorter one, or its number alone."""
    for words in (names, short):
        numbered = enumerate(zip(words, counts, strict=True), 1)
        whole = [f" {number} {word} {count:,} " for number, (word, count) in numbered]
        if sum(map(len, whole)) <= width:
            return whole
    return [f" {number} " for number in range(1, len(names) + 1)]


def summary(shown: int, found: int, all_of: int, words: str, order: str) -> str:
    """Describe which lines are shown, and in which order."""
    said = f"by {order}"
    if words:
        said += f", {found:,} of {all_of:,} have {words!r}"
    if shown < found:
        said += f", the first {shown:,} of {found:,}"
    return said
