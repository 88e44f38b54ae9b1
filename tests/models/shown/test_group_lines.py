"""Kept lines of groups are those that are made anew."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.records.fields import changed
from caughtup.models.shown import groups
from caughtup.models.shown.groups import GroupLine, KeptGroupLines, group_line
from caughtup.models.state.cluster import ClusterState
from tests.models.lag.test_at_rest import round_of
from tests.support.changes import Change, changes
from tests.support.groups.records import START_MS
from tests.support.sizes import daily
from tests.support.states import JUDGED_MS, assess, cluster_state, judged


def alike(one: GroupLine, other: GroupLine) -> bool:
    """Return whether two lines are the same, but for the rounding of an age that has grown."""
    if one.lag_seconds is None or other.lag_seconds is None:
        return one == other
    same_age = one.lag_seconds == pytest.approx(other.lag_seconds)
    return same_age and changed(one, lag_seconds=other.lag_seconds) == other


@settings(print_blob=True, deadline=None, max_examples=daily(20, 60))
@given(st.lists(st.tuples(changes, st.integers(0, 2_000_000), st.booleans()), max_size=5))
def test_kept_lines_are_those_that_are_made_anew(
    rounds: list[tuple[list[Change], int, bool]],
) -> None:
    state, now_ms = cluster_state(), START_MS
    lines = KeptGroupLines(state)
    for made, passed_ms, is_assessed in rounds:
        for change in made:
            change(state)
        now_ms += passed_ms
        if is_assessed:
            round_of(state, now_ms)
        names = state.group_names()
        lines.keep_only(set(names))
        for group in names:
            assert alike(lines.of(group), group_line(state, group))


def test_only_the_line_of_a_group_that_changed_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state, made = judged(), list[str]()

    def noted(of: ClusterState, group: str) -> GroupLine:
        made.append(group)
        return group_line(of, group)

    monkeypatch.setattr(groups, "group_line", noted)
    lines = KeptGroupLines(state)
    assess(state, JUDGED_MS)
    for _ in range(2):
        for group in state.group_names():
            lines.of(group)
    assert sorted(made) == sorted(set(made))
