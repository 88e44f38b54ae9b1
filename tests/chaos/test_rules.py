"""The truth teller notices a lie, and takes nothing true for one: rules on hand-made histories."""

from __future__ import annotations

import pytest

from tests.chaos import rules
from tests.chaos.history import Truth
from tests.chaos.rules import Around, Violation, Watched
from tests.chaos.said import COMMITTED, END, GENERATION, GROUP_LAG, LAG, MOVING, Figure, Said

READERS = Watched("readers", (("words", 0),))
GROUPS = {"readers": READERS, "never": Watched("never", (("words", 0),), commits=False)}
CALM, FAULT = Around(calm_since=0.0), Around(fault_since=90.0)
COMMIT = Figure(COMMITTED, "readers", "words", 0)


def told(value: float, kind: str = COMMITTED, group: str = "readers", **said: object) -> Said:
    place = ("words", 0) if kind in (COMMITTED, LAG) else ()
    return Said(100.0, 100.5, 200, "ready", 200, {Figure(kind, group, *place): value}, **said)  # type: ignore[arg-type]


@pytest.fixture
def truth() -> Truth:
    """A group that commits 10 a second, 100 behind the end; sampled each second up to 115."""
    truth = Truth()
    for second in range(116):
        at = second + 0.2
        truth.add((COMMITTED, "readers", "words", 0), at, at + 0.1, 10 * second)
        truth.add((END, "words", 0), at, at + 0.1, 10 * second + 100)
        truth.add((GENERATION, "orders"), at, at + 0.1, 1 + second // 50)
    return truth


def lies(said: Said, truth: Truth, around: Around = CALM) -> list[Violation]:
    pending: list[Figure] = []
    found = list(rules.lies(said, around, truth, GROUPS, pending))
    assert pending == []
    return found


@pytest.mark.parametrize("value", [945, 960, 1_000, 1_010])
def test_what_was_true_within_the_last_seconds_is_no_lie(truth: Truth, value: int) -> None:
    assert lies(told(value), truth) == []


@pytest.mark.parametrize("value", [0, 900, 1_030, 10**12])
def test_what_was_true_longer_ago_or_never_is_a_lie(truth: Truth, value: int) -> None:
    (lie,) = lies(told(value), truth)
    assert f"committed readers words-0 = {value}" in lie.said
    assert "940 to 1010" in lie.true


def test_a_figure_that_says_its_age_may_be_as_old(truth: Truth) -> None:
    assert lies(told(700, age_seconds=26.0), truth) == []
    assert len(lies(told(600, age_seconds=26.0), truth)) == 1


def test_what_a_page_has_of_another_instance_may_be_as_old_as_the_page_says() -> None:
    truth = Truth()  # the lag falls by 10 a second, and is 1,000 after 100 s
    for second in range(111):
        at = second + 0.2
        truth.add((COMMITTED, "readers", "words", 0), at, at + 0.1, 10 * second)
        truth.add((END, "words", 0), at, at + 0.1, 2_000)
    assert lies(told(1_260, GROUP_LAG, page_age_seconds=26.0), truth) == []
    assert len(lies(told(1_260, GROUP_LAG), truth)) == 1
    assert len(lies(told(1_260, LAG, page_age_seconds=26.0), truth)) == 1


def test_who_is_not_ready_may_show_what_was_true_before_the_fault(truth: Truth) -> None:
    said = told(870)
    assert len(lies(said, truth, FAULT)) == 1
    unready = Said(said.asked, said.answered, 503, "in doubt", 200, said.figures)
    assert lies(unready, truth, FAULT) == []
    assert len(lies(unready, truth, CALM)) == 1


def test_just_after_an_election_the_truth_may_come_later_than_what_was_said(truth: Truth) -> None:
    assert lies(told(1_050), truth, FAULT) == []
    assert len(lies(told(1_050), truth, CALM)) == 1
    assert len(lies(told(1_130), truth, FAULT)) == 1


def test_a_coordinator_that_was_suspended_may_know_less_than_its_log() -> None:
    truth = Truth()
    for second in range(121):  # it goes on at 108 s with the offset from before a commit
        at, value = second + 0.2, 500 if second < 109 else 900
        truth.add((COMMITTED, "readers", "words", 0), at, at + 0.1, value)
    assert lies(told(501), truth, FAULT) == []
    assert len(lies(told(901), truth, FAULT)) == 1
    assert len(lies(told(501), truth, CALM)) == 1


@pytest.mark.parametrize(("value", "is_lie"), [(100, False), (30, False), (250, True), (0, True)])
def test_lag_is_held_against_ends_and_commits(truth: Truth, value: int, is_lie: bool) -> None:
    assert bool(lies(told(value, LAG), truth)) is is_lie
    assert bool(lies(told(value, GROUP_LAG), truth)) is is_lie


def test_lag_of_who_never_committed_counts_from_the_start(truth: Truth) -> None:
    assert lies(told(1_090, LAG, "never"), truth) == []
    assert len(lies(told(100, LAG, "never"), truth)) == 1


@pytest.mark.parametrize("answered_late", [False, True])
@pytest.mark.parametrize(("end", "is_lie"), [(850, False), (750, True), (1_000, True)])
def test_while_a_partition_has_no_leader_its_end_is_that_of_before(
    end: int, is_lie: bool, answered_late: bool
) -> None:
    """The last listing may lack what was written until the leader was gone, here at 80 s."""
    truth = Truth()
    for second in [*range(81), *range(100, 111)]:
        value = 10 * min(second, 80) + 100
        began = 80.8 if answered_late and second == 100 else second + 0.2
        truth.add((END, "words", 0), began, second + 0.3, value)
    said = Said(95.0, 95.5, 200, "ready", 200, {Figure(END, "", "words", 0): end})
    assert bool(lies(said, truth)) == is_lie


def test_a_generation_that_is_past_is_a_lie(truth: Truth) -> None:
    assert lies(told(3, GENERATION, "orders"), truth) == []
    assert len(lies(told(1, GENERATION, "orders"), truth)) == 1


def test_what_fell_and_rose_again_is_judged_by_all_of_it() -> None:
    truth = Truth()
    for at, value in ((90.0, 500), (96.0, 300), (97.0, 500), (102.0, 510)):
        truth.add((COMMITTED, "readers", "words", 0), at, at, value)
    assert lies(told(320), truth) == []
    assert len(lies(told(299), truth)) == 1


@pytest.mark.parametrize("cut", [True, False])
def test_what_may_fall_is_not_judged_by_what_was_seen_long_before_and_after(cut: bool) -> None:
    # Nobody could ask from 99 to 120 s; 1,841 was committed at the start of that, 1,800 at its end.
    truth = Truth(frozenset({"words"}) if cut else frozenset())
    for at, value in ((94.0, 1_781), (94.5, 1_786), (99.0, 1_831), (120.0, 1_800)):
        truth.add((COMMITTED, "readers", "words", 0), at, at, value)
    pending: list[Figure] = []
    found = list(rules.lies(told(1_841), CALM, truth, GROUPS, pending))
    assert (len(found), pending) == ((0, [COMMIT]) if cut else (1, []))


def test_what_may_fall_is_judged_where_it_was_sampled_often() -> None:
    truth = Truth(frozenset({"words"}))
    for number in range(40):
        at = 90.0 + number / 2
        value = 1_800 + number if number < 15 else 1_700 + number
        truth.add((COMMITTED, "readers", "words", 0), at, at + 0.1, value)
    assert lies(told(1_810), truth) == []
    assert lies(told(1_722), truth) == []
    assert len(lies(told(1_841), truth)) == 1
    assert len(lies(told(1_700), truth)) == 1


def test_what_nobody_watches_is_not_judged(truth: Truth) -> None:
    others = {
        Figure(END, "", "elsewhere", 0): 3.0,
        Figure(GENERATION, "strangers"): 9.0,
        Figure(COMMITTED, "strangers", "words", 0): 9.0,
        Figure(LAG, "readers", "elsewhere", 0): 9.0,
    }
    assert lies(Said(100.0, 100.5, 200, "ready", 200, others), truth) == []
    part = {"readers": Watched("readers", (("words", 0),), whole=False)}
    said = told(10**9, GROUP_LAG)
    assert list(rules.lies(said, CALM, truth, part, [])) == []
    assert len(list(rules.lies(said, CALM, truth, GROUPS, []))) == 1


def test_what_nobody_can_say_yet_waits() -> None:
    truth = Truth()
    for at in (90.0, 99.0):
        truth.add((COMMITTED, "readers", "words", 0), at, at, 5)
    pending: list[Figure] = []
    assert list(rules.lies(told(7), CALM, truth, GROUPS, pending)) == []
    assert pending == [COMMIT]
    truth.add((COMMITTED, "readers", "words", 0), 101.0, 101.0, 5)
    assert len(list(rules.lies(told(7), CALM, truth, GROUPS, []))) == 1


def test_in_calm_times_what_is_known_is_shown_and_fresh() -> None:
    nothing = Said(100.0, 100.1, 200, "ready", 200)
    assert [v.rule for v in rules.silences(nothing, CALM, [READERS])] == ["what is known is shown"]
    assert list(rules.silences(nothing, Around(calm_since=95.0), [READERS])) == []
    assert list(rules.silences(nothing, FAULT, [READERS])) == []
    old = Said(100.0, 100.1, 200, "ready", 200, {Figure(LAG, "readers", "words", 0): 1}, 30.0)
    assert [v.rule for v in rules.silences(old, CALM, [READERS])] == [
        "figures are fresh in calm times"
    ]


def test_half_an_answer_is_said_at_any_time() -> None:
    half = Said(100.0, 100.1, 503, "", 200, unreadable="ValueError: cut")
    assert [v.rule for v in rules.silences(half, FAULT, [])] == ["an answer can be read"]


def test_ready_means_that_the_log_is_read(truth: Truth) -> None:
    assert list(rules.unread(told(380, age_seconds=99.0), truth, [READERS])) != []
    assert list(rules.unread(told(450, age_seconds=99.0), truth, [READERS])) == []
    unready = Said(100.0, 100.1, 503, "in doubt", 200, {COMMIT: 380})
    assert list(rules.unread(unready, truth, [READERS])) == []


def test_a_deleted_group_goes() -> None:
    said = told(5, group="brief-1")
    assert len(list(rules.ghosts(said, CALM, {"brief-1": 80.0}))) == 1
    assert list(rules.ghosts(said, CALM, {"brief-1": 90.0})) == []
    assert list(rules.ghosts(said, FAULT, {"brief-1": 10.0})) == []


def test_one_is_active_and_the_other_shows_nothing() -> None:
    ready, standing = told(5), Said(101.0, 101.1, 503, "standby: a is active", 200)
    assert len(list(rules.rivals(ready, ready, ready))) == 1
    assert list(rules.rivals(ready, standing, ready)) == []
    assert list(rules.shown_by_standby(standing)) == []
    shows = Said(101.0, 101.1, 503, "standby: a is active", 200, {COMMIT: 5}, stands_by=True)
    assert len(list(rules.shown_by_standby(shows))) == 1


HEAVY = ("heavy", 0)


def misjudged(since: float, truth: Truth, **said: object) -> list[str]:
    """What is violated by who is asked at 100 s of a partition that copies since then."""
    asked = Said(100.0, 100.5, 200, "ready", 200, moves_age_seconds=1.0, **said)  # type: ignore[arg-type]
    return [one.rule for one in rules.misjudged(asked, HEAVY, since, truth)]


@pytest.fixture
def moving() -> Truth:
    """A partition that brokers show as reassigned from 80 s on."""
    truth = Truth()
    for second in range(111):
        truth.add((MOVING, *HEAVY), second + 0.2, second + 0.3, int(second >= 80))
    return truth


@pytest.mark.parametrize("verdict", ["", "moving", "measuring", "slow", "tail", "unknown"])
def test_of_one_that_moves_much_may_be_said(moving: Truth, verdict: str) -> None:
    assert misjudged(80.0, moving, moves={HEAVY: verdict}) == []


def test_nobody_is_alarmed_of_one_that_moves(moving: Truth) -> None:
    assert misjudged(99.0, moving, moves={HEAVY: "stalled"}) == ["no alarm while it moves"]


def test_what_moves_is_listed_within_seconds(moving: Truth) -> None:
    assert misjudged(80.0, moving) == ["what moves is listed"]
    assert misjudged(95.0, moving) == []
    assert misjudged(80.0, Truth()) == []
