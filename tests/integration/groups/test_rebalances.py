"""Rebalances of real consumer groups, each staged: the service names its cause within five seconds."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
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


@pytest.mark.parametrize(("protocol", "scenario"), CASES)
def test_a_staged_cause_is_named(
    cluster: EmbeddedCluster,
    watching: Service,
    topic: str,
    protocol: str,
    scenario: Callable[[Stage], Staged],
) -> None:
    found = staged(cluster, watching.url, protocol, scenario, SEED, topic)
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
