"""Random stories of an application, and what must hold after each of their events.

``python -m tests.models.simulation.stories.random_stories --stories 1000 --seed 0`` plays some and
prints a failing one, shrunk, with its time line, and how many a minute are played.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter, process_time

from caughtup.models.ids import ProcessId
from caughtup.models.simulation.streams.run import StreamsRun
from caughtup.models.simulation.time_line import draw, letters_of
from tests.models.simulation.stories.drawn import (
    MINUTE,
    Happening,
    Story,
    comes_to_rest,
    coordinated_story,
    random_story,
)
from tests.models.simulation.stories.invariants import (
    owned_twice,
    processed_twice,
    slow_to_converge,
    unfinished,
)


def play(story: Story) -> tuple[StreamsRun, list[str]]:
    """Play a story and return the run, and what was wrong with it."""
    run = StreamsRun(story.application)
    for number, (client, threads) in enumerate(story.threads.items()):
        run.add(client, ProcessId(0, number + 1), threads, restores=story.restores.get(client, 1.0))
    wrong: list[str] = []
    for happening in story.happenings:
        run.time.run(happening.at_ms)
        happen(run, happening)
        wrong += owned_twice(run)
    run.time.run(story.last_ms + MINUTE)  # what happened last is known to the group by then
    patience_ms = story.lasting_ms
    if not comes_to_rest(story):
        patience_ms = min(patience_ms, story.last_ms + 10 * MINUTE)
    while run.time.now_ms < patience_ms and not at_rest(run):
        run.time.run(min(run.time.now_ms + MINUTE, patience_ms))
    wrong += owned_twice(run)
    if comes_to_rest(story):
        wrong += unfinished(run)
        wrong += slow_to_converge(story, run)
    wrong += processed_twice(run.line.spans(run.time.now_ms))
    return run, wrong


def happen(run: StreamsRun, happening: Happening) -> None:
    """Let something happen to a client."""
    match happening.what:
        case "start":
            run.start(happening.client)
        case "stop":
            run.stop(happening.client)
        case "leave":
            run.stop(happening.client, leave_group=True)
        case "kill":
            run.kill(happening.client)
        case "pause":
            if run.instances[happening.client].answers:
                run.pause(happening.client, happening.for_ms)
        case _:
            run.kill(happening.client, keep_state=False)


def at_rest(run: StreamsRun) -> bool:
    """Return whether nothing is due any more that would change who has what."""
    return run.quiet and not unfinished(run)


def shrunk(story: Story) -> Story:
    """Leave out happenings as long as something is still wrong."""
    smaller = True
    while smaller:
        smaller = False
        for number in range(len(story.happenings)):
            rest = story.happenings[:number] + story.happenings[number + 1 :]
            if makes_sense(rest) and play(replace(story, happenings=rest))[1]:
                story, smaller = replace(story, happenings=rest), True
                break
    return story


def makes_sense(happenings: Sequence[Happening]) -> bool:
    """Return whether only those end that run, only those start that don't, and somebody stays."""
    running = set[str]()
    for one in happenings:
        if one.what == "pause":
            continue
        if (one.what == "start") == (one.client in running):
            return False
        running ^= {one.client}
    return bool(running)


def told(story: Story) -> str:
    """Write a failing story: what happens in it, what is wrong, and its time line."""
    run, wrong = play(story)
    until_ms = max((one.at_ms for one in story.happenings), default=0) + 3 * MINUTE
    drawn = draw(
        run.line.spans(until_ms),
        sorted(map(str, run.tasks.sources)),
        letters_of(run.instances),
        from_ms=0,
        until_ms=until_ms,
        step_ms=max(until_ms // 100, 1),
    )
    return "\n".join([f"seed {story.seed}", *map(str, story.happenings), *wrong[:10], *drawn[:20]])


def main() -> None:
    """Play stories, and exit with 1 at the first that is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--coordinated", action="store_true", help="streams and consumer groups")
    options = parser.parse_args()
    start, start_cpu = perf_counter(), process_time()
    for seed in range(options.seed, options.seed + options.stories):
        story = (coordinated_story if options.coordinated else random_story)(seed)
        _, wrong = play(story)
        if wrong:
            print(told(shrunk(story)))
            sys.exit(1)
    seconds, cpu = perf_counter() - start, process_time() - start_cpu
    print(
        f"{options.stories} stories of up to 10 clients and 200 tasks in {seconds:.1f} s: "
        f"{options.stories / seconds * 60:,.0f} a minute, {options.stories / cpu * 60:,.0f} a "
        "minute of CPU time, nothing wrong"
    )


if __name__ == "__main__":
    main()
