"""Rebalances of real consumer groups, each staged: the service names its cause within five seconds."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from click.testing import CliRunner

from caughtup.agents.main import main
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.groups import staged_rebalances as module
from tests.support.groups.staged_rebalances import (
    CLASSIC,
    CONSUMER,
    SCENARIOS,
    Stage,
    Staged,
    old_topic,
    staged,
)
from tests.support.service import Service, wait_for

#: How soon (s) after a rebalance the service has to name its cause.
SOON = 5.0
SEED = int(os.environ.get("REBALANCES_SEED", "1"))
#: Each cause once, on one of the protocols; ``make thorough`` and stage_causes.py have the others. A
#: coordinator of KIP-848 groups waits for 45 s before it gives up a member.
SOME = {
    (CLASSIC, module.session_timed_out),
    (CLASSIC, module.poll_interval_exceeded),
    (CLASSIC, module.topic_vanished),
    (CLASSIC, module.follow_up),
    (CLASSIC, module.protocol_converted),
    (CONSUMER, module.joined),
    (CONSUMER, module.left),
    (CONSUMER, module.resubscribed),
    (CONSUMER, module.topic_grew),
    (CONSUMER, module.topic_appeared),
    (CONSUMER, module.static_member_returned),
    (CONSUMER, module.assignor_changed),
}
#: So many groups rebalance at the same time: a group waits more than it works.
AT_ONCE = 6
CASES = [
    pytest.param(
        protocol, scenario, marks=[pytest.mark.thorough] * ((protocol, scenario) not in SOME)
    )
    for protocol, scenarios in SCENARIOS.items()
    for scenario in scenarios
]


@pytest.fixture(scope="module")
def topic(shared_cluster: EmbeddedCluster) -> str:
    """A topic that is there before the service starts."""
    return old_topic(shared_cluster)


@pytest.fixture(scope="module")
def watching(shared_cluster: EmbeddedCluster, topic: str) -> Iterator[Service]:
    """The service of this file's tests."""
    with Service(shared_cluster) as service:
        yield service


@pytest.fixture(scope="module")
def being_staged(
    request: pytest.FixtureRequest, shared_cluster: EmbeddedCluster, watching: Service, topic: str
) -> Iterator[Mapping[str, Future[Staged]]]:
    """The cases that were selected, by their tests' names, several at the same time."""
    selected = {
        item.name: item.callspec.params
        for item in request.session.items
        if item.path == request.path
        and isinstance(item, pytest.Function)
        and item.originalname == test_a_staged_cause_is_named.__name__
    }
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            name: pool.submit(
                staged,
                shared_cluster,
                watching.url,
                case["protocol"],
                case["scenario"],
                SEED,
                topic,
            )
            for name, case in selected.items()
        }


@pytest.mark.parametrize(("protocol", "scenario"), CASES)
def test_a_staged_cause_is_named(
    request: pytest.FixtureRequest,
    being_staged: Mapping[str, Future[Staged]],
    protocol: str,
    scenario: Callable[[Stage], Staged],
) -> None:
    found = being_staged[request.node.name].result()
    assert found.is_right, found
    assert found.named.seconds <= SOON


def test_an_explanation_lists_the_rebalances_that_the_log_has(
    cluster: EmbeddedCluster, watching: Service, topic: str
) -> None:
    with ExitStack() as running:
        stage = Stage(cluster, watching.url, CONSUMER, random.Random(SEED), running, topic)
        stage.member("steady")
        stage.settle(1)
        second = stage.member("second")
        stage.settle(2)
        second.leave()
        arguments = ["explain", "-b", cluster.bootstrap_servers, stage.group]

        def told() -> list[str]:
            ran = CliRunner().invoke(main, [*arguments, "--format", "json"])
            found = json.loads(ran.stdout)["rebalances"]
            return [f"{one['causes'][0]['client']} {one['causes'][0]['kind']}" for one in found]

        wait_for("it left", lambda: told()[:1] == ["second left"], 30)
        assert "second joined" in told()
        shown = " ".join(CliRunner().invoke(main, arguments).output.split())
    assert "Last rebalances" in shown
    assert "second left" in shown
