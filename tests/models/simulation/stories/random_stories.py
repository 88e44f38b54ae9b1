"""Random stories of an application, and what must hold after each of their events.

``python -m tests.models.simulation.stories.random_stories --stories 1000 --seed 0`` plays some and
prints a failing one, shrunk, with its time line, and how many a minute are played.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter, process_time

from caughtup.models.assignment.configs import Configs
from caughtup.models.ids import ProcessId
from caughtup.models.simulation.drawing import draw, letters_of
from caughtup.models.simulation.streams.run import StreamsRun
from caughtup.models.simulation.streams.topology import (
    CONSUMER_TIMINGS,
    STREAMS_TIMINGS,
    Application,
    Changelog,
    Protocol,
    uniform,
)
from caughtup.models.simulation.time_line import Activity, Span

MINUTE = 60_000
ACTIVE = frozenset({Activity.PROCESSING, Activity.RESTORING, Activity.WAITING})
#: Kafka's sticky assignors may hand tasks to and fro for ever (KAFKA-20198), as seeds 340 and others.
COME_TO_REST = frozenset({"high_availability", "minimal_movement"})
ASSIGNORS = ("high_availability", "sticky", "public_sticky", "minimal_movement")


@dataclass(frozen=True)
class Happening:
    """Something that happens to a client at a moment (ms): start, stop, leave, kill or lose."""

    at_ms: int
    what: str
    client: str


@dataclass(frozen=True)
class Story:
    """What is played: an application, its clients' threads, and what happens."""

    seed: int
    application: Application
    threads: dict[str, int]
    happenings: tuple[Happening, ...]
    lasting_ms: int


def random_story(seed: int, most_clients: int = 10, most_tasks: int = 100) -> Story:
    """Draw a story: some clients start, then come and go; the last of it is calm."""
    rng = random.Random(seed)
    clients = [f"c{number}" for number in range(rng.randint(2, most_clients))]
    stateful = rng.randint(1, most_tasks)
    stateless = rng.choice([0, 0, rng.randint(1, most_tasks)])
    # What is written in a heartbeat is less than any acceptable lag but 0: with lag 0 a warm-up of
    # a task that writes is never caught up, and probing rebalances have no end.
    writes = rng.choice([0.0, 10.0, 100.0])
    changelog = Changelog(rng.choice([0, 10_000, 1_000_000]), writes)
    subtopologies, partitions, changelogs = uniform(stateful, stateless, changelog)
    application = Application(
        subtopologies,
        partitions,
        changelogs,
        restore_per_second=rng.choice([20_000.0, 200_000.0]),
        assignor=rng.choice(ASSIGNORS),
        configs=Configs(
            acceptable_recovery_lag=rng.choice([1_000 if writes else 0, 1_000, 10_000]),
            max_warmup_replicas=rng.choice([1, 2, 8]),
            num_standby_replicas=rng.choice([0, 0, 1, 2]),
            probing_rebalance_interval_ms=MINUTE,
        ),
        waits_for_thread=rng.random() < 0.3,
        eager=rng.random() < 0.2,
    )
    running, happenings = set[str](), list[Happening]()
    at_ms = 0
    for client in clients:
        if rng.random() < 0.8 or client == clients[-1]:
            at_ms += rng.choice([0, 0, 500, 5_000])
            happenings.append(Happening(at_ms, "start", client))
            running.add(client)
    for _ in range(rng.randint(1, 6)):
        at_ms += rng.choice([10, 3_000, 20_000, 2 * MINUTE])
        client = rng.choice(clients)
        if client in running and len(running) > 1:
            happenings.append(
                Happening(at_ms, rng.choice(["stop", "leave", "kill", "lose"]), client)
            )
            running.discard(client)
        elif client not in running:
            happenings.append(Happening(at_ms, "start", client))
            running.add(client)
    # Room for every warm-up that a balance may need, one probing rebalance after the other.
    needed = (stateful * (1 + application.configs.num_standby_replicas) + 10) * 2 * MINUTE
    threads = {client: rng.choice([1, 1, 2, 4]) for client in clients}
    return Story(seed, application, threads, tuple(happenings), at_ms + needed)


def coordinated_story(seed: int, most_clients: int = 10, most_tasks: int = 100) -> Story:
    """Draw a story of a streams group, or of a consumer group, whose partitions have no state."""
    story = random_story(seed, most_clients, most_tasks)
    application = story.application
    if seed % 2:
        coordinated = replace(application, protocol=Protocol.STREAMS, timings=STREAMS_TIMINGS)
    else:
        width = max(application.partitions.values())
        subtopologies, partitions, changelogs = uniform(0, width, Changelog(0))
        coordinated = replace(
            application,
            subtopologies=subtopologies,
            partitions=partitions,
            changelogs=changelogs,
            protocol=Protocol.CONSUMER,
            timings=CONSUMER_TIMINGS,
            assignor="uniform" if seed % 4 else "range",
        )
    return replace(story, application=replace(coordinated, eager=False))


def play(story: Story) -> tuple[StreamsRun, list[str]]:
    """Play a story and return the run, and what was wrong with it."""
    run = StreamsRun(story.application)
    for number, (client, threads) in enumerate(story.threads.items()):
        run.add(client, ProcessId(0, number + 1), threads)
    wrong: list[str] = []
    restored = 0.0
    for happening in story.happenings:
        run.time.run(happening.at_ms)
        restored = run.stage.to_restore
        happen(run, happening)
        wrong += owned_twice(run)
    run.time.run(run.time.now_ms + MINUTE)  # what happened last is known to the group by then
    patience_ms = story.lasting_ms
    if not comes_to_rest(story):
        patience_ms = min(patience_ms, story.happenings[-1].at_ms + 10 * MINUTE)
    while run.time.now_ms < patience_ms and not at_rest(run):
        run.time.run(min(run.time.now_ms + MINUTE, patience_ms))
    wrong += owned_twice(run)
    if comes_to_rest(story):
        wrong += unfinished(run)
        wrong += slow_to_converge(story, run, restored)
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
        case _:
            run.kill(happening.client, keep_state=False)


def comes_to_rest(story: Story) -> bool:
    """Return whether the group has to come to rest, by whoever assigns in it."""
    application = story.application
    return application.protocol is not Protocol.CLASSIC or application.assignor in COME_TO_REST


def at_rest(run: StreamsRun) -> bool:
    """Return whether nothing is due any more that would change who has what."""
    return run.quiet and not unfinished(run)


def owned_twice(run: StreamsRun) -> list[str]:
    """Name the tasks that two running threads have as actives."""
    owners: dict[str, list[str]] = {}
    for thread in run.running_threads():
        for task in thread.active:
            owners.setdefault(str(task), []).append(thread.member_id)
    return [
        f"at {run.time.now_ms} ms {task} is active on {', '.join(who)}"
        for task, who in sorted(owners.items())
        if len(who) > 1
    ]


def unfinished(run: StreamsRun) -> list[str]:
    """Name the tasks that nobody processes."""
    processed = {
        task for thread in run.running_threads() for task, runs in thread.active.items() if runs
    }
    return [
        f"in the end nobody processes {task}"
        for task in sorted(run.tasks.sources)
        if task not in processed
    ]


def slow_to_converge(story: Story, run: StreamsRun, restored: float) -> list[str]:
    """Hold the rounds after the last happening to Kafka's bound (TaskAssignorConvergenceTest).

    There every copy has caught up by the next round. Here one takes its time, which may be more
    than a probing interval: at worst one thread restores all that was begun, one after the other.
    ``restored``: what had been begun before, in offsets.
    """
    application = story.application
    stateful = len(application.changelogs)
    rounds = 2 * stateful * (1 + application.configs.num_standby_replicas)
    begun = (run.stage.to_restore - restored) / application.restore_per_second
    rounds += 1 + int(begun * 1_000 // application.configs.probing_rebalance_interval_ms)
    last_ms = story.happenings[-1].at_ms
    probing = sum(one.kind == "probing" and one.at_ms > last_ms for one in run.line.marks)
    if probing <= rounds:
        return []
    return [f"{probing} probing rebalances after the last happening, {rounds} at most"]


def processed_twice(spans: Sequence[Span]) -> list[str]:
    """Name the moments in which two clients had one active."""
    wrong = []
    active = sorted(
        (span for span in spans if span.activity in ACTIVE),
        key=lambda span: (span.task, span.start_ms, span.end_ms),
    )
    for one, other in pairwise(active):
        if one.task == other.task and other.start_ms < one.end_ms and one.client != other.client:
            wrong.append(
                f"{one.task} was active on {one.client} and {other.client} at {other.start_ms}"
            )
    return wrong


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
