"""Why a group rebalanced: who joined or left, or what was due, by its members before and after."""

from __future__ import annotations

import re
from collections import Counter

from caughtup.models.groups.membership import Member, Membership
from caughtup.models.recent.happenings import Happening

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
    return "a member asked for it; nobody joined or left"


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
