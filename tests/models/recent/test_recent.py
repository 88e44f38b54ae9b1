"""The last hours of a cluster: rates from sums, verdicts that change, groups that go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.lag.group_lag import Positions
from caughtup.models.lag.verdict import GroupVerdict
from caughtup.models.recent import recent as module
from caughtup.models.recent.recent import Recent, Since, StandstillHistory

BEGAN_MS = 1_800_000_000_000
STEP_MS = 10_000


def series(recent: Recent, figure: str) -> list[float | None]:
    found = recent.series("orders")
    assert found is not None
    return found.columns()[1][figure]


def test_rates_are_those_between_two_samples_of_the_same_partitions() -> None:
    recent = Recent()
    for number, positions in enumerate(
        (
            Positions(2, 100, 150),
            Positions(2, 300, 400),
            Positions(3, 9_000, 9_900),  # one more partition: no rate can be had
            Positions(3, 8_000, 9_900),  # went back
        )
    ):
        recent.sample("orders", BEGAN_MS + number * STEP_MS, 50, positions)
    assert series(recent, "committed_per_second") == [None, 20, None, -100]
    assert series(recent, "produced_per_second") == [None, 25, None, 0]
    assert series(recent, "lag") == [50, 50, 50, 50]


def test_a_pause_is_no_rate_and_an_unknown_lag_no_figure() -> None:
    recent = Recent()
    recent.sample("orders", BEGAN_MS, None, Positions(1, 0, 0))
    recent.sample("orders", BEGAN_MS + 61_000, None, Positions(1, 500, 500))
    assert series(recent, "committed_per_second") == [None, None]
    assert series(recent, "lag") == [None, None]


def test_copies_are_figures_of_an_application_from_when_it_is_one() -> None:
    recent = Recent()
    recent.sample("orders", BEGAN_MS, 1, Positions(0, 0, 0))
    recent.sample("orders", BEGAN_MS + STEP_MS, 2, Positions(0, 0, 0), {"warmups": 3})
    assert series(recent, "warmups") == [3]
    assert series(recent, "lag") == [2]


def test_a_verdict_is_told_when_it_changes_and_not_at_the_first_look() -> None:
    recent = Recent()
    for verdict in ("ok", "ok", "stalled", "stalled"):
        recent.observe("orders", GroupVerdict(verdict, None, "no commit for 26 s"), BEGAN_MS)
    (told,) = recent.happenings.newest(9)
    assert (told.kind, told.text, told.why, told.group) == (
        "verdict",
        "ok → stalled",
        "no commit for 26 s",
        "orders",
    )


def test_that_a_group_is_well_after_all_is_no_news_unless_it_was_not() -> None:
    recent = Recent()
    for verdict in ("unknown", "ok", "slow", "unknown", "ok"):
        recent.observe("orders", GroupVerdict(verdict, None, ""), BEGAN_MS)
    told = [one.text for one in reversed(recent.happenings.newest(9))]
    assert told == ["ok → slow", "slow → unknown", "unknown → ok"]


@pytest.mark.parametrize(
    ("verdicts", "since"),
    [
        (("ok", "slow", "stopped"), Since(BEGAN_MS + 1, at_least=False)),
        (("ok", "slow", "unknown", "stalled"), Since(BEGAN_MS + 1, at_least=False)),
        (("stalled", "stopped"), Since(BEGAN_MS, at_least=True)),
        (("unknown", "stopped"), Since(BEGAN_MS + 1, at_least=True)),
        (("ok", "slow", "ok"), None),
        (("ok", "unknown"), None),
        ((None, "ok"), None),
    ],
)
def test_it_knows_since_when_a_group_is_not_ok_whatever_it_was_called(
    verdicts: tuple[str | None, ...], since: Since | None
) -> None:
    recent = Recent()
    for number, verdict in enumerate(verdicts):
        found = None if verdict is None else GroupVerdict(verdict, None, "")
        recent.observe("orders", found, BEGAN_MS + number)
    assert recent.not_ok_since("orders") == since
    assert recent.not_ok_since("nobody") is None


def test_of_movements_only_what_asks_for_somebody_is_told() -> None:
    recent, partition = Recent(), TopicPartition("orders", 3)
    for verdict in ("measuring", "moving", "stalled", "stalled", "moving", "tail"):
        recent.observe_reassignment(partition, verdict, None, BEGAN_MS)
    told = [one.text for one in reversed(recent.happenings.newest(9))]
    assert told == ["orders-3: moving → stalled", "orders-3: stalled → moving"]


def test_what_is_gone_is_forgotten_and_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_GROUPS", 2)
    recent = Recent()
    for group in ("a", "b", "c"):
        recent.sample(group, BEGAN_MS, 1, Positions(0, 0, 0))
    assert recent.series("c") is None
    recent.keep_only({"b"}, ())
    assert (recent.series("a"), recent.series("b") is None) == (None, False)


HOUR_MS = 3_600_000


def look(
    still: StandstillHistory,
    at_ms: int,
    commits: Sequence[int],
    behind: Sequence[bool],
    numbers: Sequence[int] = (0, 1),
) -> None:
    """Look at partitions that were committed so long after the beginning (ms)."""
    committed = np.array(commits, np.int64) + BEGAN_MS
    rows = np.array(behind, np.bool_)
    still.observe("orders", np.array(numbers, np.int64), committed, rows, BEGAN_MS + at_ms)


def test_it_counts_from_the_look_at_which_a_partition_was_behind_to_its_next_commit() -> None:
    still = StandstillHistory()
    look(still, 0, [0, 0], [True, False])
    look(still, STEP_MS, [0, 0], [True, True])
    assert still.longest_ms(BEGAN_MS + STEP_MS) is None  # it hasn't gone on
    look(still, 4 * STEP_MS, [35_000, 0], [True, True])
    assert still.longest_ms(BEGAN_MS + 4 * STEP_MS) == 35_000
    look(still, 6 * STEP_MS, [60_000, 59_000], [False, False])
    assert still.longest_ms(BEGAN_MS + 6 * STEP_MS) == 49_000


def test_who_has_nothing_to_read_does_not_stand_still() -> None:
    still = StandstillHistory()
    for number in range(30):
        look(still, number * STEP_MS, [0, 0], [False, False])
    look(still, 300_000, [299_000, 299_500], [False, False])
    assert still.longest_ms(BEGAN_MS + 300_000) is None


def test_what_was_read_up_without_a_commit_is_no_end_of_standing_still() -> None:
    still = StandstillHistory()
    look(still, 0, [0, 0], [True, False])
    look(still, STEP_MS, [0, 0], [False, False])  # records were deleted
    look(still, 3 * STEP_MS, [29_000, 0], [False, False])
    assert still.longest_ms(BEGAN_MS + 3 * STEP_MS) is None


def test_an_outage_does_not_count_nor_does_what_was_long_ago() -> None:
    still = StandstillHistory()
    look(still, 0, [0, 0], [True, True])
    look(still, HOUR_MS, [3_500_000, 0], [False, True])
    assert still.longest_ms(BEGAN_MS + HOUR_MS) is None
    look(still, HOUR_MS + STEP_MS, [3_500_000, 0], [True, True])
    look(still, HOUR_MS + 3 * STEP_MS, [3_630_000, 0], [False, True])
    assert still.longest_ms(BEGAN_MS + HOUR_MS + 3 * STEP_MS) == 20_000
    assert still.longest_ms(BEGAN_MS + 8 * HOUR_MS) is None


def test_partitions_come_and_go() -> None:
    still = StandstillHistory()
    look(still, 0, [0, 0], [True, True])
    look(still, STEP_MS, [0, 5_000, 0], [True, True, True], numbers=(1, 2, 3))
    look(still, 3 * STEP_MS, [25_000, 25_000], [False, False], numbers=(1, 3))
    assert still.longest_ms(BEGAN_MS + 3 * STEP_MS) == 25_000
    still.keep_only(set())
    look(still, 4 * STEP_MS, [39_000, 39_000], [False, False], numbers=(1, 3))
    assert still.longest_ms(BEGAN_MS + 4 * STEP_MS) == 25_000
