"""Why a follower doesn't do what was recommended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a recommendation isn't followed, or why there is none: a code and a clause."""

    code: str
    message: str
