"""Play the document's six cases on real workers, round by round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.connect.group_log import GroupLog, LoggedGeneration
from caughtup.demo.connect.workers import ConnectWorkers
from caughtup.demo.story.connect.cases import CASES, EVERYONE, SETTLED, CaseRound
from caughtup.demo.story.connect.rows import CaseRow, shares
from caughtup.models.errors import CaughtupError

_CONNECTORS = "org.apache.kafka.connect.file.FileStream"


def file_source(file: Path, topic: str) -> dict[str, str]:
    """Return the configuration of a source that writes a file's lines to a topic, in one task."""
    return {
        "connector.class": f"{_CONNECTORS}SourceConnector",
        "file": str(file),
        "topic": topic,
        "tasks.max": "1",
    }


def file_sink(file: Path, topic: str, tasks: int) -> dict[str, str]:
    """Return the configuration of a sink that appends a topic's records to a file, in its tasks."""
    return {
        "connector.class": f"{_CONNECTORS}SinkConnector",
        "file": str(file),
        "topics": topic,
        "tasks.max": str(tasks),
    }


#: The worker that creates the connectors before the first case.
FIRST = "W0"
_SETTLED_SHARES = Counter(
    (sum("-" not in item for item in items), sum("-" in item for item in items))
    for items in map(str.split, SETTLED.values())
)
_ROUND_SECONDS = 60.0


class SixCases:
    """Plays the cases one after another on workers W1, W2 and W3.

    Each starts from the state after the previous one: the document's W1 is the present leader, its
    W2 another worker with a connector. ``tell`` is called with each round once it is in the log,
    ``say`` with each step.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        workers: ConnectWorkers,
        log: GroupLog,
        say: Callable[[str], None],
        tell: Callable[[CaseRow], None],
    ) -> None:
        self._cluster = cluster
        self._workers = workers
        self._log = log
        self._say = say
        self._tell = tell
        self._seen = 0
        self._rows: list[CaseRow] = []

    def set_up(self) -> None:
        """Configure A, a sink of two tasks, and B, a source of one. Raises CaughtupError.

        A separate worker does that, and leaves: the document begins with connectors and no workers.
        """
        topic = f"{self._workers.group}-lines"
        create_topics(self._cluster, {topic: 2})
        lines, written = (self._workers.directory / f"{topic}-{end}" for end in ("in", "out"))
        lines.write_text("".join(f"line {number}\n" for number in range(100)))
        self._workers.start(FIRST)
        self._workers.wait_healthy(FIRST)
        self._workers.configure("A", file_sink(written, topic, tasks=2))
        self._workers.configure("B", file_source(lines, topic))
        self._next("it runs both connectors", lambda one: shares(one) == Counter([(2, 3)]))
        self._workers.leave(FIRST)

    def play(self, cases: Mapping[str, tuple[CaseRound, ...]] = CASES) -> list[CaseRow]:
        """Play cases in their order and return their rounds. Raises CaughtupError."""
        played: set[str] = set()
        for number, (name, steps) in enumerate(cases.items(), 1):
            roles = dict(zip(EVERYONE, EVERYONE, strict=True))
            if steps[0].number >= "3":
                roles = self._settle()
            self._say(f"[bold]case {number}: {name}[/]")
            for step in steps:
                # The second case begins with the first one's only round.
                if step.number not in played:
                    played.add(step.number)
                    self._play(step, roles)
        return self._rows

    def _play(self, step: CaseRound, roles: Mapping[str, str]) -> None:
        names = {roles[role] for role in step.workers}
        there = set(self._workers.names)
        for name in sorted(there - names):
            self._workers.leave(name)
        if names - there:
            self._workers.start_together(*sorted(names - there))
        logged = self._next(
            step.event, lambda one: set(one.names) == names, self._workers.max_delay_ms / 1000
        )
        if step.decided.delay_ms and not logged.generation.delay_ms:
            seconds = self._workers.max_delay_ms / 1000
            raise CaughtupError(
                "demo_failed",
                f"a worker took longer than {seconds:.0f} s to come back; a longer delay is needed",
            )
        row = CaseRow(step, roles, logged)
        self._rows.append(row)
        self._tell(row)

    def _settle(self) -> dict[str, str]:
        """Wait until all three workers share the work evenly; return the document's roles."""
        missing = sorted(set(EVERYONE) - set(self._workers.names))
        if missing:
            self._say(f"{' and '.join(missing)} comes back, and all share the work again")
            self._workers.start_together(*missing)
        last = self._next("all share the work", _is_settled, first=0)
        has_connector = {
            worker.client_id: bool(worker.owns.connectors)
            for worker in last.generation.workers.values()
        }
        followers = sorted(set(EVERYONE) - {last.leader}, key=lambda name: not has_connector[name])
        return dict(zip(EVERYONE, (last.leader, *followers), strict=True))

    def _next(
        self,
        what: str,
        is_it: Callable[[LoggedGeneration], bool],
        more_seconds: float = 0.0,
        *,
        first: int = 1,
    ) -> LoggedGeneration:
        """Wait for a generation after the last awaited one, or for that one with ``first`` 0."""
        seconds = _ROUND_SECONDS + more_seconds
        found = self._log.wait(what, is_it, seconds, since=self._seen + first)
        self._seen = found.number
        return found


def _is_settled(one: LoggedGeneration) -> bool:
    revoked = any(
        worker.assignment.revoked for worker in one.generation.workers.values() if worker.assignment
    )
    return not revoked and not one.generation.delay_ms and shares(one) == _SETTLED_SHARES
