"""Racks of replicas: asked for where a leader may have decided by them, and only there."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.decisions.life import END_OFFSETS_WAIT_MS
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import TopicPartition
from caughtup.models.state.cluster import ClusterState
from tests.models.learning.applications import GROUP, Application
from tests.support.decisions import decided_generation


def with_racks(generation: StreamsGeneration, *racks: str | None) -> StreamsGeneration:
    """Return a generation whose processes are in these racks, in turn."""
    clients = {}
    for at, (process, client) in enumerate(generation.clients.items()):
        rack = racks[at % len(racks)]
        members = tuple(replace(member, rack=rack) for member in client.members)
        clients[process] = replace(client, members=members)
    return replace(generation, clients=clients)


def a_generation() -> tuple[ClusterState, StreamsGeneration, int]:
    app = Application("racks", doubts=0, failures=0)
    app._join()
    played = app.rebalance()
    state = ClusterState("cluster-1", {GROUP: app.parameters})
    state.ends = played.ends
    return state, played.generation, played.seen_ms


def test_racks_are_asked_for_as_long_as_a_generation_of_racked_clients_waits() -> None:
    state, generation, seen_ms = a_generation()
    assert state.racked_topics() is None
    state.applications.apply_generation(GROUP, with_racks(generation, "a", "b"), seen_ms)
    wanted = state.racked_topics()
    assert wanted is not None
    assert wanted("in0")
    assert wanted(f"{GROUP}-store0-changelog")
    assert not wanted("others")
    state.replicas = {TopicPartition(topic, 0): ("a", "b") for topic in generation.source_topics}
    list(state.decide(seen_ms + END_OFFSETS_WAIT_MS))
    assert decided_generation(state).inputs.replicas == state.replicas
    assert state.racked_topics() is None


def test_without_a_rack_of_each_client_none_is_asked_for() -> None:
    state, generation, seen_ms = a_generation()
    state.applications.apply_generation(GROUP, with_racks(generation, "a", None), seen_ms)
    assert state.racked_topics() is None
    state.replicas = {TopicPartition("in0", 0): ("a", "b")}
    list(state.decide(seen_ms + END_OFFSETS_WAIT_MS))
    assert decided_generation(state).inputs.replicas is None


def test_what_is_not_looked_up_yet_is_in_doubt() -> None:
    state, generation, seen_ms = a_generation()
    state.applications.apply_generation(GROUP, with_racks(generation, "a", "b"), seen_ms)
    state.replicas = {TopicPartition("others", 0): ("a", "b")}
    list(state.decide(seen_ms + END_OFFSETS_WAIT_MS))
    inputs = decided_generation(state).inputs
    assert inputs.replicas is None
    assert any(
        "caughtup has not looked up the racks of replicas" in line for line in inputs.unknown
    )


def test_a_generation_waits_for_racks_unless_they_are_told_not_to_matter() -> None:
    """The first one of an application has nothing else to wait for."""
    state, generation, seen_ms = a_generation()
    generation = with_racks(generation, "a", "b")
    state.applications.apply_generation(GROUP, generation, seen_ms)
    assert not list(state.decide(seen_ms + 1))
    assert state.racked_topics() is not None
    state.replicas = {TopicPartition(topic, 0): ("a", "b") for topic in generation.source_topics}
    assert list(state.decide(seen_ms + 2))
    assert decided_generation(state).inputs.replicas == state.replicas

    state, generation, seen_ms = a_generation()
    told = replace(state.applications.parameters(GROUP), strategy="none")
    ends, state = state.ends, ClusterState("cluster-1", {GROUP: told})
    state.ends = ends
    state.applications.apply_generation(GROUP, with_racks(generation, "a", "b"), seen_ms)
    assert list(state.decide(seen_ms + 1))
    assert decided_generation(state).inputs.unknown == ()
