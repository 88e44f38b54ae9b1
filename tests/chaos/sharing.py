"""What has to hold of several instances that share the groups: pure rules on what all of them said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.chaos.rules import Violation, Watched
from tests.chaos.said import COMMITTED, Said

#: For so long a group may be with no instance while one could have it: a session, a rebalance of the
#: instances' group, and the reading back, on a machine that is busy.
UNSHARED_SECONDS = 30.0


def groups_of(said: Said) -> frozenset[str]:
    """Return the groups that an instance has by its own ``/metrics``."""
    return frozenset(figure.group for figure in said.figures if figure.kind == COMMITTED)


def united(said: Sequence[Said]) -> Said:
    """Return what several instances say together, at least one: ready if all are, as old as the oldest."""
    return Said(
        asked=min(one.asked for one in said),
        answered=max(one.answered for one in said),
        ready=200 if all(one.is_ready for one in said) else 503,
        figures={figure: value for one in said for figure, value in one.figures.items()},
        age_seconds=max(one.age_seconds for one in said),
    )


def had_twice(before: Said, other: Said, after: Said) -> Iterator[Violation]:
    """Yield groups that two have at once: one before and after the other was asked, and the other."""
    if not (before.is_ready and other.is_ready and after.is_ready):
        return
    if both := groups_of(before) & groups_of(other) & groups_of(after):
        told = f"two that are ready have {', '.join(sorted(both))}"
        yield Violation(other.asked, "a group is with one instance", told, "")


def is_complete(said: Iterable[Said], watched: Iterable[Watched]) -> bool:
    """Return whether each group is with exactly one instance."""
    counts = Counter(group for one in said for group in groups_of(one))
    return all(counts[one.group] == 1 for one in watched)


class Unshared:
    """Measures for how long each group was with no instance, while one could have it."""

    def __init__(self) -> None:
        #: The longest that is right (s): more after a fault of brokers, whose logs of groups and of
        #: transactions come back one by one.
        self.allowed = UNSHARED_SECONDS
        #: When each group was last with an instance, or could be with none (s, monotonic).
        self._since: dict[str, float] = {}
        #: The longest time of each group (s).
        self.longest: Counter[str] = Counter()

    def judge(self, groups: Mapping[str, bool], now: float, *, can_be: bool) -> Iterator[Violation]:
        """Yield groups that are with none for longer than ``allowed``, each again after as long.

        ``groups``: whether an instance has it, by group. ``can_be``: whether an instance could.
        """
        for group, is_had in groups.items():
            lasted = now - self._since.setdefault(group, now)
            if can_be:
                self.longest[group] = max(self.longest[group], int(lasted))
            late = lasted > self.allowed
            if is_had or not can_be or late:
                self._since[group] = now
            if late and can_be and not is_had:
                told = f"no instance has had {group} for {lasted:.0f} s"
                yield Violation(now, "a group is with an instance", told, "one could have it")
