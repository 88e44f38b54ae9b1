"""Recent events for display, each with its reason: rebalances, verdicts, movements."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from caughtup.models.groups.membership import Member, Membership
from caughtup.models.records.fields import Part, changed

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


#: A rebalance counts as the one that was due if it comes at most this long (ms) after its time.
_LATE_MS = 15_000
_MOST_NAMED = 5
_THREAD = re.compile(r"-StreamThread-[0-9]+-consumer$")


def rebalance(
    group: str, before: Membership, after: Membership, at_ms: int, due_ms: int | None = None
) -> Happening | None:
    """Return the event between two looks at a group; None if it is in the same generation.

    ``due_ms``: when the earlier generation of a Streams application requested the next rebalance.
    """
    if after.generation == before.generation:
        return None
    old, new = _by_id(before), _by_id(after)
    left = Counter(_name(old[member]) for member in sorted(old.keys() - new.keys()))
    joined = Counter(_name(new[member]) for member in sorted(new.keys() - old.keys()))
    again = left & joined  # the same client as another member
    causes = [
        named(joined - again, "joined"),
        named(left - again, "left"),
        named(again, "came back as another member"),
    ]
    said = ", ".join(cause for cause in causes if cause)
    steps = f"generation {before.generation} → {after.generation}"
    if not new:
        return Happening(at_ms, "rebalance", f"{steps}: everybody left", said or None, group)
    if said:
        return Happening(at_ms, "rebalance", f"{steps}: {said}", None, group)
    return Happening(at_ms, "rebalance", f"{steps}: {_asked_for(due_ms, at_ms)}", None, group)


def _asked_for(due_ms: int | None, at_ms: int) -> str:
    """Return why a group rebalanced that no member joined or left."""
    if due_ms is not None and due_ms <= at_ms <= due_ms + _LATE_MS:
        return "the rebalance that was due (probing or follow-up)"
    return "a member requested it; no member joined or left"


def _by_id(membership: Membership) -> dict[str, Member]:
    return {member.member_id: member for member in membership.members}


def _name(member: Member) -> str:
    """Return a member's client: its ``client.id`` without Kafka Streams' thread suffix."""
    return _THREAD.sub("", member.client_id) or member.member_id


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
