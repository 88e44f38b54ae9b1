"""Standbys spread over client tags: the published jar's own answers, and the rules one by one."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.scenario import Client
from caughtup.models.assignors.kafka.standbys import TagAwareStandbyAssignor
from caughtup.models.ids import TaskId
from tests.models.assignors.published import assert_reproduced, each_of, examples
from tests.support.groups.streams import process

EXAMPLES = examples("client_tags")
TASK, OTHER = TaskId(0, 0), TaskId(0, 1)


def tagged(text: str) -> dict[str, str]:
    """Read the tags of a client: ``a1`` is zone a and cluster 1, ``a`` or ``1`` one of them."""
    return {"zone" if letter.isalpha() else "cluster": letter for letter in text}


def states(count: int) -> list[ClientState]:
    return [
        ClientState(Client(process(number), 1, frozenset(), frozenset(), {}))
        for number in range(1, count + 1)
    ]


def standbys_of(
    *clients: str, replicas: int, owner: int = 0, keys: tuple[str, ...] = ("zone", "cluster")
) -> list[int]:
    """Return the places of the clients that get standbys of one task."""
    given_to = states(len(clients))
    given_to[owner].active.add(TASK)
    assignor = TagAwareStandbyAssignor([tagged(text) for text in clients], keys)
    assignor.assign(given_to, [TASK], replicas)
    return [place for place, client in enumerate(given_to) if TASK in client.standby]


@each_of(EXAMPLES)
def test_the_published_assignors_decision_is_reproduced(example: dict[str, Any]) -> None:
    assert_reproduced(example)


def test_a_standby_goes_where_every_tag_is_another() -> None:
    assert standbys_of("a1", "a2", "b1", "b2", replicas=1) == [3]


def test_of_the_clients_that_qualify_the_least_loaded_gets_the_standby() -> None:
    clients = states(4)
    clients[0].active.add(TASK)
    clients[2].active.add(OTHER)
    assignor = TagAwareStandbyAssignor([tagged(text) for text in ("a", "a", "b", "b")], ["zone"])
    assignor.assign(clients, [TASK], 1)
    assert TASK in clients[3].standby


def test_a_tag_with_as_many_values_as_there_are_copies_no_longer_counts() -> None:
    """Two clusters and three zones: the second standby is in the third zone, in any cluster."""
    assert standbys_of("a1", "b1", "c1", "a2", "b2", replicas=2) == [2, 4]


def test_what_no_client_can_satisfy_falls_back_to_the_least_loaded() -> None:
    assert standbys_of("a1", "a2", "b1", replicas=1) == [1]
    assert standbys_of("a1", "a2", "b1", replicas=2) == [1, 2]


def test_a_task_gets_fewer_standbys_when_there_are_too_few_clients() -> None:
    assert standbys_of("a1", "b2", replicas=5) == [1]
    assert standbys_of("a1", replicas=5) == []


def test_a_client_without_tags_is_never_ruled_out() -> None:
    assert standbys_of("a", "a", "", "b", replicas=1) == [2]
    assert standbys_of("", "a", "b", replicas=1) == [1]


def test_a_used_up_tag_still_counts_if_the_last_copys_client_lacks_it() -> None:
    """There are two zones and two copies, but the second copy's client has no zone."""
    assert standbys_of("a", "a", "1", "b2", replicas=2) == [2, 3]
    assert standbys_of("a", "a", "b", "b2", replicas=2) == [1, 2]


def test_only_tags_that_the_config_names_keep_copies_apart() -> None:
    assert standbys_of("a1", "a2", "b1", replicas=1, keys=("zone",)) == [2]
    assert standbys_of("a1", "a2", "b1", replicas=1, keys=("cluster",)) == [1]


def test_what_falls_back_comes_in_the_order_of_a_hash_map() -> None:
    """Partition 9 is in bucket 6 and partition 0 in bucket 15, so partition 9 chooses first."""
    first, second = TaskId(0, 0), TaskId(0, 9)
    clients = states(3)
    clients[0].active |= {first, second}
    assignor = TagAwareStandbyAssignor([tagged(text) for text in ("a1", "a2", "b1")], tagged("a1"))
    assignor.assign(clients, [first, second], 1)
    assert [client.standby for client in clients] == [set(), {second}, {first}]


def test_standbys_move_only_to_where_all_tags_are_the_same() -> None:
    tags = [tagged(text) for text in ("a1", "a1", "a2", "a", "")]
    assignor = TagAwareStandbyAssignor(tags, ["zone"])
    allowed = [[assignor.may_move(source, to) for to in range(5)] for source in range(5)]
    assert allowed == [
        [True, True, False, False, False],
        [True, True, False, False, False],
        [False, False, True, False, False],
        [True, True, True, True, False],
        [True, True, True, True, True],
    ]


def test_standbys_are_exchanged_only_if_a_task_keeps_as_many_different_tags() -> None:
    clients = states(4)
    clients[0].active.add(TASK)
    clients[1].standby.add(TASK)
    tags = [tagged(text) for text in ("a1", "b1", "a2", "c1")]
    assignor = TagAwareStandbyAssignor(tags, ["zone", "cluster"])
    assert assignor.may_exchange(clients, 1, 2, TASK)
    assert assignor.may_exchange(clients, 1, 3, TASK)
    clients[2].standby.add(TASK)
    assert not assignor.may_exchange(clients, 1, 0, TASK)


TAGS = st.lists(st.sampled_from(["", "a", "b", "c", "a1", "b1", "a2", "b2", "c2"]), min_size=1)


@settings(print_blob=True)
@given(TAGS, st.integers(1, 4), st.data())
def test_a_task_gets_all_its_standbys_if_there_are_enough_clients(
    tags: list[str], replicas: int, data: st.DataObject
) -> None:
    owner = data.draw(st.integers(0, len(tags) - 1))
    copies = standbys_of(*tags, replicas=replicas, owner=owner)
    assert len(copies) == min(replicas, len(tags) - 1)
    assert owner not in copies
