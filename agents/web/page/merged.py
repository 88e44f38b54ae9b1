"""Views of all groups, merged from the parts that the instances made of their own groups."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, TypeVar, cast

import msgspec

from caughtup.agents.web.page.head import FAULTS_SHOWN, Head, HeadWithFailures, RefusedOfTopic
from caughtup.agents.web.page.overview import FEED_SHOWN, GROUPS_SHOWN, GroupRow, OverviewView
from caughtup.agents.web.page.parts import (
    MOST_MARKS,
    ConnectsView,
    HealthView,
    RecentView,
    TransactionsView,
    WholeView,
)
from caughtup.models.faults import Fault, SetAside
from caughtup.models.recent.happenings import Happening
from caughtup.models.recent.rings import STEP_MS
from caughtup.models.records.fields import Part, changed
from caughtup.models.records.transactions import OpenTransaction
from caughtup.models.shown.groups import CheckpointProblem, GroupLine, group_rank
from caughtup.models.transactions.holders import age_order
from caughtup.models.transactions.table import MOST_GROUPS, producer
from caughtup.models.verdicts import LAG

Row = TypeVar("Row")


#: What an instance sends is bounded: any member of the group of instances may be one. The values of
#: an answer, a part's rows other than those of groups, its counts, and what it counts by name.
_MOST_VALUES = 1_000_000
_MANY, _FEW = msgspec.Meta(max_length=10_000), msgspec.Meta(max_length=100)
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
#: Decoding a row fails in one of these ways.
_BAD_ROW = (msgspec.DecodeError, RecursionError)


class _Named(Part):
    group: str


class ViewPart(Part, kw_only=True):
    """What is merged of an instance's view; every view has some of it.

    Rows of groups stay as they were sent: an instance of a later release may have more fields.
    """

    now_ms: int = 0
    figures_ms: int | None = None
    ready: bool = True
    unready: Sequence[str] = ()
    groups: Sequence[msgspec.Raw] = ()
    groups_more: Count = 0
    statuses: Annotated[Mapping[str, Count], _FEW] = {}
    groups_not_told: Annotated[Mapping[str, Count], _FEW] = {}
    applications: Sequence[msgspec.Raw] = ()
    connect: Sequence[msgspec.Raw] = ()
    transactions: Annotated[Sequence[OpenTransaction], _MANY] = ()
    transactions_missing: Annotated[Sequence[str], _MANY] = ()
    partitions_left_out: Count = 0
    feed: Annotated[Sequence[Happening], _MANY] = ()
    refused: Annotated[Sequence[RefusedOfTopic], _MANY] = ()
    faults: Annotated[Sequence[Fault], _MANY] = ()
    checkpoint_problems: Annotated[Sequence[CheckpointProblem], _MANY] = ()
    set_aside: Annotated[Sequence[SetAside], _MANY] = ()
    at_ms: Annotated[Sequence[int], _MANY] = ()
    series: Mapping[str, Annotated[Sequence[float | None], _MANY]] = {}
    marks: Annotated[Sequence[Happening], _MANY] = ()


#: The kinds of events that an instance has of its own groups; others all instances have.
_OF_GROUPS = frozenset({"rebalance", "verdict", "movement", "connect", "transaction"})
#: The figures over time that are of an instance's own groups.
_SUMMED = frozenset({"lag", "groups_behind", "warmups", "restoring"})
_PART = msgspec.json.Decoder(ViewPart)
_LINE = msgspec.json.Decoder(GroupLine)
_NAMED = msgspec.json.Decoder(_Named)


def view_part(answer: bytes) -> ViewPart:
    """Return an instance's part of a view. Raises msgspec.DecodeError."""
    if b"\n" in answer or b"\r" in answer:  # they would end an event in the middle
        raise msgspec.DecodeError("it has several lines")
    if answer.count(b",") >= _MOST_VALUES:
        raise msgspec.DecodeError(f"it has more than {_MOST_VALUES:,} values")
    try:
        return _PART.decode(answer)
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None


def figures_age_ms(part: ViewPart) -> int:
    """Return how old a part's figures were when it was made, by the clock of its instance."""
    return 0 if part.figures_ms is None else max(0, part.now_ms - part.figures_ms)


def merge_steps(view: Head, parts: Sequence[ViewPart]) -> Generator[None, None, None]:
    """Add other instances' parts to a view, yielding to other work between steps.

    Reassignments, Spark's streams and the service's own parts are those of the instance that is
    asked: all know the former. A row that cannot be decoded is left out.
    """
    if isinstance(view, OverviewView):
        yield from _merge_overview(view, parts)
    elif isinstance(view, WholeView):
        view.groups = yield from _by_name(view.groups, [part.groups for part in parts])
        view.applications = yield from _by_name(
            view.applications, [part.applications for part in parts]
        )
        view.connect = yield from _by_name(view.connect, [part.connect for part in parts])
        view.groups_not_told = _sum([view.groups_not_told, *(p.groups_not_told for p in parts)])
    elif isinstance(view, ConnectsView):
        view.connect = yield from _by_name(view.connect, [part.connect for part in parts])
    elif isinstance(view, TransactionsView):
        _merge_transactions(view, parts)
    if isinstance(view, OverviewView | TransactionsView):
        view.feed = _newest(view.feed, parts)
    if isinstance(view, HeadWithFailures | HealthView):
        _merge_failures(view, parts)


def recent_steps(view: RecentView, parts: Sequence[ViewPart]) -> Generator[None, None, None]:
    """Add other instances' figures to the last hours of the cluster, yielding between steps.

    A sample is unknown if that of an instance is, or if it has none of within a step of that time.
    """
    for name in sorted(_SUMMED & {*view.series, *(name for part in parts for name in part.series)}):
        total = list(view.series.get(name, (0.0,) * len(view.at_ms)))
        for part in parts:
            values = part.series.get(name)
            for at, when in enumerate(view.at_ms):
                theirs = 0.0 if values is None else _sample(part.at_ms, values, when)
                ours = total[at]
                total[at] = None if ours is None or theirs is None else ours + theirs
                yield
        view.series[name] = total
    view.marks = sorted(
        (*view.marks, *(one for part in parts for one in part.marks if one.kind in _OF_GROUPS)),
        key=attrgetter("at_ms"),
    )[-MOST_MARKS:]


def _sample(times: Sequence[int], values: Sequence[float | None], when_ms: int) -> float | None:
    """Return the value nearest to a time, None if it is more than a step away."""
    after = bisect_left(times, when_ms)
    near = [at for at in (after - 1, after) if 0 <= at < min(len(times), len(values))]
    nearest = min(near, key=lambda at: abs(times[at] - when_ms), default=None)
    if nearest is None or abs(times[nearest] - when_ms) > STEP_MS:
        return None
    return values[nearest]


def _merge_overview(view: OverviewView, parts: Sequence[ViewPart]) -> Generator[None, None, None]:
    ranked: dict[str, tuple[tuple[int, int, str], GroupRow]] = {}
    for row in (*view.groups, *(row for part in parts for row in part.groups)):
        raw = _raw(row)
        try:
            line = _LINE.decode(raw)
        except _BAD_ROW:
            continue
        # For a moment, two instances may have a group: the first is the one that is asked.
        ranked.setdefault(line.group, (group_rank(line), cast(GroupRow, raw)))
        yield
    ordered = sorted(ranked.values(), key=lambda of: of[0])
    shown = ordered[:GROUPS_SHOWN]
    more = view.groups_more + sum(part.groups_more for part in parts)
    view.groups_more = more + len(ordered) - len(shown)
    view.groups = [row for _, row in shown]
    counts = _sum([view.statuses, *(part.statuses for part in parts)])
    view.statuses = {status: counts[status] for status in LAG.words if counts.get(status)}
    view.groups_not_told = _sum([view.groups_not_told, *(p.groups_not_told for p in parts)])


def _by_name(
    own: Sequence[Row], theirs: Iterable[Iterable[msgspec.Raw]]
) -> Generator[None, None, list[Row]]:
    """Return rows sorted by their group; of two of a group, the first."""
    named: dict[str, Row] = {}
    for row in (*own, *(row for rows in theirs for row in rows)):
        raw = _raw(row)
        try:
            named.setdefault(_NAMED.decode(raw).group, cast(Row, raw))
        except _BAD_ROW:
            continue
        yield
    return [named[group] for group in sorted(named)]


def _merge_transactions(view: TransactionsView, parts: Sequence[ViewPart]) -> None:
    """Add transactions: each instance knows those that hold back its own groups."""
    known: dict[tuple[int, int], OpenTransaction] = {}
    for one in (*view.transactions, *(one for part in parts for one in part.transactions)):
        before = known.get(producer(one))
        known[producer(one)] = one if before is None else _of_both(before, one)
    view.transactions = sorted(known.values(), key=age_order)
    missing = (view.transactions_missing, *(part.transactions_missing for part in parts))
    view.transactions_missing = list(dict.fromkeys(why for each in missing for why in each))
    view.partitions_left_out += sum(part.partitions_left_out for part in parts)


def _of_both(one: OpenTransaction, other: OpenTransaction) -> OpenTransaction:
    partitions = {held.topic_partition: held for held in (*other.partitions, *one.partitions)}
    blocked = dict.fromkeys((*one.blocked_groups, *other.blocked_groups))
    return changed(
        one,
        partitions=tuple(partitions[each] for each in sorted(partitions)),
        blocked_groups=tuple(sorted(blocked)[:MOST_GROUPS]),
        records_behind=max(one.records_behind, other.records_behind),
    )


def _merge_failures(view: HeadWithFailures | HealthView, parts: Sequence[ViewPart]) -> None:
    view.faults = _latest(view.faults, (p.faults for p in parts), attrgetter("last_ms"))
    view.set_aside = _latest(view.set_aside, (p.set_aside for p in parts), attrgetter("at_ms"))
    view.refused = _each_once(view.refused, (p.refused for p in parts), attrgetter("topic"))
    view.checkpoint_problems = _each_once(
        view.checkpoint_problems, (p.checkpoint_problems for p in parts), attrgetter("checkpoint")
    )


def _latest(
    own: Sequence[Row], theirs: Iterable[Sequence[Row]], at_ms: Callable[[Row], int]
) -> list[Row]:
    rows = [*own, *(row for rows in theirs for row in rows)]
    return sorted(rows, key=at_ms, reverse=True)[:FAULTS_SHOWN]


def _each_once(
    own: Sequence[Row], theirs: Iterable[Sequence[Row]], named: Callable[[Row], str]
) -> list[Row]:
    found: dict[str, Row] = {}
    for row in (*own, *(row for rows in theirs for row in rows)):
        found.setdefault(named(row), row)
    return [found[name] for name in sorted(found)]


def _newest(own: Sequence[Happening], parts: Sequence[ViewPart]) -> list[Happening]:
    """Return events; those of reassignments are known to all instances."""
    theirs = [one for part in parts for one in part.feed if one.kind in _OF_GROUPS]
    # An instance that gave up a group still has its earlier events, as the next one may.
    once = {(one.at_ms, one.kind, one.text, one.group): one for one in (*theirs, *own)}
    return sorted(once.values(), key=lambda one: -one.at_ms)[:FEED_SHOWN]


def _raw(row: object) -> msgspec.Raw:
    return row if isinstance(row, msgspec.Raw) else msgspec.Raw(msgspec.json.encode(row))


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)
