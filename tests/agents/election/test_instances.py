"""Subscriptions and assignments of instances, malformed ones, and which processes are dead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from caughtup.agents.election.instances import (
    Assignment,
    InstanceNames,
    ServiceInstance,
    Subscription,
    instances_of,
    read_assignment,
    read_subscriptions,
    setting_digests,
)
from caughtup.agents.kafka.protocol.groups import DescribedMember
from caughtup.agents.settings import Settings
from caughtup.models.sharing import Claim, PartitionShare, Peer

A, B, C = (ServiceInstance(host, 1, "place", 2) for host in "abc")
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
    assert instances_of(members) == InstanceNames(("a:1",), ("b:1",))
    assert instances_of(members[:1]) == InstanceNames((), ("b:1",))
    assert instances_of([]) == InstanceNames((), ())
    # While the group rebalances, brokers tell nothing but ids.
    assert instances_of([DescribedMember("m1", b"", b"")]) == InstanceNames((), ())


def test_who_shares_the_groups_is_told_from_who_has_none() -> None:
    shares = {
        "m1": PartitionShare(0, (0, 2)),
        "m2": PartitionShare(1, (1,)),
        "m3": PartitionShare(None, ()),
    }
    peers = {"m1": Peer("a:1", "http://a:8080")}
    told = encoded(Assignment("m1", A, shares, peers, 3))
    said = {"m1": SAID["a"], "m2": SAID["b"], "m3": Subscription(C, False, True, 5)}
    members = [DescribedMember(name, encoded(each), told) for name, each in said.items()]
    assert instances_of(members) == InstanceNames(("a:1", "b:1"), ("c:1",))
    assert read_assignment(told) == Assignment("m1", A, shares, peers, 3)
    claim = Subscription(C, False, False, 5, {}, (3, 1), 2).claim()
    assert claim == Claim(frozenset({1, 3}), 2, 5)


@pytest.mark.parametrize(
    ("share", "count"),
    [
        (PartitionShare(0, (3,)), 3),
        (PartitionShare(0, (-1,)), 3),
        (PartitionShare(16, (1,)), 3),
        (PartitionShare(-1, ()), 3),
        (PartitionShare(0, (1,)), 10**12),
        (PartitionShare(0, ()), -1),
    ],
)
def test_impossible_numbers_are_no_assignment(share: PartitionShare, count: int) -> None:
    assert read_assignment(encoded(Assignment("m1", A, {"m1": share}, {}, count))) is None


def test_a_key_counts_by_what_it_is_and_not_by_where(tmp_path: Path) -> None:
    here, there, other = (tmp_path / name for name in "abc")
    for path, content in ((here, b"one"), (there, b"one"), (other, b"two")):
        path.write_bytes(content)
    digests = [setting_digests(Settings(signing_key_file=path)) for path in (here, there, other)]
    assert digests[0] == digests[1]
    different = {name for name in digests[0] if digests[0][name] != digests[2][name]}
    assert different == {"signing_key_file"}
    assert setting_digests(Settings(signing_key_file=tmp_path / "gone")).keys() == digests[0].keys()
    assert not any(b"one".hex() in one for one in digests[0].values())


def test_an_instance_of_an_earlier_release_has_no_settings_to_compare() -> None:
    raw = encoded({"instance": A, "active": True, "caught_up": True, "since_ms": 3})
    assert read_subscriptions({"m": raw})["m"].settings == {}


SAY = """
import msgspec
from caughtup.agents.election.instances import ServiceInstance
print(msgspec.json.encode(ServiceInstance.current()).decode(), flush=True)
input()
"""


def test_a_living_process_is_not_dead_and_a_killed_one_is_even_before_its_parent_asks() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        other = msgspec.json.decode(process.stdout.readline(), type=ServiceInstance)
        assert other.pid == process.pid
        assert not other.is_dead()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert other.is_dead()
        process.wait()
        assert other.is_dead()


def test_another_process_that_has_the_id_by_now_does_not_count() -> None:
    me = ServiceInstance.current()
    assert not me.is_dead()
    assert me.started is not None
    assert msgspec.structs.replace(me, started=me.started - 1).is_dead()


def test_elsewhere_nothing_is_known_of_a_process() -> None:
    gone = msgspec.structs.replace(ServiceInstance.current(), pid=2**22 + 1)
    assert gone.is_dead()
    assert not msgspec.structs.replace(gone, place="another boot").is_dead()
    assert not msgspec.structs.replace(gone, place=None).is_dead()
    assert not msgspec.structs.replace(ServiceInstance.current(), pid=2**70).is_dead()


def test_a_process_of_another_user_is_alive() -> None:
    me = ServiceInstance.current()
    assert not msgspec.structs.replace(me, pid=1, started=None).is_dead()
