"""Recent events for display, each with its reason: rebalances, verdicts, movements."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from caughtup.models.rebalances.rebalance import CAUSES, CauseKind, GroupRebalance
from caughtup.models.records.fields import Part, changed, or_none

Kind = Literal[
    "rebalance", "verdict", "movement", "reassignment", "connect", "transaction", "service"
]

#: The most events of all groups, of each group, and the most groups with events of their own.
_MOST, _MOST_OF_ONE, _MOST_SUBJECTS = 1_000, 100, 5_000
#: Texts are truncated: some contain names that clients chose.
_MOST_CHARACTERS = 500


class Happening(Part, omit_defaults=True):
    """An event at a time (ms) of a group or a partition, in words, and its reason."""

    at_ms: int
    kind: Kind
    text: str
    why: str | None = None
    group: str | None = None
    partition: str | None = None


class Happenings:
    """The newest events of all, and the newest of each group; the oldest are dropped first."""

    def __init__(self) -> None:
        self._all: deque[Happening] = deque(maxlen=_MOST)
        self._of: dict[str, deque[Happening]] = {}

    def note(self, happening: Happening) -> None:
        """Add an event."""
        why = happening.why
        kept = changed(
            happening,
            text=happening.text[:_MOST_CHARACTERS],
            why=None if why is None else why[:_MOST_CHARACTERS],
        )
        self._all.append(kept)
        if kept.group is None:
            return
        of_group = self._of.pop(kept.group, None)  # the group with the newest event comes last
        if of_group is None:
            of_group = deque(maxlen=_MOST_OF_ONE)
            if len(self._of) >= _MOST_SUBJECTS:
                del self._of[next(iter(self._of))]
        of_group.append(kept)
        self._of[kept.group] = of_group

    def newest(self, count: int) -> list[Happening]:
        """Return the newest events of all, the newest first."""
        return list(islice(reversed(self._all), count))

    def of(self, group: str) -> Iterator[Happening]:
        """Yield the events of a group, the newest first."""
        return reversed(self._of.get(group, deque()))

    def forget(self, group: str) -> None:
        """Remove a group's own events; they stay among those of all."""
        self._of.pop(group, None)


_MOST_NAMED = 5
_THREAD = re.compile(r"-StreamThread-[0-9]+-consumer$")


def rebalanced(group: str, rebalance: GroupRebalance, now_ms: int) -> Happening:
    """Return the event of a rebalance, with its causes: ``generation 5 → 6: b joined``."""
    by_kind: dict[CauseKind, Counter[str]] = {}
    for cause in rebalance.causes:
        by_kind.setdefault(cause.kind, Counter())[_name(cause.about or "")] += 1
    said = ", ".join(
        CAUSES[kind] if "" in names else named(names, CAUSES[kind])
        for kind, names in by_kind.items()
    )
    after = or_none(rebalance.after)
    steps = "" if after is None else f"{after} → "
    if not rebalance.members:
        said = "everybody left"
    text = f"generation {steps}{rebalance.generation}: {said}"
    at_ms = or_none(rebalance.at_ms) or now_ms
    return Happening(at_ms, "rebalance", text, rebalance.cause.why or None, group)


def _name(client_id: str) -> str:
    """Return a member's client: its ``client.id`` without Kafka Streams' thread suffix."""
    return _THREAD.sub("", client_id)


def named(names: Counter[str], what: str) -> str:
    """Return what up to five clients did: ``orders-c joined``, ``a, b and 3 more left``."""
    if not names:
        return ""
    shown = [
        f"{name} ({count} members)" if count > 1 else name
        for name, count in sorted(names.items())[:_MOST_NAMED]
    ]
    more = len(names) - len(shown)
    return f"{', '.join(shown)}{f' and {more} more' if more else ''} {what}"
