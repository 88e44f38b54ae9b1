"""What the sampler takes of a state: figures, rebalances, and a group that fails costs itself."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given, settings

from caughtup.agents.process.health import Health
from caughtup.agents.recent import sampler as module
from caughtup.agents.recent.sampler import Sampler
from caughtup.models.commits.table import CommittedTopic
from caughtup.models.offsets import EndOffsets
from caughtup.models.recent.rings import STEP_MS
from caughtup.models.state.cluster import ClusterState
from tests.models.lag.test_at_rest import GROUP as READERS
from tests.models.lag.test_at_rest import ZERO, at_rest, round_of
from tests.support.changes import Change, changes
from tests.support.groups.records import GROUP, START_MS, consumer_generation
from tests.support.groups.streams import WARMING
from tests.support.groups.streams import generation as streams_generation
from tests.support.sizes import daily
from tests.support.states import (
    GAINING,
    JUDGED_MS,
    NOW_MS,
    assess,
    cluster_state,
    everything,
    judged,
    read,
)


def sampled(state: ClusterState, at_ms: int = NOW_MS) -> None:
    """Look at every group, and take figures."""
    for _ in Sampler(state, Health(ready=True), lambda: at_ms).steps(sampling=True):
        pass


def test_every_group_has_figures_and_the_cluster_their_sums() -> None:
    state = everything()
    sampled(state)
    application = state.recent.series(GROUP)
    assert application is not None
    assert application.columns()[1]["warmups"] == [
        sum(row.role == "warmup" for row in state.task_rows(GROUP))
    ]
    _, whole = state.recent.cluster.columns()
    assert whole["warmups"] == application.columns()[1]["warmups"] != [0]
    assert whole["reassignments"] == [1]
    assert (whole["lag"][0] or 0) > 0
    assert whole["groups_behind"] == [0]  # nobody fares badly for having something to read


@settings(print_blob=True, deadline=None, max_examples=daily(30, 150))
@given(changes)
def test_a_group_at_rest_has_the_figures_that_are_summed_up_again(made: list[Change]) -> None:
    kept, anew = cluster_state(), cluster_state()
    at_ms = NOW_MS
    sampler = Sampler(kept, Health(ready=True), lambda: at_ms)
    for change in chain.from_iterable((each, assess) for each in made):
        at_ms += STEP_MS
        for state in (kept, anew):
            change(state)
        for _ in sampler.steps(sampling=True):
            pass
        sampled(anew, at_ms)
        for group in anew.group_names():
            of_kept, of_anew = kept.recent.series(group), anew.recent.series(group)
            assert of_kept is not None
            assert of_anew is not None
            assert of_kept.columns() == of_anew.columns(), group
        assert kept.recent.cluster.columns() == anew.recent.cluster.columns()
    assert not kept.faults.totals


def test_a_group_at_rest_is_summed_up_again_once_a_log_end_has_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state, at_ms, asked = at_rest(), START_MS, list[str]()
    columns_of = state.commits.columns_of

    def counted(group: str) -> list[CommittedTopic]:
        asked.append(group)
        return columns_of(group)

    monkeypatch.setattr(state.commits, "columns_of", counted)
    sampler = Sampler(state, Health(ready=True), lambda: at_ms)

    def sample() -> None:
        for _ in sampler.steps(sampling=True):
            pass

    for _ in range(3):
        sample()
        at_ms += STEP_MS
    assert asked == [READERS]
    state.apply_ends(ZERO, EndOffsets(0, 12, 12, at_ms))
    round_of(state, at_ms)
    for _ in range(3):
        sample()
        at_ms += STEP_MS
    assert asked == [READERS, READERS]
    series = state.recent.series(READERS)
    assert series is not None
    assert series.columns()[1]["lag"] == [0, 0, 0, 3, 3, 3]


def test_the_lag_of_an_application_is_computed_once_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    state, asked = everything(), list[str]()
    columns_of = state.commits.columns_of

    def counted(group: str) -> list[CommittedTopic]:
        asked.append(group)
        return columns_of(group)

    monkeypatch.setattr(state.commits, "columns_of", counted)
    sampled(state)
    assert GROUP in asked
    assert sorted(asked) == sorted(state.group_names())


def test_the_cluster_counts_the_groups_that_are_not_ok() -> None:
    state = judged()
    sampled(state, JUDGED_MS)
    _, whole = state.recent.cluster.columns()
    verdicts = [one.verdict for one in state.assessments.verdicts.values()]
    not_ok = [verdict for verdict in verdicts if verdict not in {"ok", "unknown"}]
    assert whole["groups_behind"] == [len(not_ok)] != [0]


def test_a_rebalance_is_told_with_who_joined_and_left() -> None:
    state = everything()
    read(state, streams_generation(8, *WARMING), seen_ms=NOW_MS)
    read(state, consumer_generation(4, {"c1": (), "c3": ()}, group="plain"), seen_ms=NOW_MS)
    newest, *_ = state.recent.happenings.of("plain")
    assert newest.kind == "rebalance"
    assert newest.text == "generation 3 → 4: c3 joined, c2 left"
    newest, *_ = state.recent.happenings.of(GROUP)
    assert newest.text.startswith("generation 7 → 8: ")


def test_a_verdict_that_changes_is_told() -> None:
    state = judged()
    sampled(state, JUDGED_MS)
    before = state.recent.happenings.newest(99)
    assert {one.kind for one in before} <= {"rebalance"}
    assess(state, JUDGED_MS + 600_000)
    sampled(state, JUDGED_MS + 600_000)
    told, *others = state.recent.happenings.newest(99)
    assert others == before
    assert (told.kind, told.group, told.text) == ("verdict", GAINING, "slow → stopped")


def test_a_group_that_fails_costs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    state = everything()
    works = module.group_lag

    def fails(commits: object, group: str, *rest: object) -> object:
        if group == "plain":
            raise ValueError("bad")
        return works(commits, group, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "group_lag", fails)
    sampled(state)
    assert state.recent.series("plain") is None
    assert state.recent.series(GROUP) is not None
    assert [fault.subject for fault in state.faults.newest()] == ["plain"]
