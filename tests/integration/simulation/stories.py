"""The six stories: each done to a real application, and played in virtual time before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from caughtup.demo.story.truth import group_history
from caughtup.models.assignors.following.follower import Patience
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.streams.plan import Plan, carry_out, new_process, settled
from caughtup.models.simulation.streams.run import StreamsRun
from caughtup.models.simulation.streams.topology import Application, Changelog
from caughtup.models.simulation.time_line import Mark
from caughtup.models.what_if.question import Group
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
_MOST_MS = 30 * 60_000
#: What RocksDB keeps of a store in memory, by Kafka Streams' own settings of it.
FLUSH_BYTES = 16 << 20


@dataclass(frozen=True)
class Rates:
    """What was measured before any story.

    ``restore``: offsets a second that a thread restores; ``restore_start_ms``: from a generation
    until states of it begin to be restored; ``start_ms``: from an instance's start until it joins;
    ``stop_ms``: from an orderly stop until the others have a generation without it.
    """

    restore: float
    restore_start_ms: int
    start_ms: int
    stop_ms: int


@dataclass(frozen=True)
class Story:
    """What happens: to the real application, and in virtual time."""

    name: str
    of: str
    real: Callable[[SlowApplication], None]
    simulated: Callable[[StreamsRun, Rates], Callable[[], bool]]


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


def add_one(app: SlowApplication) -> None:
    app.start(NAMES[3])


def simulated_add(run: StreamsRun, rates: Rates) -> Callable[[], bool]:
    name = NAMES[3]
    run.add(name, new_process(run, 1))
    run.time.after(rates.start_ms, lambda: run.start(name))
    return lambda: run.instances[name].answers


def roll(app: SlowApplication) -> None:
    """Restart one after the other, each once all tasks are processed again."""
    for name in NAMES[:3]:
        waited("all run", app.running_well, 300)
        app.stop(name)
        time.sleep(_DOWN_MS / 1_000)
        app.start(name)
        waited(f"{name} has joined", lambda: len(app.streams.threads(app_last(app))) > 0, 60)
    waited("all run", app.running_well, 300)


def app_last(app: SlowApplication) -> str:
    return app.streams.instances[-1]


def simulated_roll(run: StreamsRun, rates: Rates) -> Callable[[], bool]:
    down_ms = rates.stop_ms + _DOWN_MS + rates.start_ms
    return carry_out(run, Plan(restart=NAMES[:3], down_ms=down_ms, leave_group=True))


def killing(
    *, keep_state: bool
) -> tuple[Callable[[SlowApplication], None], Callable[[StreamsRun, Rates], Callable[[], bool]]]:
    name = NAMES[2]

    def real(app: SlowApplication) -> None:
        app.kill(name)
        if not keep_state:
            app.lose_disk(name)
        time.sleep(_DOWN_MS / 1_000)
        app.start(name)

    def simulated(run: StreamsRun, rates: Rates) -> Callable[[], bool]:
        run.kill(name, keep_state=keep_state)
        run.time.after(_DOWN_MS + rates.start_ms, lambda: run.start(name))
        return lambda: run.instances[name].answers

    return real, simulated


STORIES = (
    Story("rolling restart", KAFKA, roll, simulated_roll),
    Story("kill, state kept", KAFKA, *killing(keep_state=True)),
    Story("kill, state lost", KAFKA, *killing(keep_state=False)),
    Story("scale-out, Kafka's assignor", KAFKA, add_one, simulated_add),
    Story("rolling restart with standbys", STANDBYS, roll, simulated_roll),
    Story("scale-out, follower", FOLLOWER, add_one, simulated_add),
)


def measure(app: SlowApplication) -> Rates:
    """Stop an instance whose disk is lost, start it again, and measure what that shows."""
    name = NAMES[2]
    began = now_ms()
    app.stop(name)
    waited("the others run all", lambda: app.running_well() and two(app), 300)
    group = app.group()
    assert group is not None
    stop_ms = group.generation.as_of_ms - began
    waited("they restored all", lambda: all(one.reached_ms for one in app.copies(began)), 300)
    rates, starts = [], []
    for instance in app.streams.instances:
        own = [
            one
            for one in app.streams.restored(instance)
            if one.started_ms >= began and one.from_nothing and one.role == "active"
        ]
        first = min(one.started_ms for one in own)
        took_ms = max(one.reached_ms or 0 for one in own) - first
        rates.append(sum(one.behind for one in own) * 1_000 / took_ms)
        starts.append(first - group.generation.as_of_ms)
    app.lose_disk(name)
    began = now_ms()
    app.start(name)
    app.settle()
    return Rates(median(rates), round(median(starts)), app.joined_ms(name) - began, stop_ms)


def two(app: SlowApplication) -> bool:
    group = app.group()
    return group is not None and len(group.generation.clients) == 2


def application_of(group: Group, rates: Rates, per_second: float, of: str) -> Application:
    """Return an application as the simulator begins with it: as commands see it, and the rates."""
    found = group.application(
        assignor="minimal_movement" if of == FOLLOWER else "high_availability",
        config={},
        restore_per_second=rates.restore,
        waits_for_thread=False,
    )
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


def play(
    app: SlowApplication, story: Story, group: Group, rates: Rates
) -> tuple[Figures, tuple[Mark, ...]]:
    """Play a story in virtual time, from the group as it is."""
    application = application_of(group, rates, app.load_per_task, story.of)
    run = StreamsRun(application, epoch_ms=now_ms())
    run.resume(app.running(group), group.generation.generation)
    done = story.simulated(run, rates)
    run.time.run(10_000)
    while run.time.now_ms < _MOST_MS and not (done() and settled(run)):
        run.time.run(run.time.now_ms + 1_000)
    until_ms = run.time.now_ms
    found = of_time_line(
        run.line.spans(until_ms), run.line.marks, map(str, run.tasks.sources), until_ms
    )
    return found, tuple(run.line.marks)


def tell(app: SlowApplication, story: Story, rates: Rates) -> Told:
    """Simulate a story, then do it, and return both."""
    group = app.settle()
    before = group.generation.generation
    if story.real is add_one:
        ids = StreamsRun(application_of(group, rates, 1.0, story.of))
        ids.resume(group.running(), before)
        app.set_process_id(NAMES[3], new_process(ids, 1))
    simulated, played = play(app, story, group, rates)
    began = now_ms()
    story.real(app)
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
        sum(one.from_nothing for one in copies),
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
            "copy" if one.from_nothing else "state",
            f"{one.role} 0_{one.partition} from {one.start} to {one.loaded or one.end}"
            f" until {(one.reached_ms or 0) - began}: {one.ending}",
        )
        for one in copies
    ]
    return Told(story, real, simulated, tuple(sorted(happened)), played)
