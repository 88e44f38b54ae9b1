"""Changelogs whose subtopology is ambiguous: where each may belong, by the positions of copies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.tasks.changelogs import Changelogs, widths_of

#: The most combinations that are tried; with more the changelogs stay unplaced.
MOST_WAYS = 256


def possible_changelogs(
    changelogs: Changelogs,
    source_topics: Mapping[str, int],
    ends: EndOffsetTable,
    reported: Mapping[TaskId, int],
    before_ms: int,
    after_ms: int,
) -> tuple[Changelogs, ...]:
    """Return every placement of the unplaced changelogs that agrees with the copies' positions.

    Earlier placements that no longer agree are undone. ``reported`` is the greatest offset sum that
    any client reported for a task: it is at most the end of the task's changelogs, at a moment
    between two (ms). Each subtopology with reported state has a changelog. Returns the changelogs
    unchanged if none is unplaced, if there are too many combinations or none that agrees, or if
    these differ in which subtopologies are stateful.
    """
    if changelogs.placed and not _holds(
        changelogs, {*changelogs.placed.values()}, ends, reported, before_ms, after_ms
    ):
        changelogs = _without_placed(changelogs)
    if not changelogs.unplaced:
        return (changelogs,)
    counts = ends.partition_counts()
    widths = widths_of(source_topics, counts)
    choices = [
        [s for s, width in widths.items() if width == counts[t]] for t in changelogs.unplaced
    ]
    without_any = {task.subtopology for task in reported} - changelogs.of.keys()
    ways = 1
    for own in choices:
        ways *= len(own)
    if not 0 < ways <= MOST_WAYS:
        return (changelogs,)
    found = [
        placed
        for own in product(*choices)
        if without_any <= {*own}
        and _holds(placed := _placed(changelogs, own), {*own}, ends, reported, before_ms, after_ms)
    ]
    stateful = {frozenset(one.of) for one in found}
    if len(stateful) != 1:
        return (changelogs,)
    return tuple(_with_reason(changelogs, found))


def widest_bounds(
    bounds: Sequence[Mapping[TaskId, EndOffsetSum | None]],
) -> dict[TaskId, EndOffsetSum | None]:
    """Return bounds of each task's end offset sum that include all the given ones.

    A task with None in one of them has None.
    """
    found = dict(bounds[0])
    for other in bounds[1:]:
        for task, known in found.items():
            more = other.get(task)
            found[task] = (
                None
                if known is None or more is None
                else EndOffsetSum(min(known.low, more.low), max(known.high, more.high))
            )
    return found


def _without_placed(changelogs: Changelogs) -> Changelogs:
    """Return changelogs without the placements that the copies' positions had determined."""
    of = {
        subtopology: left
        for subtopology, topics in changelogs.of.items()
        if (left := tuple(topic for topic in topics if topic not in changelogs.placed))
    }
    unplaced = tuple(sorted({*changelogs.unplaced, *changelogs.placed}))
    return replace(changelogs, of=of, unplaced=unplaced, placed={})


def _placed(changelogs: Changelogs, own: Sequence[int]) -> Changelogs:
    of = {subtopology: list(topics) for subtopology, topics in changelogs.of.items()}
    for topic, subtopology in zip(changelogs.unplaced, own, strict=True):
        of.setdefault(subtopology, []).append(topic)
    return replace(
        changelogs,
        of={subtopology: tuple(sorted(topics)) for subtopology, topics in sorted(of.items())},
        unplaced=(),
        placed=dict(zip(changelogs.unplaced, own, strict=True)),
    )


def _holds(
    changelogs: Changelogs,
    subtopologies: Collection[int],
    ends: EndOffsetTable,
    reported: Mapping[TaskId, int],
    before_ms: int,
    after_ms: int,
) -> bool:
    """Return whether no copy is beyond the end of its changelogs, if the ends are known."""
    for task, restored in reported.items():
        if task.subtopology not in subtopologies or restored <= 0:
            continue
        bounds = [
            ends.bounds(TopicPartition(topic, task.partition), before_ms, after_ms)
            for topic in changelogs.of[task.subtopology]
        ]
        known = [bound[1] for bound in bounds if bound is not None]
        if len(known) == len(bounds) and restored > sum(known):
            return False
    return True


def _with_reason(before: Changelogs, found: Sequence[Changelogs]) -> Iterator[Changelogs]:
    """Yield the changelogs, each with the reason for its placements, or that they are ambiguous."""
    for one in found:
        lines = tuple(
            f"{topic} belongs to subtopology {subtopology}: copies have more offsets than the other changelogs have"
            if len(found) == 1
            else f"{topic} belongs to subtopology {subtopology} or to another: "
            f"what copies have fits {len(found)} ways to place changelogs"
            for topic, subtopology in one.placed.items()
        )
        placed = one.placed if len(found) == 1 else {}
        yield replace(one, inferred=(*before.inferred, *lines), placed=placed)
