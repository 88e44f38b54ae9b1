from __future__ import annotations

from itertools import islice

from tests.chaos.faults import INFLICT
from tests.chaos.schedule import COMPANIONS, KINDS, ONE_ACTIVE, Fault, faults, schedule


def test_the_same_seed_is_the_same_schedule_and_another_is_another() -> None:
    assert schedule(7, 200) == schedule(7, 200)
    assert schedule(7, 200) != schedule(8, 200)


def test_a_longer_schedule_begins_as_a_shorter_one() -> None:
    assert schedule(3, 300)[:40] == schedule(3, 40)


def test_each_kind_comes_once_before_any_comes_twice() -> None:
    for seed in range(20):
        kinds = [fault.kind for fault in schedule(seed, len(ONE_ACTIVE))]
        assert sorted(kinds) == sorted(ONE_ACTIVE)


def test_faults_last_as_long_as_their_kind_may_and_brokers_alone_have_companions() -> None:
    drawn = schedule(11, 2_000)
    for fault in drawn:
        kind = KINDS[fault.kind]
        assert kind.shortest <= fault.seconds <= kind.longest
        assert fault.companion is None or (kind.brokers and fault.companion in COMPANIONS)
    assert any(fault.companion for fault in drawn)


def test_every_kind_can_be_inflicted() -> None:
    assert INFLICT.keys() == KINDS.keys()


def test_a_fault_is_said_in_a_line() -> None:
    fault = Fault("broker killed", 2.0, 3.5, 1, 9, "service killed")
    assert str(fault) == "broker killed #1 with service killed for 3.5 s"


def test_what_comes_where_instances_share_comes_nowhere_else() -> None:
    sharing = {name for name, kind in KINDS.items() if kind.sharing}
    assert {fault.kind for fault in schedule(5, 500)} == KINDS.keys() - sharing
    drawn = {fault.kind for fault in islice(faults(5, tuple(KINDS)), 500)}
    assert drawn == KINDS.keys()
