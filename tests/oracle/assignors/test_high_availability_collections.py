"""The Java collection whose order decides movements: PriorityQueue, against Java's own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignors.java.priority_queue import JavaPriorityQueue
from tests.support.sizes import daily

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("java collections")]

# Letters that differ in case only are equal to the queue but can be told apart.
LETTERS = st.sampled_from("aAbBcCdD")
REMOVALS = st.lists(st.one_of(st.just("poll"), LETTERS), max_size=30)


@settings(max_examples=daily(20, 60), deadline=None, print_blob=True)
@given(st.lists(LETTERS, max_size=30), REMOVALS)
def test_equal_elements_leave_the_queue_in_javas_order(
    jvm: Any, offered: list[str], removed: list[str]
) -> None:
    theirs = jvm.java.util.PriorityQueue(11, jvm.java.lang.String.CASE_INSENSITIVE_ORDER)
    ours = JavaPriorityQueue[str]({letter: letter.lower() for letter in "aAbBcCdD"})
    for letter in offered:
        theirs.offer(letter)
        ours.offer(letter)
    left = list(offered)
    for step in removed:
        if step == "poll" and left:
            polled = ours.poll()
            assert polled == theirs.poll()
            left.remove(polled)
        elif step in left:
            ours.remove(step)
            assert theirs.remove(step)
            left.remove(step)
    assert [ours.poll() for _ in range(len(ours))] == [theirs.poll() for _ in range(len(left))]
