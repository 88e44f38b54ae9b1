"""Views that are merged of instances' parts show what one instance with all groups shows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_at_once
from caughtup.agents.web.page.head import Head
from caughtup.agents.web.page.merged import ViewPart, merge_steps, recent_steps, view_part
from caughtup.agents.web.page.overview import overview_steps
from caughtup.agents.web.page.parts import (
    RecentView,
    connect_steps,
    health_steps,
    transactions_steps,
    whole_steps,
)
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.forgetting import drop_groups
from tests.support.states import NOW_MS, everything

VIEWS = {
    "overview": overview_steps,
    "state": whole_steps,
    "connect": connect_steps,
    "transactions": transactions_steps,
    "health": health_steps,
}
ALL = everything().group_names()
#: What depends on the instance that is asked: its own reader, and what it has written.
OWN = ("reader", "parts", "unhealthy")


def made(state: ClusterState, view: str) -> Head:
    return done_at_once(VIEWS[view](state, Health(ready=True), NOW_MS))


def with_groups(kept: set[str]) -> ClusterState:
    state = everything()
    done_at_once(drop_groups(state, lambda group: group not in kept))
    return state


def fields(view: Head) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(view))
    if "feed" in shown:
        shown["feed"].sort(key=str)
    return {name: value for name, value in shown.items() if name not in OWN}


@pytest.mark.parametrize("view", VIEWS)
@settings(max_examples=10)
@given(owners=st.lists(st.integers(0, 2), min_size=len(ALL), max_size=len(ALL)))
def test_three_instances_show_what_one_shows(view: str, owners: list[int]) -> None:
    parts = [
        made(with_groups({group for group, of in zip(ALL, owners, strict=True) if of == n}), view)
        for n in range(3)
    ]
    shown = parts[0]
    done_at_once(merge_steps(shown, [view_part(msgspec.json.encode(part)) for part in parts[1:]]))
    assert fields(shown) == fields(made(everything(), view))


def test_a_group_of_two_instances_is_shown_once() -> None:
    shown = made(everything(), "overview")
    part = view_part(msgspec.json.encode(made(everything(), "overview")))
    done_at_once(merge_steps(shown, [part]))
    assert fields(shown)["groups"] == fields(made(everything(), "overview"))["groups"]


def test_a_row_keeps_the_fields_of_a_later_release_and_one_that_is_none_is_left_out() -> None:
    shown = made(with_groups(set()), "overview")
    part = ViewPart(
        groups=[
            msgspec.Raw(b'{"group":"a","partitions":1,"later":5}'),
            msgspec.Raw(b'{"group":7}'),
            msgspec.Raw(b"[]"),
        ]
    )
    done_at_once(merge_steps(shown, [part]))
    assert fields(shown)["groups"] == [{"group": "a", "partitions": 1, "later": 5}]


def test_figures_of_the_cluster_are_summed_where_all_instances_know_them() -> None:
    view = RecentView(
        now_ms=60_000,
        at_ms=[0, 10_000, 20_000, 30_000],
        series={"lag": [1, 2, None, 4], "reassignments": [1, 1, 1, 1]},
        marks=[],
    )
    parts = [
        ViewPart(at_ms=[9_000, 21_000, 28_000], series={"lag": [10, 20, 30], "warmups": [0, 1, 2]}),
        ViewPart(at_ms=[0, 10_000, 20_000, 30_000], series={"reassignments": [1, 1, 1, 1]}),
    ]
    done_at_once(recent_steps(view, parts))
    assert view.series == {
        "lag": [11, 12, None, 34],
        "reassignments": [1, 1, 1, 1],
        "warmups": [0, 0, 1, 2],
    }
