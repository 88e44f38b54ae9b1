"""Two applications, one of which makes a function that the test chooses raise an error."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import START_MS, commit
from tests.support.groups.streams import WARMING, generation
from tests.support.states import TOLD, known_ends, open_transaction, read

BAD, GOOD = "bad", "good"
NOW_MS = START_MS + 20_000


class BreaksError(Exception):
    """An unexpected error."""


def two_applications() -> ClusterState:
    """Return a state of two equal applications, with commits and an undecided generation."""
    state = ClusterState("cluster-1", {BAD: TOLD, GOOD: TOLD})
    known_ends(state)
    for group in (BAD, GOOD):
        read(state, generation(1, *WARMING, group=group), commit(0, 40, group=group))
    state.transactions.apply([open_transaction("t", [TopicPartition("clicks", 0)])], START_MS)
    return state


def breaks_for_bad(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Make a function raise if an argument is, or belongs to, the bad group."""
    works = getattr(owner, name)

    def breaks(*args: Any, **kwargs: Any) -> Any:
        if any(map(_is_bad, args)):
            raise BreaksError("nobody thought of it")
        return works(*args, **kwargs)

    monkeypatch.setattr(owner, name, breaks)


def _is_bad(argument: Any) -> bool:
    for step in ("generation", "newest", "group"):
        argument = getattr(argument, step, argument)
    return isinstance(argument, str) and argument == BAD
