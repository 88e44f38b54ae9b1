"""Generations from which nothing can be learned: they say so, and poison nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.decisions.life import END_OFFSETS_WAIT_MS
from caughtup.models.errors import CaughtupError
from caughtup.models.groups.generation import StreamsGeneration
from tests.models.learning.applications import GROUP
from tests.support.decisions import decided_generation
from tests.support.learning import (
    TRUTH,
    a_state,
    an_application,
    learned,
    live,
    see,
)


def odd_tags(generation: StreamsGeneration) -> StreamsGeneration:
    """Half of a deployment that brings client tags is done."""
    process, client = next(iter(generation.clients.items()))
    members = tuple(replace(one, client_tags={"zone": "a"}) for one in client.members)
    return replace(
        generation, clients=generation.clients | {process: replace(client, members=members)}
    )


def odd_release(generation: StreamsGeneration) -> StreamsGeneration:
    """Half of an upgrade is done."""
    process, client = next(iter(generation.clients.items()))
    members = tuple(replace(one, latest_version=9) for one in client.members)
    return replace(
        generation, clients=generation.clients | {process: replace(client, members=members)}
    )


def foreign(generation: StreamsGeneration) -> StreamsGeneration:
    """A member's subscription is in an encoding that nobody knows."""
    process, client = next(iter(generation.clients.items()))
    clients = {other: one for other, one in generation.clients.items() if other != process}
    gone = {member.member_id for member in client.members}
    return replace(
        generation,
        clients=clients,
        skipped=tuple(f"{one}: unknown_version: 99" for one in sorted(gone)),
        arrival=tuple(one for one in generation.arrival if one not in gone),
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (odd_tags, "members have different client tags: a deployment is in progress"),
        (odd_release, "members run different releases: a deployment is in progress"),
        (foreign, "member left out: "),
        (lambda one: replace(one, follows=True), "its leader is a follower"),
    ],
)
def test_what_cannot_be_judged_says_so_and_poisons_nothing(change: object, why: str) -> None:
    app = an_application()
    state = a_state(app)
    list(live(state, app, 12))
    before = learned(state)
    for _ in range(3):
        played = app.rebalance()
        while len(played.generation.clients) < 2:
            app.live()
            played = app.rebalance()
        see(state, played, change(played.generation))  # type: ignore[operator]
        exact = decided_generation(state).exact
        assert exact.leader.result == "undetermined"
        assert why in exact.leader.why
        app.live()
    after = learned(state)
    assert after.hypotheses == before.hypotheses
    assert after.suspected == ()
    *_, last = live(state, app, 3)
    assert last.exact.leader.result == "match"


def test_an_assignor_of_somebody_s_own_is_undetermined_and_over_once_it_is_over() -> None:
    for seed in range(20):
        app = an_application(seed)
        state = a_state(app)
        list(live(state, app, 10))
        app.truth = replace(TRUTH, assignor="minimal_movement")
        (odd,) = live(state, app, 1)
        app.truth = TRUTH
        results = [decided.exact.leader.result for decided in live(state, app, 12)]
        assert "mismatch" not in results
        assert results[-1] == "match"
        assert TRUTH.is_among(learned(state).possible)
        if "no configs of Kafka's assignors explain it" in odd.exact.leader.why:
            assert odd.exact.leader.result == "undetermined"
            return
    pytest.fail("the other assignor always decided as Kafka's")


def test_one_group_whose_configs_cannot_be_learned_costs_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = an_application()
    state = a_state(app)
    list(live(state, app, 3))

    def fail(*_: object) -> None:
        raise CaughtupError("planted", "this one")

    monkeypatch.setattr("caughtup.models.decisions.deciding.learn", fail)
    before, played = learned(state), app.rebalance()
    state.ends = played.ends
    state.applications.apply_generation(GROUP, played.generation, played.seen_ms)
    assert list(state.decide(played.seen_ms + END_OFFSETS_WAIT_MS)) == []
    assert sum(state.faults.totals.values()) == 1
    assert learned(state) == before
    monkeypatch.undo()
    app.live()
    played = app.rebalance()
    state.ends = played.ends
    state.applications.apply_generation(GROUP, played.generation, played.seen_ms)
    assert len(list(state.decide(played.seen_ms + END_OFFSETS_WAIT_MS))) == 1
