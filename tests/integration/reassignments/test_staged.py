"""Reassignments of every kind on six brokers: each is named, and no healthy one raises an alarm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from caughtup.bench.stalls import stage_reassignments, staged_figures
from caughtup.demo.reassignments.acts import CONTROLLERS, NODES, SHORT_ACTS
from caughtup.demo.story.stage import DemoStage

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def stage() -> Iterator[DemoStage]:
    with DemoStage(nodes=NODES, controllers=CONTROLLERS) as stage:
        stage.start_cluster()
        stage.start_service()
        yield stage


@pytest.mark.timeout(480)
@pytest.mark.parametrize(
    "act",
    # Those after the first take more than a minute.
    [SHORT_ACTS[0], *(pytest.param(act, marks=pytest.mark.thorough) for act in SHORT_ACTS[1:])],
)
def test_what_is_staged_is_named_and_nothing_else_alarms(stage: DemoStage, act: str) -> None:
    reassignments = [staged_figures(name, one) for name, one in stage_reassignments(stage, [act])]
    assert reassignments
    wrong = [one for one in reassignments if not one["ok"]]
    assert not wrong, wrong
