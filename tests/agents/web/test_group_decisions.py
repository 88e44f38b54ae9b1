"""What the service shows of a group's decision: the metric, the group's view, and the explanation."""

from __future__ import annotations

import pytest
from rich.console import Console

from caughtup.agents.cli.explain.consumers import print_consumer_group
from caughtup.agents.process.health import Health
from caughtup.agents.web.page.group import group_steps
from caughtup.models.decisions.consumer_decision import ConsumerDecision
from caughtup.models.records.fields import changed
from caughtup.models.shown.consumer_group import explain_consumer_group
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.coordinator import AT_MS, PlayedGroup, know, read
from tests.support.observability.scraping import scrape


@pytest.fixture
def state() -> ClusterState:
    """Return a state that has read two epochs of a group on the new protocol."""
    state, group = ClusterState("c", {}), PlayedGroup("g", topics={"t": (b"t" * 16, 3)})
    know(state, group)
    for name in ("a", "b"):
        group.join(name, ["t"])
    read(state, group.take())
    return state


def test_decisions_are_counted_by_assignor_client_and_result(state: ClusterState) -> None:
    found = scrape(state)["caughtup_group_decisions_total"]
    assert found == {("g", "uniform", "group-coordinator", "match"): 2}


def test_a_groups_view_has_its_last_decision(state: ClusterState) -> None:
    steps = group_steps(state, Health(ready=True), AT_MS, "g")
    while True:
        try:
            next(steps)
        except StopIteration as end:
            view = end.value
            break
    assert view.decision == ConsumerDecision("uniform", "match", "group-coordinator")


@pytest.mark.parametrize(
    ("client", "who"),
    [
        ("group-coordinator", "The group coordinator decided by the assignor uniform."),
        (
            "group-coordinator 4.3",
            "The group coordinator decided by the assignor uniform of Kafka 4.3.",
        ),
    ],
)
def test_an_explanation_says_whether_the_coordinator_decides_so(
    state: ClusterState, client: str, who: str
) -> None:
    explained = explain_consumer_group(state, "g")
    assert explained is not None
    assert isinstance(explained.decision, ConsumerDecision)
    explained.decision = changed(explained.decision, client=client)
    console = Console(width=200, record=True, markup=False)
    print_consumer_group(console, explained)
    text = console.export_text()
    assert who in text
    assert "The assignment is exactly what that assignor decides." in text
