"""Two Connect stories on real workers: ``python -m tests.integration.simulation.connect``.

A worker leaves for good, and one comes back before the delay is over: who runs what then, and for
how long nobody did.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich import print as shown

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import read_topic
from caughtup.demo.connect.group_log import GroupLog, LoggedGeneration
from caughtup.demo.connect.workers import ConnectWorkers
from caughtup.demo.story.connect.cases import CASES, CONNECTORS
from caughtup.demo.story.connect.play import SixCases
from caughtup.demo.story.connect.rows import CaseRow
from caughtup.models.connect.decision import owned_after
from caughtup.models.connect.work import written
from caughtup.models.records.connect import Status, decode_status
from caughtup.models.simulation.connect import ConnectRun
from caughtup.models.simulation.time_line import Activity, standing_still
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks

BEFORE = ("the first worker joins", "two workers join one")
STORIES = ("a worker leaves", "a worker bounces")
_BEGIN_MS, _AFTER_MS = 10_000, 60_000


@dataclass(frozen=True)
class Outcome:
    """For how long nobody ran a connector or task (ms), and who did in the end, by name."""

    idle_ms: Mapping[str, int]
    owners: Mapping[str, str]


@dataclass(frozen=True)
class Told:
    """A story as it really was, and as it was simulated."""

    name: str
    real: Outcome
    simulated: Outcome


def told(
    name: str, rows: Sequence[CaseRow], log: GroupLog, statuses: Sequence[Ran], delay_ms: int
) -> Told:
    """Compare a story's rounds and statuses with the same story in virtual time."""
    first, last = rows[0].logged, rows[-1].logged
    before = [one for one in log.generations() if one.number < first.number][-1]
    owned = {name: work for name, work in _owned(before).items() if work}
    (gone,) = set(before.names) - set(first.names)
    mine = [one for one in statuses if one.at_ms >= before.written_ms]
    left_ms = min(one.at_ms for one in mine if one.state == "UNASSIGNED")
    until_ms = last.written_ms + 5_000
    idle, owners = {}, {}
    for item in sorted({item for work in owned.values() for item in written(work)}):
        own = [one for one in mine if one.item == item and left_ms <= one.at_ms <= until_ms]
        stops = [one.at_ms for one in own if one.state == "UNASSIGNED"]
        runs = [one.at_ms for one in own if one.state == "RUNNING"]
        idle[item] = max(runs) - min(stops) if stops and runs else 0
        owners[item] = next(
            (name for name, work in _owned(last).items() if item in written(work)), ""
        )
    back = next((row.logged.written_ms for row in rows[1:] if gone in row.logged.names), None)
    run = ConnectRun(CONNECTORS, max_delay_ms=delay_ms)
    run.resume(owned, before.leader, before.number)
    run.time.at(_BEGIN_MS, lambda: run.stop(gone))
    if back is not None:
        run.time.at(_BEGIN_MS + back - left_ms, lambda: run.start(gone))
    run.time.run(_BEGIN_MS + last.written_ms - left_ms + _AFTER_MS)
    return Told(name, Outcome(idle, owners), _simulated(run))


def _simulated(run: ConnectRun) -> Outcome:
    until_ms = run.time.now_ms
    spans = run.line.spans(until_ms)
    still = standing_still(spans, run.items, 0, until_ms)
    return Outcome(
        {item: sum(end - start for start, end in pauses) for item, pauses in still.items()},
        {
            one.task: one.client
            for one in spans
            if one.end_ms == until_ms and one.activity is Activity.PROCESSING
        },
    )


def _owned(logged: LoggedGeneration) -> dict[str, ConnectorsAndTasks]:
    """Return what each worker of a generation has when it has done as it was told."""
    return {
        worker.client_id: owned_after(worker.owns, worker.assignment)
        if worker.assignment
        else worker.owns
        for worker in logged.generation.workers.values()
    } or {"": NOTHING}


@dataclass(frozen=True)
class Ran:
    """What a worker said of a connector or task, and when (ms)."""

    at_ms: int
    item: str
    state: str


def statuses_of(cluster: EmbeddedCluster, topic: str) -> list[Ran]:
    """Read what workers said of connectors and tasks, in its order."""
    found = []
    for record in read_topic(cluster, topic):
        status = decode_status(record.key, record.value)
        if isinstance(status, Status):
            found.append(Ran(record.timestamp_ms, str(status.subject), status.state))
    return sorted(found, key=lambda one: one.at_ms)


def rows_of(stories: Sequence[Told]) -> Iterator[str]:
    """Write the table as docs/measured.md has it."""
    yield "| story | connector or task | s nobody ran it, real/simulated | who then |"
    yield "|---|---|---|---|"
    for one in stories:
        for item, idle_ms in one.real.idle_ms.items():
            simulated = one.simulated.idle_ms[item]
            if idle_ms or simulated:
                owner, played = one.real.owners[item], one.simulated.owners.get(item, "nobody")
                yield (
                    f"| {one.name} | {item} | {idle_ms / 1_000:.1f}/{simulated / 1_000:.1f} | "
                    f"{owner if owner == played else f'{owner}/{played}'} |"
                )


def stories(delay_seconds: int) -> Iterator[Told]:
    """Start workers, play the stories, and yield each as it was and as it was simulated."""
    rows: list[CaseRow] = []
    with (
        EmbeddedCluster(nodes=1) as cluster,
        ConnectWorkers(cluster, "connect", max_delay_ms=1_000 * delay_seconds) as workers,
        GroupLog(cluster, workers.group) as log,
    ):
        cases = SixCases(cluster, workers, log, shown, rows.append)
        cases.set_up()
        cases.play({name: CASES[name] for name in BEFORE})
        for name in STORIES:
            rows.clear()
            cases.play({name: CASES[name]})
            statuses = statuses_of(cluster, workers.status_topic)
            yield told(name, rows, log, statuses, 1_000 * delay_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay-seconds", type=int, default=40)
    given = parser.parse_args()
    found: list[Told] = []
    for one in stories(given.delay_seconds):
        found.append(one)
        print("\n".join(rows_of(found)), flush=True)
    print("load", *(f"{one:.1f}" for one in os.getloadavg()))


if __name__ == "__main__":
    main()
