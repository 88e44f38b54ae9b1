"""What the sampler takes of a state: figures, rebalances, and a group that fails costs itself."""

from __future__ import annotations

import pytest

from caughtup.agents.process.health import Health
from caughtup.agents.recent import sampler as module
from caughtup.agents.recent.sampler import Sampler
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import GROUP, consumer_generation
from tests.support.groups.streams import WARMING
from tests.support.groups.streams import generation as streams_generation
from tests.support.states import NOW_MS, assess, everything, read


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
    assert (whole["groups_behind"][0] or 0) > 0


def test_a_rebalance_between_two_looks_is_told_with_who_joined() -> None:
    state = everything()
    sampled(state)
    read(state, streams_generation(8, *WARMING), seen_ms=NOW_MS)
    read(state, consumer_generation(4, {"c1": (), "c3": ()}, group="plain"), seen_ms=NOW_MS)
    sampled(state, NOW_MS + 2_000)
    (dealt,) = state.recent.happenings.of("plain")
    assert dealt.kind == "rebalance"
    assert dealt.text.startswith("generation 3 → 4: ")
    assert "joined" in dealt.text
    assert "left" in dealt.text
    (again,) = state.recent.happenings.of(GROUP)
    assert again.text.startswith("generation 7 → 8: ")


def test_a_verdict_that_changes_is_told() -> None:
    state = everything()
    sampled(state)
    assess(state)
    sampled(state)
    assess(state, NOW_MS + 3_600_000)
    sampled(state, NOW_MS + 3_600_000)
    kinds = {one.kind for one in state.recent.happenings.newest(99)}
    assert kinds <= {"verdict"}


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
