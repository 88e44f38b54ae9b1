"""What both sticky assignors do alike: the internal one and the public one."""

from __future__ import annotations

import pytest

from caughtup.models.assignment.decision import Movement, MovementKind
from caughtup.models.errors import ScenarioError
from tests.models.assignors.building import client, task
from tests.models.assignors.decisions import actives, decided
from tests.support.groups.streams import process

both = pytest.mark.parametrize("assignor", ["sticky", "public_sticky"])


@both
def test_an_active_that_nobody_runs_goes_to_a_client_that_had_its_standby(
    assignor: str,
) -> None:
    had_it = client({"0_1": 5}, standby=("0_1",), active=("0_3",))
    decision = decided(
        client(active=("0_0",)), had_it, stateful=("0_0", "0_1", "0_3"), assignor=assignor
    )
    assert actives(decision) == ["0_0", "0_1 0_3"]
    (movement,) = decision.movements
    assert movement == Movement(
        task("0_1"),
        None,
        process(2),
        MovementKind.ACTIVE,
        "no client ran it before; the destination had its standby and lags 5 offsets",
        lag=5,
    )


@both
def test_counts_that_overflow_in_kafka_are_refused(assignor: str) -> None:
    threads = client(capacity=2**31 - 1)
    with pytest.raises(ScenarioError, match="2,147,483,648 stream threads are more") as raised:
        decided(threads, client(), stateless=("0_0",), assignor=assignor)
    assert raised.value.code == "unsupported"
    many = tuple(f"0_{partition}" for partition in range(46_342))
    with pytest.raises(ScenarioError, match="46,342 are more than the 46,341") as raised:
        decided(client(), stateless=many, assignor=assignor)
    assert raised.value.code == "unsupported"
