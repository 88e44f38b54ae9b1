"""What has to hold of whatever is said: pure rules on what was said, and on what was true."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.chaos.history import Bounds, Truth, added
from tests.chaos.said import COMMITTED, END, GENERATION, GROUP_LAG, LAG, MOVING, Figure, Said

#: By so much a figure may lag behind what it says of its own age, and its age itself in calm times.
STALE_SECONDS = 5.0
OLD_SECONDS = 10.0
#: For so long a figure that is due may be missing in calm times, and one that isn't may stay.
ABSENT_SECONDS = 15.0
#: For so long nobody may say that he is ready while commits that were made aren't read.
UNREAD_SECONDS = 60.0
#: For so long a reassignment may be on without being listed.
UNLISTED_SECONDS = 8.0
#: Verdicts that nobody is to be given on a replica that copies.
ALARMING = frozenset(
    {"diverging", "blocked", "throttled out", "stalled", "dead target", "no source"}
)


class Violation(NamedTuple):
    """A rule that was broken: when (s, monotonic), which, what was said and what was true."""

    at: float
    rule: str
    said: str
    true: str


@dataclass(frozen=True)
class Around:
    """What is around: ``fault_since`` is when the fault began that is on, or whose grace lasts.

    ``calm_since`` is when the last grace ended; one of them is None. Times in s, monotonic.
    """

    fault_since: float | None = None
    calm_since: float | None = None

    def calm_for(self, now: float) -> float:
        """Return for how many seconds nothing has been wrong."""
        return 0.0 if self.calm_since is None else now - self.calm_since


class Watched(NamedTuple):
    """A group whose figures are due: its partitions, and whether it commits at all.

    ``whole``: it reads nothing else, so that its lag is theirs.
    """

    group: str
    partitions: tuple[tuple[str, int], ...]
    commits: bool = True
    whole: bool = True


def is_watched(figure: Figure, watched: Watched | None, truth: Truth) -> bool:
    """Return whether somebody knows the truth of a figure, or will."""
    if figure.kind == END:
        return truth.of((END, figure.topic, figure.partition)).newest is not None
    if figure.kind == GENERATION:
        return truth.of((GENERATION, figure.group)).newest is not None
    if watched is None:
        return False
    if figure.kind == GROUP_LAG:
        return watched.whole
    return (figure.topic, figure.partition) in watched.partitions


def window(said: Said, around: Around, *, of_page: bool = False) -> tuple[float, float]:
    """Return between which times a figure must have been true at some moment (s, monotonic).

    As old as it says itself to be, and a little more. Whoever says that he isn't ready may show
    what was true before the fault. A leader that was just elected answers from before its high
    watermark, and so for a moment with less than consumers of its log have read.
    """
    age = max(0.0, said.age_seconds) + of_page * said.page_age_seconds
    since, until = said.asked - STALE_SECONDS - age, said.answered
    if around.fault_since is not None:
        until += STALE_SECONDS
        if not said.is_ready:
            since = min(since, around.fault_since - STALE_SECONDS)
    return since, until


def bounds(
    figure: Figure, watched: Watched | None, truth: Truth, since: float, until: float
) -> Bounds | None:
    """Return what a figure can have been between two times; None where nobody can say (yet)."""
    if figure.kind in {END, LAG}:
        since = since_its_leader_was_lost(figure, truth, since, until)
    match figure.kind:
        case "lag" if watched is not None:
            end = truth.bounds((END, figure.topic, figure.partition), since, until)
            at = Bounds(0, 0)
            if watched.commits:
                key = COMMITTED, figure.group, figure.topic, figure.partition
                committed = truth.bounds(key, since, until)
                if committed is None:
                    return None
                at = committed if not committed.absent else Bounds(0, committed.high)
            if end is None:
                return None
            return Bounds(max(0, end.low - at.high), max(0, end.high - at.low))
        case "group lag" if watched is not None:
            parts = [Figure(LAG, figure.group, *place) for place in watched.partitions]
            return added([bounds(part, watched, truth, since, until) for part in parts])
        case "committed":
            return truth.bounds(
                (COMMITTED, figure.group, figure.topic, figure.partition), since, until
            )
        case "end":
            return truth.bounds((END, figure.topic, figure.partition), since, until)
        case "generation":
            # The truth teller reads it off the log as the service does, and may be the later one.
            return truth.bounds((GENERATION, figure.group), since, until + STALE_SECONDS)
    return None


def since_its_leader_was_lost(figure: Figure, truth: Truth, since: float, until: float) -> float:
    """Return from when on a partition's end may be what is shown of it.

    While it has no leader its figures stand still, and don't make the age of all figures grow: they
    are those of the last listing before, which may lack what was written between the two.
    """
    lost = truth.of((END, figure.topic, figure.partition)).unseen_since(since, until)
    return since if lost is None else min(since, lost - STALE_SECONDS)


def lies(
    said: Said, around: Around, truth: Truth, groups: dict[str, Watched], pending: list[Figure]
) -> Iterator[Violation]:
    """Yield each figure that wasn't true when it may have been; ``pending``: nobody can say yet.

    A coordinator that was suspended just after a commit was replicated answers, once it goes on, with
    the offset before, while readers of its log have the commit. So after a fault, what was committed
    a little later counts, too.
    """
    for figure, value in said.figures.items():
        since, until = window(said, around, of_page=figure.kind == GROUP_LAG)
        if around.fault_since is not None and figure.kind in {COMMITTED, LAG, GROUP_LAG}:
            until += STALE_SECONDS
        watched = groups.get(figure.group)
        if not is_watched(figure, watched, truth):
            continue
        found = bounds(figure, watched, truth, since, until)
        if found is None:
            pending.append(figure)
        elif value not in found:
            yield Violation(
                said.asked,
                "a figure was true",
                f"{figure} = {value:.0f} ({'ready' if said.is_ready else 'not ready'}, "
                f"{said.age_seconds:.1f} s old)",
                f"{found.low} to {found.high} in the {until - since:.1f} s before",
            )


def silences(said: Said, around: Around, watched: Iterable[Watched]) -> Iterator[Violation]:
    """Yield what is missing, or old, or makes no sense, on an instance that is ready."""
    if said.unreadable:
        yield Violation(said.asked, "an answer can be read", said.unreadable, "")
    if not said.is_ready or around.calm_for(said.asked) < ABSENT_SECONDS:
        return
    if said.age_seconds > OLD_SECONDS:
        told = f"figures are {said.age_seconds:.1f} s old, and ready"
        yield Violation(said.asked, "figures are fresh in calm times", told, "no fault")
    for group in watched:
        for place in group.partitions:
            due = Figure(LAG, group.group, *place)
            if due not in said.figures:
                told = f"{due} is absent, and ready"
                yield Violation(said.asked, "what is known is shown", told, "the group is there")


def unread(said: Said, truth: Truth, canaries: Sequence[Watched]) -> Iterator[Violation]:
    """Yield the commits that weren't read for long by an instance that says it is ready."""
    if not said.is_ready:
        return
    for canary in canaries:
        for place in canary.partitions:
            value = said.figures.get(Figure(COMMITTED, canary.group, *place), math.nan)
            passed = truth.of((COMMITTED, canary.group, *place)).passed(value)
            if passed is not None and said.asked - passed > UNREAD_SECONDS:
                yield Violation(
                    said.asked,
                    "ready means read",
                    f"ready, and {canary.group} at {value:.0f}",
                    f"it went beyond {said.asked - passed:.0f} s before",
                )


def ghosts(said: Said, around: Around, deleted: dict[str, float]) -> Iterator[Violation]:
    """Yield the groups that are shown long after they were deleted (s, monotonic)."""
    if around.calm_for(said.asked) < ABSENT_SECONDS:
        return
    for group in {figure.group for figure in said.figures} & deleted.keys():
        gone = said.asked - deleted[group]
        if gone > ABSENT_SECONDS:
            told = f"{group} is shown"
            yield Violation(said.asked, "what is gone goes", told, f"deleted {gone:.0f} s before")


def rivals(before: Said, other: Said, after: Said) -> Iterator[Violation]:
    """Yield two that are ready at once: one before and after the other was asked, and the other."""
    if before.is_ready and other.is_ready and after.is_ready:
        yield Violation(other.asked, "one is active", "two say that they are ready", "")


def shown_by_standby(said: Said) -> Iterator[Violation]:
    """Yield the figures of groups on ``/metrics`` of an instance that stands by."""
    shown = [f for f in said.figures if f.group and f.kind != GROUP_LAG]
    if said.stands_by and shown:
        told = f"{shown[0]} = {said.figures[shown[0]]:.0f}"
        yield Violation(said.asked, "who stands by is silent", told, said.ready_text.strip())


def misjudged(
    said: Said, place: tuple[str, int], moves_since: float, truth: Truth
) -> Iterator[Violation]:
    """Yield what is wrong with what is said of a partition that has been copying since then.

    Who is ready lists it, once brokers have shown it for some seconds; nobody's verdict alarms.
    """
    name, verdict = f"{place[0]}-{place[1]}", said.moves.get(place)
    true = f"it has been copied for {said.asked - moves_since:.0f} s"
    if verdict in ALARMING:
        yield Violation(said.asked, "no alarm while it moves", f"{name} is {verdict}", true)
    since, age = said.asked - UNLISTED_SECONDS, said.moves_age_seconds
    if verdict is not None or not said.is_ready or age is None or age > STALE_SECONDS:
        return
    samples = truth.of((MOVING, *place)).between(since, said.asked - 1)
    if moves_since < since and samples and all(sample.value == 1 for sample in samples):
        yield Violation(said.asked, "what moves is listed", f"{name} is not listed", true)
