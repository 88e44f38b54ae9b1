"""Stories told in one place: an application, what happens to it, and its drawn time line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from caughtup.models.assignment.configs import Configs
from caughtup.models.ids import ProcessId
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.streams.run import StreamsRun
from caughtup.models.simulation.streams.topology import Changelog, SimulatedApplication, uniform
from caughtup.models.simulation.time_line import TimeLineFigures, draw, figures, letters_of

SECOND, MINUTE = 1_000, 60_000
#: Until then the instances that a story begins with have joined and restored all.
SETTLED_MS = 5 * MINUTE
#: Nothing but restoring and configs takes time that shows in a story's drawing.
PROMPT = Timings(heartbeat_interval_ms=100, poll_ms=1, request_ms=1, decide_ms=1)


def application(stateful: int, stateless: int = 0, **changes: Any) -> SimulatedApplication:
    """An application whose states have 10,000 offsets, of which a thread restores 1,000 a second."""
    subtopologies, partitions, changelogs = uniform(stateful, stateless, Changelog(10_000))
    configs = changes.pop("configs", {})
    return replace(
        SimulatedApplication(
            subtopologies, partitions, changelogs, restore_per_second=1_000, timings=PROMPT
        ),
        configs=Configs(**{"probing_rebalance_interval_ms": MINUTE, **configs}),
        **changes,
    )


def running(
    application: SimulatedApplication, clients: Iterable[str], threads: int = 1
) -> StreamsRun:
    """Start clients at once, and run until all is calm; process ids follow their names' order."""
    run = StreamsRun(application)
    for client in clients:
        join(run, client, threads)
    run.time.run(SETTLED_MS)
    return run


def join(run: StreamsRun, client: str, threads: int = 1) -> None:
    """Add a client, whose process id is by its first letter, and start it."""
    run.add(client, ProcessId(0, ord(client[0])), threads)
    run.start(client)


def later(run: StreamsRun, after_ms: int, call: Callable[[], None]) -> None:
    """Let something happen so long after the clients have settled."""
    run.time.at(SETTLED_MS + after_ms, call)


def told(run: StreamsRun, lasting_ms: int, step_ms: int) -> tuple[list[str], TimeLineFigures]:
    """Run for so long after the clients had settled; return the drawing and the figures."""
    until_ms = SETTLED_MS + lasting_ms
    run.time.run(until_ms)
    tasks = sorted(map(str, run.tasks.sources))
    spans = run.line.spans(until_ms)
    drawn = draw(
        spans,
        tasks,
        letters_of(run.instances),
        from_ms=SETTLED_MS,
        until_ms=until_ms,
        step_ms=step_ms,
    )
    return drawn, figures(spans, run.line.marks, tasks, from_ms=SETTLED_MS, until_ms=until_ms)
