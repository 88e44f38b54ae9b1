"""What applications report of their copies: kept in little memory, whoever writes it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.tasks.positions import TaskPosition, TaskPositions

MOST = 12


def position(changelogs: int) -> TaskPosition:
    return TaskPosition("standby", 1, {f"c{number}": 1 for number in range(changelogs)}, 5)


def copy(number: int) -> CopyKey:
    return CopyKey("p", TaskId(0, number))


def test_beyond_the_most_no_copy_is_new_and_known_ones_are_told_on() -> None:
    positions = TaskPositions(MOST)
    for number in range(4):
        assert positions.apply(f"g{number}", copy(0), position(2))
    assert not positions.apply("more", copy(0), position(0))
    assert positions.of("more") == {}
    assert not positions.apply("g0", copy(0), position(3))
    assert positions.apply("g0", copy(0), position(1))
    assert positions.apply("more", copy(0), position(0))
    assert positions.apply("g1", copy(0), None)
    assert positions.apply("more", copy(1), position(2))
    assert positions.groups() == {"g0", "g2", "g3", "more"}


def test_a_group_that_is_forgotten_leaves_room() -> None:
    positions = TaskPositions(MOST)
    assert positions.apply("gone", copy(0), position(MOST - 1))
    assert not positions.apply("here", copy(0), position(0))
    positions.forget("gone")
    positions.forget("never there")
    assert positions.groups() == set()
    assert positions.apply("here", copy(0), position(MOST - 1))


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.none() | st.integers(0, 6)),
        max_size=60,
    )
)
@settings(print_blob=True)
def test_what_is_kept_is_counted_right(reports: list[tuple[str, int, int | None]]) -> None:
    positions = TaskPositions(MOST)
    for group, number, changelogs in reports:
        told = None if changelogs is None else position(changelogs)
        if number == 2 and told is None:
            positions.forget(group)
            continue
        before = dict(positions.of(group))
        taken = positions.apply(group, copy(number), told)
        assert taken or positions.of(group) == before
        kept = [p for name in positions.groups() for p in positions.of(name).values()]
        assert sum(1 + len(p.changelogs) for p in kept) <= MOST
        assert all(positions.of(name) for name in positions.groups())
    for group in "abc":
        positions.forget(group)
    assert positions.apply("a", copy(0), position(MOST - 1))
