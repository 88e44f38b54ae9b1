"""Actions on an application, such as adding, stopping or restarting instances, and their result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from caughtup.models.ids import ProcessId
from caughtup.models.simulation.streams.run import RunningInstance, StreamsRun
from caughtup.models.simulation.streams.topology import SimulatedApplication
from caughtup.models.simulation.time_line import Mark, TimeLineFigures, TimeSpan, figures
from caughtup.models.simulation.virtual_time import EndlessError

#: The interval at which a rolling restart checks whether all tasks are processed, in ms.
_LOOK_MS = 1_000
#: The most time, in ms, and events of a simulation: without rest by then, it never comes to rest.
MOST_MS = 7 * 24 * 3_600_000
MOST_EVENTS = 2_000_000


@dataclass(frozen=True, slots=True)
class PlannedActions:
    """Actions, in this order, all of them at the start of the simulation.

    ``add`` instances like the last one are started, those of ``stop`` are stopped in order and
    those of ``kill`` killed. Those of ``restart`` are stopped and started again ``down_ms`` later:
    one after the other, each once every task is processed again and no rebalance goes on, or
    ``at_once``. ``keep_state``: restarted or killed instances find their states again.
    ``leave_group``: stopped instances leave the group. ``rebalance``: a member requests one.
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
class SimulationResult:
    """The end of a simulation. ``endless`` says what repeats, if it didn't come to rest."""

    figures: TimeLineFigures
    spans: tuple[TimeSpan, ...]
    marks: tuple[Mark, ...]
    tasks: tuple[str, ...]
    clients: tuple[str, ...]
    until_ms: int
    offsets_restored: int
    endless: str | None = None


def simulate(
    application: SimulatedApplication,
    running: Sequence[RunningInstance],
    plan: PlannedActions,
    *,
    generation: int = 1,
    epoch_ms: int = 0,
    most_ms: int = MOST_MS,
    between_steps: Callable[[], None] = lambda: None,
) -> SimulationResult:
    """Carry actions out on an application as it runs, until it is at rest.

    ``epoch_ms``: the leader's clock at the start. ``between_steps`` is called every ten simulated
    seconds, and may raise to end the simulation. Raises ScenarioError as assignors do.
    """
    run = StreamsRun(application, epoch_ms=epoch_ms)
    run.resume(running, generation)
    carried_out = carry_out(run, plan)
    endless = None
    try:
        run.time.run(min(_LOOK_MS, most_ms), MOST_EVENTS)  # new instances have joined by then
        while run.time.now_ms < most_ms and not (carried_out() and settled(run)):
            between_steps()
            run.time.run(min(run.time.now_ms + 10 * _LOOK_MS, most_ms), MOST_EVENTS)
        if not settled(run):
            endless = _what_repeats(run)
    except EndlessError as error:
        endless = f"{error}; {_what_repeats(run)}"
    until_ms = max(run.time.now_ms, 1)
    spans = tuple(run.line.spans(until_ms))
    tasks = tuple(name for _, name in sorted(run.shared.names.items()))
    marks = tuple(run.line.marks)
    return SimulationResult(
        figures=figures(spans, marks, tasks, from_ms=0, until_ms=until_ms),
        spans=spans,
        marks=marks,
        tasks=tasks,
        clients=tuple(run.instances),
        until_ms=until_ms,
        offsets_restored=round(run.shared.to_restore),
        endless=endless,
    )


def settled(run: StreamsRun) -> bool:
    """Return whether every task is processed, nothing warms up, and no rebalance is planned."""
    return run.quiet and run.processed == run.tasks.sources.keys() and not run.warming


def carry_out(run: StreamsRun, plan: PlannedActions) -> Callable[[], bool]:
    """Begin the actions; return a function that says whether all of them are done."""
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
    """Return an unused process id. A real one is random, so that any order is possible.

    These are spread over the whole range, so that a new one isn't always the first.
    """
    taken = {instance.process for instance in run.instances.values()}
    candidate = (0x9E3779B97F4A7C15F39CC0605CEDC834 * number) % (1 << 128)
    while ProcessId.of(candidate) in taken:
        candidate += 1
    return ProcessId.of(candidate)


def _what_repeats(run: StreamsRun) -> str:
    """Return what an endless simulation kept repeating in its last minutes, in words."""
    last: dict[str, int] = {}
    for mark in run.line.marks[-1_000:]:
        last[mark.kind] = last.get(mark.kind, 0) + 1
    kinds = ", ".join(f"{count} x {kind}" for kind, count in sorted(last.items()))
    without = sorted(run.tasks.sources.keys() - run.processed)
    named = ", ".join(run.shared.names[task] for task in without[:5])
    still = f"; no instance processes {named}" if without else ""
    return f"of the last {min(len(run.line.marks), 1_000)} events: {kinds}{still}"
