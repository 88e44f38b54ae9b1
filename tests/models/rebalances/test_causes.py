"""What caused a rebalance, from two assignments and the times of commits; hostile input included."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from caughtup.models.groups.membership import Member, Membership
from caughtup.models.ids import TopicPartition
from caughtup.models.rebalances.causes import MOST_CAUSES, Circumstances, causes
from caughtup.models.rebalances.rebalance import CAUSES, SURENESS

AT_MS = 1_800_000_000_000
ORDERS = frozenset({"orders"})


def member(name: str, **fields: object) -> Member:
    given = {"topics": ORDERS, "session_timeout_ms": 45_000, "poll_interval_ms": 300_000, **fields}
    return Member(name, f"client-{name}", "/10.0.0.1", **given)  # type: ignore[arg-type]


def group(
    *members: Member, generation: int = 5, partitions: int = 6, **fields: object
) -> Membership:
    """Return a group whose partitions of ``orders`` are assigned in turn."""
    owners = {
        TopicPartition("orders", number): members[number % len(members)]
        for number in range(partitions if members else 0)
    }
    given = {"assignor": "range", **fields}
    return Membership("classic", generation, members, owners, ORDERS, 300_000, **given)  # type: ignore[arg-type]


def evidence(silent_ms: int | None = None, who: str = "b", **fields: object) -> Circumstances:
    last = {} if silent_ms is None else {who: AT_MS - silent_ms}
    return Circumstances(AT_MS, last, {"orders": 6}, **fields)  # type: ignore[arg-type]


def kinds(before: Membership, after: Membership, known: Circumstances) -> list[tuple[str, str]]:
    return [(cause.kind, cause.sure) for cause in causes(before, after, known)]


A, B = member("a"), member("b")


@pytest.mark.parametrize(
    ("silent_ms", "gone", "found"),
    [
        (2_000, B, ("left", "likely")),
        (44_000, B, ("left", "likely")),
        (47_000, B, ("session_timed_out", "likely")),
        (58_000, B, ("session_timed_out", "likely")),
        (41_000, member("b", session_timeout_ms=None), ("session_timed_out", "likely")),
        (39_000, member("b", session_timeout_ms=None), ("left", "likely")),
        (100_000, B, ("left", "possible")),
        (303_000, B, ("poll_interval_exceeded", "likely")),
        (8_000, member("b", poll_interval_ms=6_000), ("poll_interval_exceeded", "likely")),
        (52_000, member("b", poll_interval_ms=40_000), ("session_timed_out", "possible")),
        (
            9_000,
            member("b", session_timeout_ms=6_000, poll_interval_ms=8_000),
            ("poll_interval_exceeded", "possible"),
        ),
        (None, B, ("left", "possible")),
        (60_000, member("b", instance_id="two"), ("session_timed_out", "likely")),
    ],
)
def test_why_a_member_is_gone_is_told_by_its_last_commit(
    silent_ms: int | None, gone: Member, found: tuple[str, str]
) -> None:
    assert kinds(group(A, gone), group(A, generation=6), evidence(silent_ms)) == [found]


def test_a_member_whose_timeouts_are_not_known_may_have_left() -> None:
    unknown = {"session_timeout_ms": None, "poll_interval_ms": None}
    before, after = group(member("a"), member("b", **unknown)), group(member("a"))
    assert kinds(before, after, evidence(1_000)) == [("left", "possible")]


def test_who_joined_is_certain_and_named() -> None:
    (cause,) = causes(group(A), group(A, B, generation=6), evidence())
    assert (cause.kind, cause.sure, cause.client, cause.member) == (
        "joined",
        "certain",
        "client-b",
        "b",
    )
    assert cause.text == "client-b joined"


def test_a_static_member_that_returns_neither_joins_nor_leaves() -> None:
    before, after = member("b1", instance_id="two"), member("b2", instance_id="two")
    assert kinds(group(A, before), group(A, after, generation=6), evidence()) == [
        ("static_member_returned", "certain")
    ]


@pytest.mark.parametrize(("by_epochs", "sure"), [(False, "likely"), (True, "certain")])
def test_one_of_several_subscribes_to_more(by_epochs: bool, sure: str) -> None:
    """A classic member may have a pattern, of which the record has only the topics."""
    more = member("b", topics=ORDERS | {"payments"})
    before, after = (
        replace(one, by_epochs=by_epochs) for one in (group(A, B), group(A, more, generation=6))
    )
    (cause,) = causes(before, after, evidence())
    assert (cause.kind, cause.sure, cause.client) == ("resubscribed", sure, "client-b")
    assert cause.topic == "payments"
    assert "payments" in cause.why


def test_a_topic_that_is_new_or_gone_matches_a_pattern_that_a_client_resolves() -> None:
    more = member("b", topics=ORDERS | {"orders-2"})
    appeared = causes(
        group(A, B), group(A, more, generation=6), evidence(is_new=lambda name: name == "orders-2")
    )
    assert [(one.kind, one.sure, one.topic) for one in appeared] == [
        ("topic_appeared", "likely", "orders-2")
    ]
    vanished = causes(
        group(A, more), group(A, B, generation=6), evidence(exists=lambda name: name == "orders")
    )
    assert [(one.kind, one.sure, one.topic) for one in vanished] == [
        ("topic_vanished", "likely", "orders-2")
    ]


def test_all_whose_subscriptions_grow_alike_have_a_pattern() -> None:
    more = [member(name, topics=ORDERS | {"orders-2"}) for name in "ab"]
    (cause,) = causes(group(A, B), group(*more, generation=6), evidence())
    assert (cause.kind, cause.sure, cause.topic) == ("topic_appeared", "likely", "orders-2")
    fewer = causes(group(*more), group(A, B, generation=6), evidence())
    assert [(one.kind, one.topic) for one in fewer] == [("topic_vanished", "orders-2")]


def test_a_pattern_that_the_coordinator_resolves_is_certain() -> None:
    before = member("a", pattern="orders.*")
    after = before._replace(topics=ORDERS | {"orders-2"})
    assert kinds(group(before), group(after, generation=6), evidence()) == [
        ("topic_appeared", "certain")
    ]
    other = before._replace(pattern="payments.*", topics=frozenset({"payments"}))
    assert kinds(group(before), group(other, generation=6), evidence()) == [
        ("resubscribed", "likely")
    ]


def test_a_topic_that_grew_or_was_deleted() -> None:
    (cause,) = causes(group(A, B), group(A, B, generation=6, partitions=8), evidence())
    assert (cause.kind, cause.sure, cause.topic) == ("topic_grew", "certain", "orders")
    cooperative = [
        replace(one, assignor="cooperative-sticky")
        for one in (group(A, B), group(A, B, generation=6, partitions=8))
    ]
    assert kinds(*cooperative, evidence()) == [("topic_grew", "likely")]
    gone = evidence(exists=lambda _: False)
    assert kinds(group(A, B), group(A, B, generation=6, partitions=0), gone) == [
        ("topic_vanished", "certain")
    ]


def test_a_partition_that_is_assigned_again_is_no_growth() -> None:
    """Cooperative members revoke first, and the next generation assigns what they revoked."""
    withheld = group(A, B, partitions=4, assignor="cooperative-sticky")
    whole = group(A, B, generation=6, assignor="cooperative-sticky")
    assert kinds(withheld, whole, evidence()) == [("follow_up", "likely")]


def test_another_assignor_and_another_protocol() -> None:
    after = group(A, B, generation=6, assignor="cooperative-sticky")
    assert kinds(group(A, B), after, evidence()) == [("assignor_changed", "certain")]
    converted = replace(
        group(A, B, generation=6), group_type="consumer", assignor="uniform", by_epochs=True
    )
    assert kinds(group(A, B), converted, evidence()) == [("protocol_converted", "certain")]


def test_without_any_change_it_was_due_or_asked_for() -> None:
    both = group(A, B), group(A, B, generation=6)
    assert kinds(*both, evidence(due_ms=AT_MS - 2_000)) == [("scheduled", "certain")]
    assert kinds(*both, evidence(coordinator_moved_ms=AT_MS - 5_000)) == [
        ("coordinator_moved", "possible")
    ]
    assert kinds(*both, evidence()) == [("requested", "possible")]


def test_members_that_join_again_after_their_coordinator_moved_were_not_too_slow() -> None:
    again = B._replace(member_id="b2")
    silent = evidence(12_000, coordinator_moved_ms=AT_MS - 5_000)
    after = group(A, again, generation=6)
    assert kinds(group(A, B), after, silent) == [
        ("joined", "certain"),
        ("coordinator_moved", "likely"),
    ]
    seen_late = evidence(12_000, coordinator_moved_ms=AT_MS + 2_000)
    assert ("coordinator_moved", "likely") in kinds(group(A, B), after, seen_late)
    # Who committed after the move, or never came back, is gone for another reason.
    late = evidence(2_000, coordinator_moved_ms=AT_MS - 5_000)
    assert ("left", "likely") in kinds(group(A, B), after, late)
    gone = kinds(group(A, B), group(A, generation=6), silent)
    assert "coordinator_moved" not in {kind for kind, _ in gone}


def test_members_that_all_join_again_at_once_were_not_too_slow() -> None:
    after = group(A._replace(member_id="a2"), B._replace(member_id="b2"), generation=6)
    silent = Circumstances(AT_MS, {"a": AT_MS - 303_000, "b": AT_MS - 303_000}, {"orders": 6})
    found = {kind for kind, _ in kinds(group(A, B), after, silent)}
    assert "poll_interval_exceeded" not in found
    assert kinds(group(A, B), group(generation=6), silent) == [("left", "possible")] * 2
    alone = kinds(group(A, B), group(A, B._replace(member_id="b2"), generation=6), silent)
    assert "poll_interval_exceeded" in {kind for kind, _ in alone}


def test_the_surest_comes_first_and_a_crowd_is_bounded() -> None:
    crowd = [member(f"m{number}") for number in range(100)]
    found = causes(group(A, B), group(A, *crowd, generation=6), evidence(2_000))
    assert len(found) == MOST_CAUSES
    assert found[0].sure == "certain"


@pytest.mark.parametrize("seed", range(200))
def test_whatever_members_are_there_is_a_cause_with_words(seed: int) -> None:
    rng = random.Random(seed)

    def any_member(name: str) -> Member:
        return member(
            name,
            instance_id=rng.choice([None, None, "one", ""]),
            topics=frozenset(rng.sample(["orders", "payments", "x"], rng.randint(0, 3))),
            pattern=rng.choice([None, None, "o.*", "["]),
            session_timeout_ms=rng.choice([None, 1, 45_000, 2**31 - 1]),
            poll_interval_ms=rng.choice([None, 1, 300_000, 2**31 - 1]),
        )

    def any_group(generation: int) -> Membership:
        members = [any_member(name) for name in rng.sample("abcdef", rng.randint(0, 6))]
        return group(*members, generation=generation, partitions=rng.choice([0, 1, 6]))

    known = Circumstances(
        rng.choice([None, AT_MS]),
        {name: AT_MS - rng.choice([-5, 0, 1, 10**12]) for name in "abc"},
        {"orders": rng.choice([0, 6, 2**31])},
        rng.choice([None, AT_MS]),
        rng.choice([None, 0, AT_MS]),
        lambda _: rng.random() < 0.5,
    )
    found = causes(any_group(5), any_group(6), known)
    assert 1 <= len(found) <= MOST_CAUSES, seed
    order = [SURENESS.index(cause.sure) for cause in found]
    assert order == sorted(order), seed
    assert all(CAUSES[cause.kind] in cause.text for cause in found), seed
