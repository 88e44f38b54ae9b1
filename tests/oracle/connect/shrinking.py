"""Make a story that is decided otherwise as short as it can be and still be so."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from tests.oracle.shrinking import shrink_by

Story = dict[str, Any]


def shrink_story(story: Story, fails: Callable[[Story], bool]) -> Story:
    """Shrink a failing story to what it still fails with.

    First rounds, workers and connectors, by halves, quarters and so on; then tasks, what workers
    own, and times, one by one.
    """
    return shrink_by(
        lambda current: (one for one in _in_turn(current) if one is not None), story, fails
    )


def _in_turn(current: Callable[[], Story]) -> Iterator[Story | None]:
    """Yield shorter stories, each made of the one that is current by then."""
    size = len(current()["rounds"]) // 2
    while size:
        for first in reversed(range(0, len(current()["rounds"]), size)):
            yield _without_rounds(current(), first, size)
        size //= 2
    for what in ("workers", "connectors"):
        names = list(dict.fromkeys(name for one in current()["rounds"] for name in one[what]))
        size = len(names) // 2
        while size:
            for first in range(0, len(names), size):
                yield _without_names(current(), what, set(names[first : first + size]))
            size //= 2
    for number in range(len(current()["rounds"])):
        yield from _simpler_rounds(current, number)


def _simpler_rounds(current: Callable[[], Story], number: int) -> Iterator[Story | None]:
    def changed(change: Callable[[dict[str, Any]], object]) -> Story | None:
        story = copy.deepcopy(current())
        if number >= len(story["rounds"]):
            return None
        change(story["rounds"][number])
        return story

    one = current()["rounds"][number]
    yield changed(lambda it: it.pop("previous_generation_failed", None))
    yield changed(lambda it: it.update(time_ms=0))
    for name, count in one["connectors"].items():
        if count:
            yield changed(lambda it, name=name: it["connectors"].update({name: 0}))
            yield changed(
                lambda it, name=name, count=count: it["connectors"].update({name: count - 1})
            )
    for name, worker in one["workers"].items():
        yield changed(lambda it, name=name: it["workers"].update({name: {"owned": []}}))
        for item in worker["owned"]:
            rest = [other for other in worker["owned"] if other != item]
            yield changed(
                lambda it, name=name, rest=rest: it["workers"].update({name: {"owned": rest}})
            )


def _without_rounds(story: Story, first: int, size: int) -> Story | None:
    rounds = story["rounds"][:first] + story["rounds"][first + size :]
    return {**copy.deepcopy(story), "rounds": copy.deepcopy(rounds)} if rounds else None


def _without_names(story: Story, what: str, gone: set[str]) -> Story | None:
    """Copy a story without some workers or connectors; None where a round couldn't be decided."""
    shorter = copy.deepcopy(story)
    for one in shorter["rounds"]:
        one[what] = {name: value for name, value in one[what].items() if name not in gone}
        if one["leader"] not in one["workers"]:
            return None
        if what == "connectors":
            for worker in one["workers"].values():
                worker["owned"] = [
                    item
                    for item in worker["owned"]
                    if item not in gone and item.rpartition("-")[0] not in gone
                ]
    return shorter
