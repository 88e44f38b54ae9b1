"""A group's verdict, from those on its partitions."""

from __future__ import annotations

from itertools import pairwise

import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.lag.verdict import GroupVerdict, Verdict, group_verdict
from caughtup.models.verdicts import LAG

PARTITION, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_a_group_is_as_its_worst_partition_and_says_which() -> None:
    assert group_verdict(
        [
            (TopicPartition("b", 1), Verdict("slow", "30 offsets to read", 9.0)),
            (TopicPartition("a", 0), Verdict("ok", "at the end of the log", 0.0)),
            (TopicPartition("b", 0), Verdict("slow", "10 offsets to read", 12.0)),
            (TopicPartition("c", 0), Verdict("slow", "20 offsets to read", 12.0)),
        ]
    ) == GroupVerdict(
        "slow", TopicPartition("b", 0), "b-0: 10 offsets to read (partitions slow: 3 of 4)"
    )


@pytest.mark.parametrize(("milder", "worse"), list(pairwise(LAG.words)))
def test_the_order_of_severity_decides_before_the_age(milder: str, worse: str) -> None:
    verdicts = [(PARTITION, Verdict(milder, "x", 1e9)), (OTHER, Verdict(worse, "y", 0.0))]
    assert group_verdict(verdicts)[:2] == (worse, OTHER)


def test_a_group_whose_partitions_are_all_ok_names_none() -> None:
    verdicts = [(PARTITION, Verdict("ok", "x", 1.0)), (OTHER, Verdict("ok", "y", 0.0))]
    assert group_verdict(verdicts) == GroupVerdict("ok", None, "all 2 partitions keep up")


def test_a_single_partition_keeps_up_alone() -> None:
    assert group_verdict([(PARTITION, Verdict("ok", "x", 1.0))]).reason == "its partition keeps up"


def test_a_group_without_any_known_partition_is_unknown() -> None:
    assert group_verdict([])[:2] == ("unknown", None)
