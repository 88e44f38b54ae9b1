"""What instances say to each other, and what nobody of them would say."""

from __future__ import annotations

import msgspec
import pytest

from caughtup.agents.election.instance import Instance
from caughtup.agents.election.instances import (
    Assignment,
    Instances,
    Subscription,
    instances_of,
    read_assignment,
    read_subscriptions,
)
from caughtup.agents.kafka.protocol.groups import DescribedMember

A, B = (Instance(host, 1, "place", 2) for host in "ab")
SAID = {one.host: Subscription(one, active=False, caught_up=True, since_ms=3) for one in (A, B)}
NONSENSE = [b"", b"\xff", b"7", b"{}", b"[" * 100_000, b'{"instance": {"host": "a"}}']


def encoded(value: object) -> bytes:
    return msgspec.json.encode(value)


def test_what_is_said_is_read_back() -> None:
    assert read_subscriptions({"m": encoded(SAID["a"])}) == {"m": SAID["a"]}
    assert read_assignment(encoded(Assignment("m", A))) == Assignment("m", A)
    candidate = SAID["a"].candidate()
    assert (candidate.name, candidate.active, candidate.caught_up) == ("a:1", False, True)


@pytest.mark.parametrize("raw", NONSENSE, ids=range(len(NONSENSE)))
def test_what_is_not_ours_is_left_out(raw: bytes) -> None:
    assert read_subscriptions({"m": raw, "n": encoded(SAID["b"])}) == {"n": SAID["b"]}
    assert read_assignment(raw) is None


def test_the_active_one_is_told_from_the_others() -> None:
    told = encoded(Assignment("m1", A))
    members = [
        DescribedMember("m2", encoded(SAID["b"]), told),
        DescribedMember("m1", encoded(SAID["a"]), told),
    ]
    assert instances_of(members) == Instances("a:1", ("b:1",))
    assert instances_of(members[:1]) == Instances(None, ("b:1",))
    assert instances_of([]) == Instances(None, ())
    # While the group rebalances, brokers tell nothing but ids.
    assert instances_of([DescribedMember("m1", b"", b"")]) == Instances(None, ())
