"""The election of the active one among several instances of the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """An instance's data when it joins.

    ``name`` is for display. ``active``: it is the active instance. ``caught_up``: its tables are
    read. ``since_ms``: when it started, by its own clock.
    """

    name: str
    active: bool
    caught_up: bool
    since_ms: int


def elect(candidates: Mapping[str, Candidate]) -> str:
    """Return the id of the elected candidate; there is at least one.

    The active one stays. Without one, an instance whose tables are read is preferred, and then the
    one that started first.
    """

    def rank(member: str) -> tuple[bool, bool, int, str]:
        candidate = candidates[member]
        return not candidate.active, not candidate.caught_up, candidate.since_ms, member

    return min(candidates, key=rank)
