"""Who holds back a last stable offset: leaders' producers joined with coordinators' transactions."""

from __future__ import annotations

import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.fields import or_none
from caughtup.models.transactions.holders import (
    MOST_PARTITIONS,
    MOST_TRANSACTIONS,
    DescribedTransaction,
    ListedTransaction,
    Observed,
    ProducerState,
    advice,
    described,
    open_transactions,
)

ORDERS = TopicPartition("orders", 0)
ENDS = {ORDERS: EndOffsets(0, 10, 25, 1_000)}
NOW_MS = 100_000


def observed(
    state: ProducerState | None = None,
    *,
    listed: bool = True,
    partitions: frozenset[TopicPartition] | None = frozenset({ORDERS}),
    confirmed: bool = True,
    not_known: str | None = None,
    producer_id: int = 7,
) -> Observed:
    state = state or ProducerState(7, 3, 90_000, 10)
    return Observed(
        {ORDERS: [state]},
        [ListedTransaction("payments", 7, "Ongoing", 1)] if listed else [],
        {}
        if partitions is None
        else {
            "payments": DescribedTransaction(
                "payments", "Ongoing", 60_000, 80_000, producer_id, 3, partitions
            )
        },
        {ORDERS: {(7, 10)}} if confirmed else {},
        not_known,
    )


def test_an_open_transaction_has_all_that_its_coordinator_knows() -> None:
    [found] = open_transactions(observed(), ENDS)
    assert (found.name, found.state, found.hanging) == ("payments", "Ongoing", False)
    assert (found.started_at_ms, found.timeout_ms, found.last_write_ms) == (80_000, 60_000, 90_000)
    assert found.records_behind == 15
    assert [held.first_offset for held in found.partitions] == [10]
    assert advice(found, NOW_MS).startswith("its coordinator aborts it in 40 s")


@pytest.mark.parametrize(
    "of", [{"listed": False, "partitions": None}, {"partitions": frozenset()}], ids=str
)
def test_it_hangs_if_no_coordinator_has_the_partition_in_a_transaction(
    of: dict[str, object],
) -> None:
    [found] = open_transactions(observed(**of), ENDS)  # type: ignore[arg-type]
    assert found.hanging
    assert or_none(found.started_at_ms) is None
    assert "--topic orders --partition 0 --start-offset 10" in advice(found, NOW_MS)
    assert "hanging transaction" in described(found)


@pytest.mark.parametrize(
    "of",
    [
        {"confirmed": False},
        {"not_known": "missing: DESCRIBE on all transactional ids"},
    ],
    ids=str,
)
def test_it_is_not_said_to_hang_while_something_is_not_known(of: dict[str, object]) -> None:
    [found] = open_transactions(observed(listed=False, partitions=None, **of), ENDS)  # type: ignore[arg-type]
    assert not found.hanging
    assert found.state == "unknown"


def test_a_coordinator_that_does_not_answer_leaves_the_state_of_its_list() -> None:
    [found] = open_transactions(observed(partitions=None, not_known="broker 1: no answer"), ENDS)
    assert (found.state, found.hanging) == ("Ongoing", False)
    assert "no answer" in advice(found, NOW_MS)


def test_a_transactional_id_with_another_producer_by_now_describes_that_one() -> None:
    [found] = open_transactions(observed(producer_id=8), ENDS)
    assert or_none(found.timeout_ms) is None
    assert not found.hanging


def test_a_producer_from_before_the_last_stable_offset_holds_nothing() -> None:
    assert open_transactions(observed(ProducerState(7, 3, 90_000, 9)), ENDS) == []


def test_of_ten_thousand_the_oldest_are_named() -> None:
    partitions = [TopicPartition("orders", number) for number in range(10_000)]
    many = Observed(
        {p: [ProducerState(p.partition, 0, 90_000 - p.partition, 10)] for p in partitions},
        [],
        {},
        {},
        "not asked",
    )
    found = open_transactions(many, {p: EndOffsets(0, 10, 12, 1_000) for p in partitions})
    assert len(found) == MOST_TRANSACTIONS
    assert [one.producer_id for one in found[:3]] == [9_999, 9_998, 9_997]
    one_of_all = Observed(
        {p: [ProducerState(1, 0, 90_000, 10)] for p in partitions}, [], {}, {}, "not asked"
    )
    [found_one] = open_transactions(
        one_of_all, {p: EndOffsets(0, 10, 12, 1_000) for p in partitions}
    )
    assert len(found_one.partitions) == MOST_PARTITIONS
    assert found_one.records_behind == 20_000


def test_a_name_with_markup_or_quotes_goes_quoted_into_the_command() -> None:
    evil = "$(rm -rf /) 'x' <b>"
    state = Observed(
        {ORDERS: [ProducerState(7, 3, 90_000, 10)]},
        [ListedTransaction(evil, 7, "Ongoing", 1)],
        {evil: DescribedTransaction(evil, "Ongoing", 60_000, 80_000, 7, 3, frozenset({ORDERS}))},
        {},
        None,
    )
    [found] = open_transactions(state, ENDS)
    assert """--transactional-id '$(rm -rf /) '"'"'x'"'"' <b>'""" in advice(found, NOW_MS)
