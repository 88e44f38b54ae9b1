"""How long an application's partitions stood still, from looks at what was committed when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caughtup.models.recent.standing_still import StandstillHistory

BEGAN_MS = 1_800_000_000_000
STEP_MS = 10_000
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
    still.look("orders", np.array(numbers, np.int64), committed, rows, BEGAN_MS + at_ms)


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
