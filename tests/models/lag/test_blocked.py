"""Groups at a last stable offset that an open transaction holds back."""

from __future__ import annotations

from caughtup.models.ids import TopicPartition
from caughtup.models.lag.lagging import HELD_MS
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.transactions import HeldPartition, OpenTransaction
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import SOURCE, START_MS, commit
from tests.support.states import cluster_state, read

GROUP = "readers"
ZERO = TopicPartition(SOURCE, 0)
SECOND = 1_000
HOLDER = OpenTransaction(
    transactional_id="payments-1",
    producer_id=7,
    producer_epoch=0,
    state="Ongoing",
    started_at_ms=START_MS,
    timeout_ms=60_000,
    partitions=(HeldPartition(SOURCE, 0, 20),),
)


def ends(state: ClusterState, stable: int, end: int, at_ms: int) -> None:
    state.apply_ends(ZERO, EndOffsets(0, stable, end, at_ms), now_ms=at_ms)


def verdict(state: ClusterState, now_ms: int) -> tuple[str, str]:
    for _ in state.assess(GROUP, now_ms):
        pass
    found = state.assessments.verdicts[GROUP]
    return found.verdict, found.reason


def behind_a_transaction() -> ClusterState:
    """A group that commits each second until 20 s, where a transaction begins that stays open."""
    state = cluster_state()
    for second in range(21):
        at_ms = START_MS + second * SECOND
        ends(state, second, second, at_ms)
        read(state, commit(0, second, group=GROUP, at_ms=at_ms))
    for second in range(21, 60):
        ends(state, 20, second, START_MS + second * SECOND)
    return state


def test_it_is_blocked_once_that_takes_longer_than_its_rhythm() -> None:
    state = behind_a_transaction()
    early = cluster_state()
    for second in range(21):
        at_ms = START_MS + second * SECOND
        ends(early, second, second, at_ms)
        read(early, commit(0, second, group=GROUP, at_ms=at_ms))
    ends(early, 20, 25, START_MS + 21 * SECOND)
    assert verdict(early, START_MS + 22 * SECOND)[0] == "ok"
    found, why = verdict(state, START_MS + 60 * SECOND)
    assert found == "blocked"
    assert "cannot read the 39 offsets after the last stable offset 20" in why
    assert "for 39 s, if it reads only committed records" in why
    assert "not known yet" in why
    assert state.assessments.blocked == {GROUP: (ZERO,)}


def test_the_holder_is_named_and_knows_whom_it_blocks() -> None:
    state = behind_a_transaction()
    state.transactions.apply([HOLDER], START_MS + 59 * SECOND)
    found, why = verdict(state, START_MS + 60 * SECOND)
    assert found == "blocked"
    assert "held back by an open transaction of payments-1" in why
    [line] = state.open_transactions(START_MS + 60 * SECOND)
    assert line.blocked_groups == (GROUP,)
    assert "aborts it in 0.0 s" in line.advice


def test_it_is_no_longer_blocked_when_the_offset_moves_on() -> None:
    state = behind_a_transaction()
    assert verdict(state, START_MS + 60 * SECOND)[0] == "blocked"
    ends(state, 60, 60, START_MS + 61 * SECOND)
    found, why = verdict(state, START_MS + 61 * SECOND)
    assert found != "blocked", why
    assert state.assessments.blocked == {}


def test_a_group_seen_beyond_a_last_stable_offset_is_never_blocked() -> None:
    state = behind_a_transaction()
    read(state, commit(0, 40, group=GROUP, at_ms=START_MS + 41 * SECOND))
    assert verdict(state, START_MS + 60 * SECOND)[0] == "ok"
    ends(state, 60, 60, START_MS + 61 * SECOND)
    read(state, commit(0, 60, group=GROUP, at_ms=START_MS + 61 * SECOND))
    for second in range(62, 90):
        ends(state, 60, second, START_MS + second * SECOND)
    assert verdict(state, START_MS + 90 * SECOND)[0] == "ok"


def test_transactions_that_follow_each_other_at_once_block_nobody() -> None:
    state = cluster_state()
    for second in range(60):
        at_ms = START_MS + second * SECOND
        ends(state, second * 2, second * 2 + 1, at_ms)
        read(state, commit(0, second * 2, group=GROUP, at_ms=at_ms))
        assert verdict(state, at_ms + HELD_MS // 10)[0] in ("ok", "unknown")


def test_a_clock_that_is_set_back_makes_no_block() -> None:
    state = cluster_state()
    ends(state, 5, 5, START_MS)
    read(state, commit(0, 5, group=GROUP, at_ms=START_MS))
    ends(state, 5, 8, START_MS + 60 * SECOND)
    history = state.ends.history(ZERO)
    assert history is not None
    assert history.held_ms == START_MS + 60 * SECOND
    state.apply_ends(ZERO, EndOffsets(0, 5, 8, START_MS + SECOND), now_ms=START_MS + SECOND)
    assert history.held_ms == START_MS + SECOND
