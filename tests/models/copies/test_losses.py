"""Copies that were lost and built again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.copies.losses import GENERATIONS_WATCHED, CopyLosses
from caughtup.models.ids import CopyKey, TaskId

COPY, OTHER = CopyKey("p", TaskId(0, 0)), CopyKey("p", TaskId(0, 1))


def after(*held: bool) -> int:
    """Count the losses of a copy that was held in these generations, or not."""
    losses = CopyLosses()
    for is_held in held:
        losses.apply_generation({COPY, OTHER} if is_held else {OTHER})
    assert losses.of(OTHER) == 0
    return losses.of(COPY)


def test_a_copy_that_is_new_or_stays_or_goes_for_good_was_not_built_again() -> None:
    assert after(True, True, True) == after(False, True) == after(True, False, False) == 0


def test_a_copy_that_comes_back_was_built_again_each_time() -> None:
    assert after(True, False, True) == 1
    assert after(True, False, False, True, False, True) == 2


def test_a_loss_is_forgotten_after_so_many_generations() -> None:
    stays = [True] * (GENERATIONS_WATCHED - 1)
    assert after(True, False, True, *stays) == 1
    assert after(True, False, True, *stays, True) == 0


def test_a_copy_that_comes_back_after_long_is_a_new_one() -> None:
    away = [False] * (GENERATIONS_WATCHED - 1)
    assert after(True, *away, True) == 1
    assert after(True, *away, False, False, True) == 0


def test_a_store_that_started_over_was_built_again() -> None:
    losses = CopyLosses()
    losses.apply_generation({COPY})
    losses.record_rebuilt(COPY)
    losses.record_rebuilt(COPY)
    assert losses.of(COPY) == 2


@settings(print_blob=True, deadline=None)
@given(st.lists(st.booleans(), max_size=60))
def test_losses_are_counted_as_often_as_a_copy_comes_back_in_the_window(held: list[bool]) -> None:
    lost_at = None
    rebuilt = []
    for index, (before, now) in enumerate(zip([False, *held], held, strict=False)):
        if before and not now:
            lost_at = index
        if now and not before and lost_at is not None:
            if index - lost_at < GENERATIONS_WATCHED:
                rebuilt.append(index)
            lost_at = None
    assert after(*held) == sum(at > len(held) - 1 - GENERATIONS_WATCHED for at in rebuilt)
