"""The rebalances of a group: what moved, how long it stood still, and storms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from caughtup.models.commits.table import LastCommits
from caughtup.models.groups.membership import Membership
from caughtup.models.ids import TopicPartition
from caughtup.models.rebalances.rebalance import GroupRebalance
from caughtup.models.rebalances.table import MOST_KEPT, Rebalances
from caughtup.models.records.fields import ABSENT
from tests.models.rebalances.test_causes import AT_MS, A, B, group, member

PARTITIONS = [TopicPartition("orders", number) for number in range(6)]


def commits(at_ms: int, count: int = 6) -> LastCommits:
    return LastCommits(PARTITIONS[:count], [7] * count, [at_ms] * count)


def committed(at_ms: int, count: int = 6) -> Callable[[TopicPartition, int], int | None]:
    return lambda partition, after_ms: (
        at_ms if partition in PARTITIONS[:count] and at_ms > after_ms else None
    )


def compared(
    *groups: Membership, at_ms: int = AT_MS
) -> tuple[Rebalances, list[GroupRebalance | None]]:
    table = Rebalances()
    return table, [table.compare("g", one, at_ms, [commits(at_ms - 1_000)]) for one in groups]


def test_the_first_assignment_is_no_rebalance_and_the_same_generation_is_none() -> None:
    _, found = compared(group(A, B), group(A, B))
    assert found == [None, None]


def test_what_moved_and_who_caused_it() -> None:
    _, (_, rebalance) = compared(group(A), group(A, B, generation=6))
    assert rebalance is not None
    assert (rebalance.generation, rebalance.members, rebalance.partitions) == (6, 2, 6)
    assert (rebalance.moved, rebalance.unfinished, rebalance.at_ms) == (3, 0, AT_MS)
    assert rebalance.cause.text == "client-b joined"


def test_generations_that_nobody_completed_are_counted_on_the_classic_protocol() -> None:
    _, (_, rebalance) = compared(group(A), group(A, B, generation=9))
    assert rebalance is not None
    assert rebalance.unfinished == 3
    new = [
        replace(one, group_type="consumer", by_epochs=True)
        for one in (group(A), group(A, B, generation=9))
    ]
    _, (_, epoch) = compared(*new)
    assert epoch is not None
    assert epoch.unfinished == 0


def test_how_long_partitions_stood_still_is_at_most_between_two_commits() -> None:
    table, _ = compared(group(A), group(A, B, generation=6))
    table.settle("g", committed(AT_MS - 1_000), AT_MS + 1_000)
    (rebalance,) = table.of("g")
    assert rebalance.unsettled == 6  # all members of an eager group stop
    table.settle("g", committed(AT_MS + 4_000, 4), AT_MS + 5_000)
    (rebalance,) = table.of("g")
    assert (rebalance.stood_still_seconds, rebalance.lost_seconds) == (5.0, 20.0)
    assert (rebalance.unsettled, table.lost_seconds("g")) == (2, 20.0)
    table.settle("g", committed(AT_MS + 9_000), AT_MS + 9_000)
    assert table.lost_seconds("g") == 20.0 + 2 * 10.0
    assert not table.is_settling("g")


def test_of_a_cooperative_group_only_what_moved_has_to_stop() -> None:
    before, after = (
        replace(one, assignor="cooperative-sticky") for one in (group(A), group(A, B, generation=6))
    )
    _, (_, rebalance) = compared(before, after)
    assert rebalance is not None
    assert rebalance.unsettled == rebalance.moved == 3


def test_partitions_that_nobody_commits_on_again_are_given_up() -> None:
    table, _ = compared(group(A), group(A, B, generation=6))
    table.settle("g", committed(AT_MS - 1_000), AT_MS + 700_000)
    assert not table.is_settling("g")
    assert table.of("g")[0].unsettled == 6


def test_a_deleted_group_begins_again_and_others_are_forgotten() -> None:
    table, found = compared(group(A, generation=8), None, group(A, generation=1))  # type: ignore[arg-type]
    assert found == [None, None, None]
    table.keep_only({"other"})
    assert not table.is_complete("g")
    assert table.of("g") == []
    assert table.lost_seconds("g") is None


def test_names_that_are_known_later_complete_what_was_decided() -> None:
    unnamed = replace(group(A, partitions=0), by_epochs=True, unnamed=True)
    table, _ = compared(unnamed)
    assert not table.is_complete("g")
    named = replace(group(A), by_epochs=True)
    table.begin("g", replace(named, members=(A, B)))  # another member has joined meanwhile
    assert table.is_complete("g")
    after = replace(group(A, B, generation=6), by_epochs=True)
    rebalance = table.compare("g", after, AT_MS, [commits(AT_MS - 1_000)])
    assert rebalance is not None
    assert rebalance.cause.text == "client-b joined"
    assert (rebalance.moved, rebalance.partitions) == (3, 6)


def test_a_deleted_topic_is_noticed_though_its_name_is_forgotten_before() -> None:
    """A group's epoch comes before the target assignment of it."""
    before, forgotten = (replace(group(A, B, partitions=count), by_epochs=True) for count in (6, 0))
    table, found = compared(before, forgotten)
    assert found == [None, None]
    rebalance = table.compare("g", replace(forgotten, generation=6), AT_MS, [])
    assert rebalance is not None
    assert (rebalance.cause.kind, rebalance.cause.topic) == ("topic_vanished", "orders")


def test_one_member_that_comes_and_goes_is_a_storm_and_is_named() -> None:
    table = Rebalances()
    for number in range(12):
        members = (A, B) if number % 2 else (A,)
        at_ms = AT_MS + number * 20_000
        table.compare("g", group(*members, generation=number), at_ms, [commits(at_ms - 1_000)])
        assert (table.storm("g", at_ms) is not None) == (number >= 6)
    storm = table.storm("g", AT_MS + 300_000)
    assert storm is not None
    assert (storm.rebalances, storm.client) == (11, "client-b")
    assert table.storm("g", AT_MS + 3_600_000) is None
    assert table.counts("g") == {"joined": 6, "left": 5}


def restarted_in_turn(count: int, times: int) -> Rebalances:
    """Let members join one after the other, and restart each in turn, so many times."""
    table, members = Rebalances(), [member(f"m{number}") for number in range(count)]
    stories = [members[:number] for number in range(1, count + 1)]
    for time in range(times):
        for number in range(count):
            stories.append(members[:number] + members[number + 1 :])
            again = members[number]._replace(member_id=f"m{number} {time}")
            members = [*members[:number], again, *members[number + 1 :]]
            stories.append(members)
    for generation, there in enumerate(stories):
        table.compare("g", group(*there, generation=generation), AT_MS + 5_000 * generation, [])
    return table


def test_a_rolling_restart_soon_after_the_start_is_no_storm() -> None:
    table = restarted_in_turn(8, 1)
    assert len(table.of("g")) == 7 + 16
    assert table.storm("g", AT_MS + 5_000 * 24) is None


def test_generations_that_end_before_they_have_an_assignment_are_a_storm() -> None:
    table = Rebalances()
    for generation, there in ((1, (A, B)), (4, (A,)), (9, (A, B))):
        table.compare("g", group(*there, generation=generation), AT_MS, [])
    assert table.storm("g", AT_MS) is not None


def test_members_that_come_and_go_again_and_again_are_a_storm_without_a_name() -> None:
    table = restarted_in_turn(4, 4)
    storm = table.storm("g", AT_MS + 5_000 * 36)
    assert storm is not None
    assert storm.client is ABSENT


def test_a_group_that_rebalances_for_ever_is_kept_in_bounds() -> None:
    table = Rebalances()
    for number in range(5 * MOST_KEPT):
        table.compare("g", group(*((A, B) if number % 2 else (A,)), generation=number), AT_MS, [])
    assert len(table.of("g")) == MOST_KEPT
    assert sum(table.counts("g").values()) == 5 * MOST_KEPT - 1


def test_since_when_a_member_has_to_revoke_is_known_if_its_begin_was_read() -> None:
    table = Rebalances()
    table.note_revoking("g", {"a"}, AT_MS)
    assert table.revoking_since("g", "a") is None  # a group that isn't known
    table.begin("g", group(A, B))
    assert not table.has_revoking("g")
    table.note_revoking("g", {"a"}, None)
    table.note_revoking("g", {"a", "b"}, AT_MS)
    table.note_revoking("g", {"a", "b"}, AT_MS + 1_000)
    assert [table.revoking_since("g", one) for one in "abc"] == [None, AT_MS, None]
    table.note_revoking("g", set(), AT_MS + 2_000)
    table.note_revoking("g", {"a"}, AT_MS + 3_000)
    assert table.revoking_since("g", "a") == AT_MS + 3_000
