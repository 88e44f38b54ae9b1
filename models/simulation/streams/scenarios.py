"""A Kafka Streams application of a scenario, as the start of a simulation."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.assignment.client_state import RUNNING, UNKNOWN
from caughtup.models.assignment.compact import CompactScenario
from caughtup.models.assignment.configs import Configs
from caughtup.models.groups.generation import client_name
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.partition_assignor.rebalance import TopicsInfo
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.streams.run import RunningInstance, RunningThread
from caughtup.models.simulation.streams.topology import Changelog, SimulatedApplication

#: A rate in offsets a second at which restoring takes no time, to show all other delays.
AT_ONCE = 1e15


def application_of(
    sources: Mapping[str, int],
    scenario: CompactScenario,
    known_ends: Mapping[TaskId, int],
    *,
    assignor: str,
    configs: Configs,
    timings: Timings,
    writes: Mapping[TaskId, float],
    restore_per_second: float,
) -> SimulatedApplication:
    """Return the application of a scenario, with what was read of it since.

    ``sources`` are its source topics, with the subtopology of each; ``known_ends`` are end offset
    sums that were read since. ``restore_per_second``: offsets a second that a stream thread
    restores.
    """
    ends = {task: max(_end(scenario, task), known_ends.get(task, 0)) for task in scenario.tasks}
    topics: dict[int, set[str]] = {}
    widths: dict[str, int] = {}
    stateful: dict[int, set[str]] = {}
    for topic, subtopology in sources.items():
        topics.setdefault(subtopology, set()).add(topic)
        widths[topic] = 0
    for task, one in scenario.tasks.items():
        if one.stateful:
            own = {log.topic for log in one.changelogs} - sources.keys()
            stateful.setdefault(task.subtopology, set()).update(own)
        for topic in topics.get(task.subtopology, ()):
            widths[topic] = max(widths[topic], task.partition + 1)
    return SimulatedApplication(
        subtopologies={
            number: TopicsInfo(
                tuple(sorted(own)),
                tuple(sorted(stateful[number] or {f"changelogs of {number}"}))
                if number in stateful
                else (),
            )
            for number, own in topics.items()
        },
        partitions=widths,
        changelogs={
            task: Changelog(ends[task], writes.get(task, 0.0))
            for task in scenario.tasks
            if task.subtopology in stateful
        },
        restore_per_second=restore_per_second,
        assignor=assignor,
        configs=configs,
        timings=timings,
        replicas=scenario.replicas,
    )


def instances_of(scenario: CompactScenario) -> tuple[RunningInstance, ...]:
    """Return a scenario's instances; the threads of each share the tasks of its process."""
    names = _names(scenario)
    return tuple(_instance(scenario, process, names[process]) for process in sorted(names))


def _instance(scenario: CompactScenario, process: ProcessId, name: str) -> RunningInstance:
    client = scenario.clients[process]
    active, standby = sorted(client.previous_active), sorted(client.previous_standby)
    sums = {}
    for task, one in scenario.tasks.items():
        reached = _reached(scenario, process, task) if one.stateful else None
        if reached is not None:
            sums[task] = reached
    threads = tuple(
        RunningThread(tuple(active[n :: client.capacity]), tuple(standby[n :: client.capacity]))
        for n in range(client.capacity)
    )
    return RunningInstance(name, process, threads, sums, tags=client.tags, rack=client.rack)


def _reached(scenario: CompactScenario, process: ProcessId, task: TaskId) -> int | None:
    """Return the offset sum of a copy that isn't a running active; None without a copy."""
    lag = scenario.lag_of(process, task)
    client = scenario.clients[process]
    end = _end(scenario, task)
    if task in client.previous_active and (lag in {None, RUNNING, UNKNOWN} or lag == 0):
        return None
    if lag is None or lag == UNKNOWN or lag >= end:
        return 0 if task in client.previous_active | client.previous_standby else None
    return end - max(lag, 0)


def _end(scenario: CompactScenario, task: TaskId) -> int:
    """Return a task's end offset sum: the greatest lag of any client."""
    lags = (client.lags.get(task, 0) for client in scenario.clients.values())
    return max(0, scenario.greatest_lags.get(task, 0), *lags)


def sources_of(scenario: CompactScenario) -> dict[str, int]:
    """Return each source topic's subtopology, with made-up topics where the scenario lacks them."""
    found: dict[str, int] = {}
    for task, one in scenario.tasks.items():
        topics = {source.topic for source in one.sources} or {f"sources of {task.subtopology}"}
        found.update(dict.fromkeys(topics, task.subtopology))
    return found


def _names(scenario: CompactScenario) -> dict[ProcessId, str]:
    """Return a name for each process: its clients' if the scenario has it, else its own id."""
    names: dict[ProcessId, str] = {}
    for process in scenario.clients:
        ids = scenario.client_ids.get(process)
        name = client_name(ids[0]) if ids else str(process)
        names[process] = name if name not in names.values() else str(process)
    return names
