"""The tables of a replay, and the notes beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import NamedTuple

from rich.table import Table

from caughtup.models.durations import counted, duration, size
from caughtup.models.replay.outcome import RECORDED, ReplayRow
from caughtup.models.replay.settings import ReplaySetting
from caughtup.models.replay.summary import Summary, summarise


class ReplayPart(NamedTuple):
    """A summary of one group, or of all groups under the name "".

    ``bytes_per_offset`` is the user's estimate for an offset of a changelog, None without one.
    """

    group: str
    summaries: list[Summary]
    rows: list[ReplayRow]
    bytes_per_offset: int | None = None

    def bytes_copied(self, one: Summary) -> int | None:
        """Return an estimate of the bytes that a setting copies, None without bytes_per_offset."""
        return self.bytes_per_offset and one.offsets_copied * self.bytes_per_offset


#: The format of each column, by heading.
COLUMNS: dict[str, Callable[[Summary], str]] = {
    "changes": lambda one: f"{one.changes:,}",
    "copies built": lambda one: f"{one.copies_built:,}",
    "offsets copied": lambda one: (
        f"{'≥ ' * bool(one.offsets_unknown)}{one.offsets_copied:,}" if one.changes else ""
    ),
    "rebalances": lambda one: f"{one.rebalances:,}",
    "until balanced": lambda one: f"{'about ' * one.estimated}{duration(one.seconds)}",
    "longest still": lambda one: _still(one),
    "cold hand-overs": lambda one: f"{one.cold_hand_overs:,}",
    "avoidable": lambda one: f"{one.avoidable_cold_hand_overs:,}",
    "imbalance": lambda one: f"{one.copy_imbalance:,.1f}",
    "not balanced": lambda one: f"{one.unbalanced:,}",
}


def _still(one: Summary) -> str:
    """Return the longest time without processing of any task, empty if unknown."""
    if one.recorded or one.still_unknown >= one.changes:
        return ""
    return f"{'≥ ' * bool(one.still_unknown)}{duration(one.longest_still_seconds)}"


def columns(part: ReplayPart) -> dict[str, Callable[[Summary], str]]:
    """Return the columns of a part, with bytes if they can be estimated."""
    found = {}
    for name, written in COLUMNS.items():
        found[name] = written
        if name == "offsets copied" and part.bytes_per_offset is not None:
            found["bytes copied"] = partial(_bytes_copied, part)
    return found


def _bytes_copied(part: ReplayPart, one: Summary) -> str:
    count = part.bytes_copied(one)
    if count is None or not one.changes:
        return ""
    return f"{'≥ ' * bool(one.offsets_unknown)}about {size(count)}"


def parts(
    rows: Sequence[ReplayRow],
    settings: Sequence[ReplaySetting | None],
    *,
    by_group: bool,
    bytes_per_offset: int | None = None,
) -> list[ReplayPart]:
    """Return the summaries of rows, with settings in their order."""
    order = [RECORDED if setting is None else str(setting) for setting in settings]
    names = sorted({row.group for row in rows}) if by_group else [""]
    found = []
    for name in names:
        own = [row for row in rows if not by_group or row.group == name]
        summaries = sorted(summarise(own, by_group=False), key=lambda one: order.index(one.setting))
        found.append(ReplayPart(name, summaries, own, bytes_per_offset))
    return found


def table(part: ReplayPart) -> Table:
    """Return a part as a table with a row for each setting."""
    groups = len({row.group for row in part.rows})
    title = part.group or f"{groups:,} groups"
    found = Table(title=f"Replay of {title}", title_justify="left")
    found.add_column("setting")
    shown = columns(part)
    for name in shown:
        found.add_column(name, justify="right")
    for one in part.summaries:
        found.add_row(one.setting, *(written(one) for written in shown.values()))
    return found


def lines(part: ReplayPart) -> Iterator[dict[str, object]]:
    """Yield the JSON object of each setting, for ``--format json``."""
    for one in part.summaries:
        line = {**asdict(one), "groups": len(one.groups), "recorded": one.recorded}
        if one.recorded or one.still_unknown:
            del line["seconds_still"], line["longest_still_seconds"]
        if one.offsets_unknown:
            del line["offsets_copied"]
        elif part.bytes_per_offset is not None:
            line["bytes_copied"] = part.bytes_copied(one)
            line["bytes_per_offset"] = part.bytes_per_offset
        yield {"group": part.group or None, **line}


def notes(part: ReplayPart) -> Iterator[str]:
    """Yield notes on the meaning and uncertainty of the figures."""
    recorded = [one for one in part.summaries if one.recorded]
    played = [one for one in part.summaries if not one.recorded]
    if recorded:
        yield (
            "recorded is what happened, until the next change of members; the others are played "
            "from each change on, until the group is balanced."
        )
    if any(one.changes > one.paced for one in played):
        yield (
            "Where no restore rate was seen, every copy counts as caught up by the next rebalance."
        )
    if any(one.changes > one.still_unknown for one in played):
        yield (
            "longest still is the longest time for which a task processes nothing, played in "
            "virtual time from the rebalance of the change on; without a restore rate it is known "
            "only where no active has to be restored."
        )
    if part.bytes_per_offset is not None:
        yield (
            f"Bytes are an estimate: offsets times --bytes-per-offset, {part.bytes_per_offset:,}."
        )
    if doubtful := max((one.doubtful for one in part.summaries), default=0):
        yield (
            f"The inputs of {doubtful:,} of {counted(part.summaries[0].generations, 'generation')} "
            "are not fully known; their scenarios are estimates."
        )
    errors = [row for row in part.rows if row.error is not None]
    if errors:
        first = errors[0]
        generation = "" if first.generation is None else f" generation {first.generation}"
        yield (
            f"{counted(max(one.undecided for one in part.summaries), 'generation')} could not be "
            f"decided, such as {first.group}{generation}: {first.error}"
        )
