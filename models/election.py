"""Which of several instances of the service is the active one, by what each says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """What an instance says when it joins.

    ``name`` is for people. ``active``: it is the active one. ``caught_up``: its tables are read.
    ``since_ms``: when it started, by its own clock.
    """

    name: str
    active: bool
    caught_up: bool
    since_ms: int


def elect(candidates: Mapping[str, Candidate]) -> str:
    """Choose among candidates by id, of which there is at least one.

    The active one stays, for whatever reason the others came or went. Else whoever can begin at
    once is preferred, and then whoever has been there for longest.
    """

    def rank(member: str) -> tuple[bool, bool, int, str]:
        candidate = candidates[member]
        return not candidate.active, not candidate.caught_up, candidate.since_ms, member

    return min(candidates, key=rank)
