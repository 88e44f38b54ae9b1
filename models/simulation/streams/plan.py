"""What somebody is about to do to an application: add, stop, kill or restart instances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from caughtup.models.ids import ProcessId
from caughtup.models.simulation.figures import Figures, figures
from caughtup.models.simulation.streams.run import RunningInstance, StreamsRun
from caughtup.models.simulation.streams.topology import Application
from caughtup.models.simulation.time_line import Mark, Span
from caughtup.models.simulation.virtual_time import EndlessError

#: How often a rolling restart looks whether all is well again, ms.
_LOOK_MS = 1_000
#: For so long a story goes on at most, ms, and so many events: what isn't calm then goes round.
MOST_MS = 7 * 24 * 3_600_000
MOST_EVENTS = 2_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done, in this order, all of it at the story's start.

    ``add`` instances like the last one are started, those of ``stop`` are stopped in order and
    those of ``kill`` killed. Those of ``restart`` are stopped and started again ``down_ms`` later:
    one after the other, each once every task is processed again and no rebalance goes on, or
    ``at_once``. ``keep_state``: what is restarted or killed finds its states again.
    ``leave_group``: what is stopped tells the group. ``rebalance``: somebody asks for one.
    """

    add: int = 0
    stop: tuple[str, ...] = ()
    kill: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    down_ms: int = 30_000
    at_once: bool = False
    keep_state: bool = True
    leave_group: bool = False
    rebalance: bool = False


@dataclass(frozen=True, slots=True)
class Simulated:
    """A story's end. ``endless`` says what went round, where it didn't come to rest."""

    figures: Figures
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]
    tasks: tuple[str, ...]
    clients: tuple[str, ...]
    until_ms: int
    offsets_restored: int
    endless: str | None = None


def simulate(
    application: Application,
    running: Sequence[RunningInstance],
    plan: Plan,
    *,
    generation: int = 1,
    epoch_ms: int = 0,
    most_ms: int = MOST_MS,
    between_steps: Callable[[], None] = lambda: None,
) -> Simulated:
    """Carry a plan out on an application as it runs, until it is at rest.

    ``epoch_ms``: the leader's clock when it begins. ``between_steps`` is called every ten seconds
    of the story, and may raise to end it. Raises ScenarioError where an assignor does.
    """
    run = StreamsRun(application, epoch_ms=epoch_ms)
    run.resume(running, generation)
    carried_out = carry_out(run, plan)
    endless = None
    try:
        run.time.run(min(_LOOK_MS, most_ms), MOST_EVENTS)  # who starts has joined by then
        while run.time.now_ms < most_ms and not (carried_out() and settled(run)):
            between_steps()
            run.time.run(min(run.time.now_ms + 10 * _LOOK_MS, most_ms), MOST_EVENTS)
        if not settled(run):
            endless = _what_goes_round(run)
    except EndlessError as error:
        endless = f"{error}; {_what_goes_round(run)}"
    until_ms = max(run.time.now_ms, 1)
    spans = tuple(run.line.spans(until_ms))
    tasks = tuple(name for _, name in sorted(run.stage.names.items()))
    marks = tuple(run.line.marks)
    return Simulated(
        figures=figures(spans, marks, tasks, from_ms=0, until_ms=until_ms),
        spans=spans,
        marks=marks,
        tasks=tasks,
        clients=tuple(run.instances),
        until_ms=until_ms,
        offsets_restored=round(run.stage.to_restore),
        endless=endless,
    )


def settled(run: StreamsRun) -> bool:
    """Return whether every task is processed, nothing warms up, and no rebalance is on its way."""
    return run.quiet and run.processed == run.tasks.sources.keys() and not run.warming


def carry_out(run: StreamsRun, plan: Plan) -> Callable[[], bool]:
    """Begin a plan, and return what says whether all of it was done."""
    waiting = list(plan.restart)
    if plan.rebalance:
        run.rebalance()
    for name in plan.stop:
        run.stop(name, leave_group=plan.leave_group)
    for name in plan.kill:
        run.kill(name, keep_state=plan.keep_state)
    like = list(run.instances.values())[-1]
    for number in range(1, plan.add + 1):
        name = f"new-{number}"
        run.add(name, new_process(run, number), like.thread_count, tags=like.tags, rack=like.rack)
        run.start(name)

    def stop(name: str) -> None:
        run.stop(name, leave_group=plan.leave_group)
        if not plan.keep_state:
            run.instances[name].lose_states()
        run.time.after(plan.down_ms, lambda: run.start(name))

    def go_on() -> None:
        back = all(run.instances[name].answers for name in plan.restart)
        if back and run.calm and run.processed == run.tasks.sources.keys():
            stop(waiting.pop(0))
        if waiting:
            run.time.after(_LOOK_MS, go_on)

    if plan.at_once:
        while waiting:
            stop(waiting.pop(0))
    elif waiting:
        go_on()

    def done() -> bool:
        return not waiting and all(run.instances[name].answers for name in plan.restart)

    return done


def new_process(run: StreamsRun, number: int) -> ProcessId:
    """Return a process id that nobody has. A real one is drawn at random: any order may come.

    These are spread over the order of those that there are, so that one isn't always the first.
    """
    taken = {instance.process for instance in run.instances.values()}
    candidate = (0x9E3779B97F4A7C15F39CC0605CEDC834 * number) % (1 << 128)
    while ProcessId.of(candidate) in taken:
        candidate += 1
    return ProcessId.of(candidate)


def _what_goes_round(run: StreamsRun) -> str:
    """Describe what the last minutes of a story that doesn't end were spent with."""
    last: dict[str, int] = {}
    for mark in run.line.marks[-1_000:]:
        last[mark.kind] = last.get(mark.kind, 0) + 1
    kinds = ", ".join(f"{count} x {kind}" for kind, count in sorted(last.items()))
    without = sorted(run.tasks.sources.keys() - run.processed)
    named = ", ".join(run.stage.names[task] for task in without[:5])
    still = f"; nobody processes {named}" if without else ""
    return f"of the last {min(len(run.line.marks), 1_000)} happenings: {kinds}{still}"
