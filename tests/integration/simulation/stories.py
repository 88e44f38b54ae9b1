"""The six stories: each done to a real application, and played in virtual time before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from caughtup.demo.story.truth import group_history
from caughtup.models.assignors.following.follower import Patience
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.streams.plan import new_process, settled
from caughtup.models.simulation.streams.run import StreamsRun
from caughtup.models.simulation.streams.topology import Changelog, SimulatedApplication
from caughtup.models.simulation.time_line import Mark
from caughtup.models.what_if.question import LeaderAssignedGroup
from caughtup.models.what_if.setting import WhatIfSetting
from tests.integration.simulation.application import (
    HEARTBEAT_MS,
    NAMES,
    SESSION_MS,
    VALUE_BYTES,
    SlowApplication,
    now_ms,
    waited,
)
from tests.integration.simulation.observed import (
    Figures,
    of_time_line,
    stood_still,
    written_times,
)

KAFKA, FOLLOWER, STANDBYS = "kafka", "follower", "standbys"
#: How configs differ between the three applications that the stories are of.
CONFIGS: Mapping[str, Mapping[str, str]] = {
    KAFKA: {},
    STANDBYS: {"num.standby.replicas": "1"},
    FOLLOWER: {
        "task.assignor.class": "caughtup.FollowingTaskAssignor",
        "metric.reporters": "caughtup.PositionReporter",
    },
}
#: A killed instance comes back after so long, and one that is restarted: ms, with a JVM's start.
_DOWN_MS = 3_000
_LOOK_MS = 250
NEW = NAMES[3]
_MOST_MS = 30 * 60_000
#: What RocksDB keeps of a store in memory, by Kafka Streams' own settings of it.
FLUSH_BYTES = 16 << 20


@dataclass(frozen=True)
class Rates:
    """What was measured before any story.

    ``restore``: offsets a second that a thread restores; ``restore_start_ms``: from a generation
    until states of it begin to be restored.
    """

    restore: float
    restore_start_ms: int


#: For how long each instance that started was away before, or on its way (ms), in their order.
Away = Mapping[str, int]


@dataclass(frozen=True)
class Story:
    """What happens: to the real application, and in virtual time.

    For how long an instance is away, of which a JVM's start is most, is part of the story: what
    really happened says it.
    """

    name: str
    of: str
    real: Callable[[SlowApplication], Away]
    simulated: Callable[[StreamsRun, Away], Callable[[], bool]]


@dataclass(frozen=True)
class Told:
    """A story as it really was, and as it was simulated before."""

    story: Story
    real: Figures
    simulated: Figures
    happened: tuple[Mark, ...]
    played: tuple[Mark, ...]

    @property
    def worst(self) -> tuple[str, float]:
        """The task whose standing still differs most, and by how much of the real one."""
        apart = {
            task: abs(self.simulated.still_ms[task] - still) / max(still, 1)
            if still or self.simulated.still_ms[task]
            else 0.0
            for task, still in self.real.still_ms.items()
        }
        task = max(apart, key=lambda one: apart[one])
        return task, apart[task]


def add_one(app: SlowApplication) -> Away:
    """Start a fourth instance."""
    began = now_ms()
    app.start(NEW)
    return {NEW: joined(app, NEW) - began}


def simulated_add(run: StreamsRun, away: Away) -> Callable[[], bool]:
    """Start a fourth instance in virtual time."""
    run.add(NEW, new_process(run, 1))
    run.time.after(away[NEW], lambda: run.start(NEW))
    return lambda: run.instances[NEW].answers


def roll(app: SlowApplication) -> Away:
    """Restart one after the other, each once all tasks are processed again."""
    away = {}
    for name in NAMES[:3]:
        waited("all run", app.running_well, 600)
        began = now_ms()
        app.stop(name)
        time.sleep(_DOWN_MS / 1_000)
        app.start(name)
        away[name] = joined(app, name) - began
    waited("all run", app.running_well, 600)
    return away


def simulated_roll(run: StreamsRun, away: Away) -> Callable[[], bool]:
    """Restart in virtual time, when the real ones would: once all tasks are processed again."""
    waiting = list(away)

    def look() -> None:
        back = all(run.instances[name].answers for name in away)
        if back and run.calm and run.processed == run.tasks.sources.keys():
            name = waiting.pop(0)
            run.stop(name, leave_group=True)
            run.time.after(away[name], lambda: run.start(name))
        if waiting:
            run.time.after(_LOOK_MS, look)

    look()
    return lambda: not waiting and all(run.instances[name].answers for name in away)


def killing(
    *, keep_state: bool
) -> tuple[Callable[[SlowApplication], Away], Callable[[StreamsRun, Away], Callable[[], bool]]]:
    """Return a kill after which the instance comes back, and the same in virtual time."""
    name = NAMES[2]

    def real(app: SlowApplication) -> Away:
        began = now_ms()
        app.kill(name)
        if not keep_state:
            app.lose_disk(name)
        time.sleep(_DOWN_MS / 1_000)
        app.start(name)
        return {name: joined(app, name) - began}

    def simulated(run: StreamsRun, away: Away) -> Callable[[], bool]:
        run.kill(name, keep_state=keep_state)
        run.time.after(away[name], lambda: run.start(name))
        return lambda: run.instances[name].answers

    return real, simulated


def joined(app: SlowApplication, name: str) -> int:
    """Return when an instance that was started asked to join (ms)."""
    return waited(f"{name} joins", lambda: app.joined_ms(name), 120)


STORIES = (
    Story("rolling restart", KAFKA, roll, simulated_roll),
    Story("kill, state kept", KAFKA, *killing(keep_state=True)),
    Story("kill, state lost", KAFKA, *killing(keep_state=False)),
    Story("scale-out, Kafka's assignor", KAFKA, add_one, simulated_add),
    Story("rolling restart with standbys", STANDBYS, roll, simulated_roll),
    Story("scale-out, follower", FOLLOWER, add_one, simulated_add),
)


def measure(app: SlowApplication) -> Rates:
    """Stop an instance, start it again with an empty disk, and measure what that shows.

    How fast it restores is what it shows itself; how soon that begins is what the others do, which
    have run for a while, as in all stories.
    """
    name = app.names[2]
    began = now_ms()
    app.stop(name)
    waited("the others run all", lambda: app.running_well() and app.members() == 2, 600)
    firsts = []
    for other in app.streams.instances:
        begun = [one.started_ms for one in app.streams.restored(other) if one.started_ms > began]
        firsts += [min(begun)] if begun else []
    app.lose_disk(name)
    app.start(name)
    app.settle()
    copies = [one for one in app.streams.restored(name) if one.start == 0 and one.reached_ms]
    took_ms = together([(one.started_ms, one.reached_ms or 0) for one in copies])
    given = [one.at_ms for one in group_history(app.cluster, app.name).generations.values()]
    starts = [first - max(at_ms for at_ms in given if at_ms <= first) for first in firsts]
    return Rates(sum(one.end or 0 for one in copies) * 1_000 / took_ms, min(starts))


def together(spans: Sequence[tuple[int, int]]) -> int:
    """Return for how long at least one of some spans lasted."""
    length = until = 0
    for start, end in sorted(spans):
        length += max(end - max(start, until), 0)
        until = max(until, end)
    return length


def application_of(
    group: LeaderAssignedGroup, rates: Rates, per_second: float, of: str
) -> SimulatedApplication:
    """Return an application as the simulator begins with it: as commands see it, and the rates."""
    setting = WhatIfSetting(assignor="minimal_movement" if of == FOLLOWER else "high_availability")
    found = group.application(setting, rates.restore)
    return replace(
        found,
        changelogs={task: Changelog(one.end, per_second) for task, one in found.changelogs.items()},
        timings=Timings(
            heartbeat_interval_ms=HEARTBEAT_MS,
            session_timeout_ms=SESSION_MS,
            initial_rebalance_delay_ms=0,
        ),
        restore_start_ms=rates.restore_start_ms,
        task_start_ms=rates.restore_start_ms,
        flush_offsets=FLUSH_BYTES // VALUE_BYTES,
        follower=Patience() if of == FOLLOWER else None,
    )


def play(run: StreamsRun, story: Story, away: Away) -> tuple[Figures, tuple[Mark, ...]]:
    """Play a story in virtual time."""
    done = story.simulated(run, away)
    run.time.run(10_000)
    while run.time.now_ms < _MOST_MS and not (done() and settled(run)):
        run.time.run(run.time.now_ms + 1_000)
    until_ms = run.time.now_ms
    found = of_time_line(
        run.line.spans(until_ms), run.line.marks, map(str, run.tasks.sources), until_ms
    )
    return found, tuple(run.line.marks)


def tell(app: SlowApplication, story: Story, rates: Rates) -> Told:
    """Do a story, play it from how the group was before, and return both."""
    group = app.settle()
    before = group.generation.generation
    began = now_ms()
    application = application_of(group, rates, app.load_per_task, story.of)
    run = StreamsRun(application, epoch_ms=began)
    run.resume(app.running(group, application), before)
    if story.real is add_one:
        app.set_process_id(NEW, new_process(run, 1))
    began = now_ms()
    away = story.real(app)
    simulated, played = play(run, story, away)
    after = app.settle().generation
    ended = now_ms()
    times = written_times(app.cluster, app.changelog, began - 5_000, ended)
    still = {number: stood_still(at, began, ended - 3_000) for number, at in times.items()}
    copies = app.copies(began)
    lasts = [one.reached_ms for one in copies if one.reached_ms is not None]
    last = max(after.as_of_ms, *(end for _, end in still.values()), *lasts)
    real = Figures(
        {f"0_{number}": one for number, (one, _) in still.items()},
        last - began,
        sum(one.start == 0 for one in copies),
        after.generation - before,
    )
    history = group_history(app.cluster, app.name).generations
    happened = [
        Mark(one.at_ms - began, "rebalance", f"generation {number}: {one.members} members")
        for number, one in history.items()
        if number > before
    ]
    happened += [
        Mark(
            one.started_ms - began,
            "copy" if one.start == 0 else "state",
            f"{one.role} 0_{one.partition} from {one.start} to {one.loaded or one.end}"
            f" until {(one.reached_ms or 0) - began}: {one.ending}",
        )
        for one in copies
    ]
    return Told(story, real, simulated, tuple(sorted(happened)), played)
