"""Decisions of the assignors in few words, and what holds for every one of the sticky ones."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignors.registry import decide
from tests.models.assignors.building import client, scenario, task


class Group(NamedTuple):
    """Tasks with state, the clients that ran them, and how many standbys each is to have."""

    tasks: tuple[str, ...]
    clients: list[dict[str, Any]]
    standbys: int

    @classmethod
    def of(cls, threads: list[int], owners: list[int], standbys: int) -> Group:
        """Describe clients by their threads, and tasks by who ran them: nobody beyond the last."""
        ran = {f"0_{partition}": owner for partition, owner in enumerate(owners)}
        clients = [
            client(active=tuple(t for t, owner in ran.items() if owner == place), capacity=capacity)
            for place, capacity in enumerate(threads)
        ]
        return cls(tuple(ran), clients, standbys)


groups = st.builds(
    Group.of,
    st.lists(st.integers(1, 5), min_size=1, max_size=7),
    st.lists(st.integers(0, 9), max_size=20),
    st.integers(0, 3),
)


def decided(*clients: dict[str, Any], **rest: Any) -> Decision:
    """Decide what ``described`` describes."""
    return decide(scenario(*clients, **rest))


def actives(decision: Decision) -> list[str]:
    """Return the active tasks of each client."""
    return [" ".join(map(str, given_to.active)) for given_to in decision.clients.values()]


def standbys(decision: Decision) -> list[str]:
    """Return the standbys of each client."""
    return [" ".join(map(str, given_to.standby)) for given_to in decision.clients.values()]


def assert_complete(decision: Decision, group: Group) -> None:
    """Fail unless each task runs once, and has as many standbys as there is room for, elsewhere."""
    given_out = decision.clients.values()
    assert sorted(t for c in given_out for t in c.active) == [task(name) for name in group.tasks]
    copies = [t for c in given_out for t in (*c.active, *c.standby)]
    wanted = 1 + min(group.standbys, len(given_out) - 1)
    assert all(copies.count(task(name)) == wanted for name in group.tasks)
    assert all(not set(c.active) & set(c.standby) for c in given_out)
