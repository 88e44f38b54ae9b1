"""Open transactions: one that blocks two groups, one that hangs, and one in progress."""

from __future__ import annotations

from caughtup.models.ids import TopicPartition
from caughtup.models.recent.happenings import Happening
from caughtup.models.records.transactions import HeldPartition, OpenTransaction
from tests.support.pictures.played_cluster import (
    HOUR,
    MINUTE,
    NOW_MS,
    SECOND,
    Cluster,
    Position,
    Topic,
)


def play_transactions() -> Cluster:
    """Simulate groups that read what open transactions hold back."""
    cluster = Cluster(90)
    payments, ledger = cluster.topic("payments", 4, 400.0), cluster.topic("ledger", 3, 90.0)
    began, hangs = NOW_MS - 21 * MINUTE, NOW_MS - 52 * MINUTE
    cluster.reads("fraud-check", payments, _up_to(began, 2))
    cluster.reads("receipts", payments, _up_to(began, 2))
    cluster.reads("balances", ledger, _up_to(hangs, 1))
    cluster.reads("audit", ledger)
    cluster.held[TopicPartition("payments", 2)] = began
    cluster.held[TopicPartition("ledger", 1)] = hangs
    cluster.held[TopicPartition("ledger", 0)] = NOW_MS - 9 * SECOND
    cluster.state.transactions.apply(
        (
            OpenTransaction(
                producer_id=4_017,
                producer_epoch=12,
                state="unknown",
                hanging=True,
                verdict="hanging",
                last_write_ms=hangs + 2 * SECOND,
                partitions=(HeldPartition("ledger", 1, ledger.end(1, hangs)),),
                records_behind=ledger.end(1, NOW_MS) - ledger.end(1, hangs),
            ),
            OpenTransaction(
                transactional_id="payments-settlement-3",
                producer_id=4_102,
                producer_epoch=3,
                state="Ongoing",
                verdict="Ongoing",
                started_at_ms=began - 4 * SECOND,
                timeout_ms=HOUR,
                ends_at_ms=began - 4 * SECOND + HOUR,
                last_write_ms=began + MINUTE,
                partitions=(HeldPartition("payments", 2, payments.end(2, began)),),
                records_behind=payments.end(2, NOW_MS) - payments.end(2, began),
            ),
            OpenTransaction(
                transactional_id="ledger-export-0",
                producer_id=4_100,
                producer_epoch=88,
                state="PrepareCommit",
                verdict="PrepareCommit",
                started_at_ms=NOW_MS - 9 * SECOND,
                timeout_ms=MINUTE,
                ends_at_ms=NOW_MS + 51 * SECOND,
                last_write_ms=NOW_MS - 6 * SECOND,
                partitions=(HeldPartition("ledger", 0, ledger.end(0, NOW_MS - 9 * SECOND)),),
                records_behind=ledger.end(0, NOW_MS) - ledger.end(0, NOW_MS - 9 * SECOND),
            ),
        ),
        NOW_MS,
    )
    cluster.play()
    cluster.state.recent.happenings.note(
        Happening(
            hangs + 20 * SECOND,
            "transaction",
            "the transaction of producer id 4017 hangs: no coordinator will end it",
            "ledger-1",
        )
    )
    return cluster


def _up_to(since_ms: int, number: int) -> Position:
    """Keep up; on one partition up to what was there at a time (ms), and commit that again."""

    def position(topic: Topic, partition: int, at_ms: int) -> int:
        end = topic.end(partition, at_ms - SECOND)
        return min(end, topic.end(partition, since_ms)) if partition == number else end

    return position
