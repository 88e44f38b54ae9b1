"""The order of Java's hash sets of processes, against Java's own."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.ids import ProcessId
from tests.support.sizes import daily

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("java collections")]

# The second kind shares buckets, more than eight ids to one of them.
UUIDS = st.one_of(st.uuids(), st.integers(1, 400).map(lambda number: UUID(int=number << 8)))
IDS = st.sets(UUIDS, min_size=1, max_size=70).map(
    lambda drawn: sorted(ProcessId.of(one.int) for one in drawn)
)


def java_id(jvm: Any, process_id: ProcessId) -> Any:
    uuid = jvm.java.util.UUID(process_id.most, process_id.least)
    return jvm.org.apache.kafka.streams.processor.assignment.ProcessId(uuid)


def java_set(jvm: Any, ids: list[ProcessId]) -> Any:
    filled = jvm.java.util.HashSet()
    for one in ids:
        filled.add(java_id(jvm, one))
    return filled


def names(ids: list[ProcessId], places: list[int]) -> str:
    return f"[{', '.join(str(ids[place]) for place in places)}]"


@settings(max_examples=daily(20, 40), deadline=None, print_blob=True)
@given(IDS)
def test_a_set_and_its_copy_are_walked_in_javas_orders(jvm: Any, ids: list[ProcessId]) -> None:
    order = ClientHashOrder(ids, 0)
    theirs = java_set(jvm, ids)
    ours = order.of(range(len(ids)))
    assert names(ids, ours) == theirs.toString()
    assert names(ids, order.of_copy(ours)) == jvm.java.util.HashSet(theirs).toString()


@settings(max_examples=daily(20, 60), deadline=None, print_blob=True)
@given(IDS, st.data())
def test_a_set_of_some_is_walked_in_javas_order_however_it_was_filled(
    jvm: Any, ids: list[ProcessId], data: st.DataObject
) -> None:
    some = data.draw(st.lists(st.sampled_from(range(len(ids))), unique=True))
    theirs = java_set(jvm, [ids[place] for place in some])
    assert names(ids, ClientHashOrder(ids, 0).of(some)) == theirs.toString()


@settings(max_examples=daily(20, 40), deadline=None, print_blob=True)
@given(IDS, st.data())
def test_a_set_of_all_but_a_few_is_walked_in_javas_order_when_all_came_in_another(
    jvm: Any, ids: list[ProcessId], data: st.DataObject
) -> None:
    everyone = data.draw(st.permutations(range(len(ids))))
    excluded = set(data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=4)))
    rest = [ids[place] for place in everyone if place not in excluded]
    ours = ClientHashOrder(ids, 4, everyone).of_all_but(excluded)
    assert names(ids, ours) == java_set(jvm, rest).toString()


@settings(max_examples=daily(20, 40), deadline=None, print_blob=True)
@given(IDS, st.data())
def test_a_set_of_all_but_a_few_is_walked_in_javas_order(
    jvm: Any, ids: list[ProcessId], data: st.DataObject
) -> None:
    excluded = set(data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=4)))
    rest = [one for place, one in enumerate(ids) if place not in excluded]
    ours = ClientHashOrder(ids, 4).of_all_but(excluded)
    assert names(ids, ours) == java_set(jvm, rest).toString()


@pytest.mark.parametrize("size", [0, 1, 11, 12, 13, 23, 24, 25, 48, 96, 97])
def test_a_copy_has_a_table_of_java_17s_size(jvm: Any, size: int) -> None:
    """Where a copy of 12, 24, 48 and so on gets twice the buckets, its order shows it."""
    ids = [ProcessId(0, number * 16) for number in range(size)]
    order = ClientHashOrder(ids, 0)
    theirs = jvm.java.util.HashSet(java_set(jvm, ids))
    assert names(ids, order.of_copy(order.of(range(size)))) == theirs.toString()
