"""The open transactions that hold something back, as last observed, and the groups behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.fields import changed
from caughtup.models.records.transactions import OpenTransaction
from caughtup.models.transactions.holders import advice

#: The most groups that are named as blocked by one transaction.
MOST_GROUPS = 100


class Missing(NamedTuple):
    """What an observation could not ask, in words, and the partitions that it left out."""

    reasons: tuple[str, ...] = ()
    partitions: int = 0


NOTHING = Missing()


class TransactionTable:
    """The ``transactions`` of the last observation, the oldest first; ``holders``: by partition.

    ``observed_ms`` is the time of that observation, None before the first.
    """

    def __init__(self) -> None:
        self.holders: Mapping[TopicPartition, OpenTransaction] = MappingProxyType({})
        self.observed_ms: int | None = None
        self.missing = Missing()
        self.transactions: tuple[OpenTransaction, ...] = ()

    def apply(
        self, transactions: Iterable[OpenTransaction], at_ms: int, missing: Missing = NOTHING
    ) -> tuple[list[OpenTransaction], list[OpenTransaction]]:
        """Replace the transactions by those of a new observation.

        Returns those that hang since, and those that hung at the last one and no longer do.
        """
        before = {producer(one): one for one in self.transactions if one.hanging}
        self.transactions = tuple(transactions)
        self.observed_ms, self.missing = at_ms, missing
        self.holders = MappingProxyType(
            {
                held.topic_partition: transaction
                for transaction in self.transactions
                for held in transaction.partitions
            }
        )
        now = {producer(one): one for one in self.transactions if one.hanging}
        return (
            [one for key, one in sorted(now.items()) if key not in before],
            [one for key, one in sorted(before.items()) if key not in now],
        )

    def lines(
        self, blocked: Mapping[str, Iterable[TopicPartition]], now_ms: int
    ) -> Iterator[OpenTransaction]:
        """Yield every transaction, the oldest first, with the groups that it blocks and advice.

        ``blocked``: by group, the partitions whose verdict is ``blocked``.
        """
        groups: dict[tuple[int, int], set[str]] = {}
        for group, partitions in blocked.items():
            for partition in partitions:
                holder = self.holders.get(partition)
                if holder is not None:
                    groups.setdefault(producer(holder), set()).add(group)
        for transaction in self.transactions:
            yield changed(
                transaction,
                blocked_groups=tuple(sorted(groups.get(producer(transaction), ()))[:MOST_GROUPS]),
                advice=advice(transaction, now_ms),
            )


def producer(transaction: OpenTransaction) -> tuple[int, int]:
    """Return the id and the epoch of a transaction's producer, which no other transaction has."""
    return transaction.producer_id, transaction.producer_epoch


def held_partitions(
    ends: EndOffsetTable,
    held_before_ms: int,
    most: int,
    wants: Callable[[str], bool] | None = None,
) -> tuple[dict[TopicPartition, EndOffsets], int]:
    """Return the latest end offsets where the last stable offset has stood still since a time.

    ``wants``: a test for the topics, by default of all. Those that stand still for longest come first. Also returns the number of the partitions that
    were left out beyond ``most``.
    """
    found = sorted(
        (history.held_ms, partition, history.latest)
        for partition, history in ends.held()
        if history.held_ms is not None
        and history.held_ms <= held_before_ms
        and (wants is None or wants(partition.topic))
    )
    kept = {partition: latest for _, partition, latest in found[:most]}
    return kept, max(0, len(found) - most)
