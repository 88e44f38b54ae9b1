"""Random stories: nothing is owned twice, and every task ends running somewhere."""

from __future__ import annotations

import pytest

from caughtup.models.ids import TaskId
from caughtup.models.simulation.streams.thread import SimulatedThread
from tests.models.simulation.stories.drawn import (
    Happening,
    Story,
    coordinated_story,
    random_story,
)
from tests.models.simulation.stories.random_stories import play, shrunk, told
from tests.models.simulation.stories.telling import application

#: More are played by ``python -m tests.models.simulation.stories.random_stories``.
SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_story_comes_to_rest_with_each_task_running_once(seed: int) -> None:
    story = random_story(seed, most_clients=6, most_tasks=30)
    _, wrong = play(story)
    if wrong:
        pytest.fail(told(shrunk(story)))


def test_what_is_restored_slowly_since_before_the_last_happening_takes_its_rounds() -> None:
    assert play(random_story(50_894))[1] == []


def test_who_gave_up_what_it_restored_and_stood_still_goes_on_without_it() -> None:
    assert play(random_story(20_019))[1] == []


@pytest.mark.parametrize("seed", range(40))
def test_a_story_whose_coordinator_assigns_comes_to_rest_with_each_task_running_once(
    seed: int,
) -> None:
    story = coordinated_story(seed, most_clients=6, most_tasks=30)
    _, wrong = play(story)
    if wrong:
        pytest.fail(told(shrunk(story)))


@pytest.mark.heavy
def test_a_thread_that_keeps_what_it_should_let_go_is_found_and_the_story_shrunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    works = SimulatedThread._close_active

    def keeps(self: SimulatedThread, task: TaskId, *, checkpoint: bool = True) -> None:
        if not self.answers:
            works(self, task, checkpoint=checkpoint)

    monkeypatch.setattr(SimulatedThread, "_close_active", keeps)
    happenings = [Happening(number * 60_000, "start", f"c{number}") for number in range(3)]
    threads = dict.fromkeys(("c0", "c1", "c2"), 1)
    story = Story(0, application(0, 6), threads, tuple(happenings), lasting_ms=600_000)
    _, wrong = play(story)
    assert any("is active on c0-1-1, c1-1-1" in one for one in wrong)
    assert len(shrunk(story).happenings) == 2
    assert "active on" in told(shrunk(story))
