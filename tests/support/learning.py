"""An application whose configs are not in the settings, and a state that learns them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from caughtup.agents.topics.restoration import learned_configs
from caughtup.models.decisions.learned_configs import learned_record
from caughtup.models.decisions.life import END_OFFSETS_WAIT_MS, DecidedGeneration
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.learning.learned import Learned
from caughtup.models.records.keys import encode_group
from caughtup.models.records.learned_configs import FORMAT
from caughtup.models.state.cluster import ClusterState
from tests.models.learning.applications import GROUP, Application, Played
from tests.models.learning.truths import Truth
from tests.support.decisions import decided_generation

TRUTH = Truth(standbys=1, warm_ups=2, lag=1_000)


def an_application(seed: object = "unit 3", truth: Truth = TRUTH) -> Application:
    app = Application(seed, doubts=0, failures=0)
    app.truth = truth
    return app


def a_state(app: Application, **told: object) -> ClusterState:
    """Return a state whose settings have only an application's changelogs."""
    return ClusterState("cluster-1", {GROUP: replace(app.parameters, **told)})  # type: ignore[arg-type]


def see(state: ClusterState, played: Played, generation: StreamsGeneration | None = None) -> None:
    """Read a generation, and decide it with everything known at that time."""
    state.ends = played.ends
    state.applications.apply_generation(GROUP, generation or played.generation, played.seen_ms)
    list(state.decide(played.seen_ms + END_OFFSETS_WAIT_MS))
    assert state.faults.totals == {}


def live(state: ClusterState, app: Application, generations: int) -> Iterator[DecidedGeneration]:
    """Play an application beside a service, and yield each generation's decision."""
    for _ in range(generations):
        see(state, app.rebalance())
        yield decided_generation(state)
        app.live()


def learned(state: ClusterState) -> Learned:
    return state.applications.learned_of(GROUP)


def kept(state: ClusterState) -> bytes:
    """Return the group's learned configs as published."""
    ((group, known),) = state.applications.learned.each()
    return FORMAT.encode(learned_record(group, known))


def restarted(state: ClusterState, app: Application, **told: object) -> ClusterState:
    """Return a new state that has read what another one published."""
    again = a_state(app, **told)
    learned_configs.apply_record(again, encode_group(GROUP), kept(state))
    assert again.refused.counts == {}
    return again
