"""The shown values of a Kafka Streams application: its last decision, tasks and configs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from math import isfinite

from caughtup.models.assignment.decision import MovementKind
from caughtup.models.copies.catch_up_rates import SOURCES
from caughtup.models.copies.watch import CopyWatch
from caughtup.models.decisions.application import Application, PastGeneration
from caughtup.models.decisions.life import DecidedGeneration
from caughtup.models.decisions.rebalancing_cost import MembershipChange
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.faults import SetAside
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import natural_order
from caughtup.models.learning.provenance import known_configs
from caughtup.models.recent.happenings import named
from caughtup.models.records.config_lines import ChangelogsLine, ConfigLine, Line
from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Json,
    Part,
    as_json,
    changed,
    or_absent,
    or_none,
)
from caughtup.models.records.lag_lines import CopyLine
from caughtup.models.records.recommendations import (
    KnownConfigRecord,
    LeaderRecord,
    RecommendedMovement,
)
from caughtup.models.shown.lag import copy_line
from caughtup.models.state.cluster import ClusterState
from caughtup.models.verdicts import DECISIONS

#: Movements that are complete once their destination runs the task.
_AT_ONCE = frozenset(
    (MovementKind.ACTIVE, MovementKind.COLD, MovementKind.SWAP, MovementKind.STATELESS)
)


class ClientLine(Part):
    """A process of an application; ``capacity``: its stream threads."""

    process: str
    name: str
    client_ids: list[str]
    host: str
    capacity: int
    leader: bool


class TaskLine(Part):
    """A task and its copies."""

    task: str
    stateful: bool
    copies: list[CopyLine]


class ProbingLine(Part, omit_defaults=True):
    """The next probing rebalance: whether it is scheduled, and whether it is worthwhile.

    ``carried_by``: the client that asks for it. The other fields are those of ``Probing``; infinite
    times are absent.
    """

    scheduled: bool
    due_ms: int | None = None
    carried_by: str | None = None
    worthwhile_now: bool | None = None
    worthwhile_at_ms: int | None = None
    why: str | None = None
    overdue_ms: int | None = None
    fired: int | None = None
    needless: int | None = None
    endless: bool | None = None
    plan_seconds: float | None = None
    plan_seconds_worthwhile: float | None = None


class ChangeLine(Part, omit_defaults=True):
    """The last membership change, in words, and its cost (``MembershipChange``)."""

    at_ms: int
    text: str
    copies: int
    rebalances: int
    waits: int
    waited_seconds: float
    at_rest_ms: int | None = None


class RatesLine(Part, omit_defaults=True):
    """The number of copies by the source of their rate, and since when Spark's stream is down."""

    spark: int | None = None
    own: int | None = None
    silent_since_ms: int | None = None


class ApplicationView(Part, kw_only=True):
    """A whole application, for the page.

    ``exact``, ``leader_movements`` and ``recommendation`` are of the last decision, the latter
    without its assignment and scenario, which are long. ``pending``: the recommended movements that
    aren't complete. ``by_coordinator``: the group coordinator assigns the tasks (KIP-1071), so that
    there is no decision of a leader; ``generation`` is the group's epoch then.
    """

    group: str
    generation: int
    as_of_ms: int
    acceptable_recovery_lag: int
    configs: list[ConfigLine]
    clients: list[ClientLine]
    tasks: list[TaskLine]
    probing: ProbingLine
    exact: LeaderRecord | Absent = ABSENT
    leader_movements: Sequence[RecommendedMovement] | Absent = ABSENT
    recommendation: Json | Absent = ABSENT
    pending: Sequence[RecommendedMovement] | Absent = ABSENT
    change: ChangeLine | Absent = ABSENT
    set_aside: list[SetAside]
    rates: RatesLine
    history: list[PastGeneration]
    by_coordinator: bool | Absent = ABSENT

    @property
    def behind(self) -> int:
        """The number of copies that aren't caught up."""
        copies = (copy for task in self.tasks for copy in task.copies)
        return sum((or_none(copy.verdict) or "caught_up") != "caught_up" for copy in copies)

    @property
    def result(self) -> str:
        """The result of comparing the last decision with the leader's."""
        return DECISIONS.unassessed if isinstance(self.exact, Absent) else self.exact.result

    @property
    def probing_due_ms(self) -> int | None:
        """When the next probing rebalance is due (ms)."""
        return self.probing.due_ms


def application_view(
    state: ClusterState, group: str, application: Application, now_ms: int
) -> Generator[None, None, ApplicationView]:
    """Return a Streams application as of its last decided generation.

    The caller may do other work between two steps.
    """
    decided, watch = application.decided, state.watches.get(group)
    generation = decided.generation if decided else application.newest
    clients, rows = _clients(generation), state.task_rows(group)
    yield
    tasks = yield from _tasks(group, rows, decided, watch)
    change = application.change
    view = ApplicationView(
        group=group,
        generation=application.newest.generation,
        as_of_ms=generation.as_of_ms,
        acceptable_recovery_lag=state.applications.config(group, "acceptable.recovery.lag"),
        configs=[changed(line, group=ABSENT) for line in config_lines(state, group)],
        clients=clients,
        tasks=tasks,
        probing=_probing(application.newest, watch),
        change=ABSENT if change is None else change_line(change),
        set_aside=state.set_aside.of(group),
        rates=rates_line(state, watch, now_ms),
        history=list(reversed(application.history)),
    )
    if decided is not None:
        view.exact = decided.exact.leader
        view.leader_movements = or_absent(decided.leader_movements)
        if (recommended := decided.recommendation) is not None:
            inputs = changed(recommended.inputs, scenario=ABSENT)
            view.recommendation = as_json(changed(recommended, assignment=ABSENT, inputs=inputs))
            view.pending = pending_movements(decided, rows)
    return view


def pending_movements(
    decided: DecidedGeneration, copies: Iterable[TaskCopy]
) -> list[RecommendedMovement]:
    """Return the recommended movements that aren't complete."""
    runs = {(str(copy.task), copy.process) for copy in copies if copy.role == "active"}
    return [
        one
        for one in decided.movements
        if one.kind not in _AT_ONCE or (one.task, one.to) not in runs
    ]


def change_line(change: MembershipChange) -> ChangeLine:
    """Return the line of a membership change."""
    causes = named(Counter(change.joined), "joined"), named(Counter(change.left), "left")
    return ChangeLine(
        change.at_ms,
        ", ".join(cause for cause in causes if cause),
        change.copies,
        change.rebalances,
        change.waits,
        change.waited_ms / 1000,
        change.at_rest_ms,
    )


def _probing(newest: StreamsGeneration, watch: CopyWatch | None) -> ProbingLine:
    due = newest.next_rebalance()
    line = ProbingLine(due is not None)
    if due is not None:
        line.due_ms, line.carried_by = due[0], newest.clients[due[1].process].name
    if watch is None or (probing := watch.probing) is None:
        return line
    line.worthwhile_now, line.worthwhile_at_ms = probing.worthwhile_now, probing.worthwhile_at_ms
    line.why, line.overdue_ms = probing.reason, probing.overdue_ms
    line.fired, line.needless, line.endless = probing.fired, probing.needless, probing.endless
    line.plan_seconds = probing.plan_seconds
    worthwhile = probing.plan_seconds_worthwhile
    if worthwhile is not None and isfinite(worthwhile):
        line.plan_seconds_worthwhile = worthwhile
    return line


def _clients(generation: StreamsGeneration) -> list[ClientLine]:
    return [
        ClientLine(
            str(process),
            client.name,
            [member.client_id for member in client.members],
            client.members[0].host,
            client.capacity,
            any(member.member_id == generation.leader for member in client.members),
        )
        for process, client in sorted(
            generation.clients.items(), key=lambda item: (natural_order(item[1].name), item[0])
        )
    ]


def _tasks(
    group: str,
    copies: list[TaskCopy],
    decided: DecidedGeneration | None,
    watch: CopyWatch | None,
) -> Generator[None, None, list[TaskLine]]:
    by_task: dict[str, list[CopyLine]] = {}
    for copy in copies:
        line = copy_line(group, copy, watch)
        by_task.setdefault(line.task, []).append(line)
        yield
    stateful = {str(task) for task in decided.inputs.ends} if decided else set()
    return [TaskLine(task, task in stateful, found) for task, found in by_task.items()]


def rates_line(state: ClusterState, watch: CopyWatch | None, now_ms: int) -> RatesLine:
    """Return the line of the sources of rates."""
    counts = Counter[str]() if watch is None else watch.rate_sources()
    silent = state.rates.live(now_ms) is False
    return RatesLine(
        **{source: counts[source] for source in SOURCES if source in counts},
        silent_since_ms=state.rates.newest_ms if silent else None,
    )


def configs_of(state: ClusterState, group: str) -> tuple[KnownConfigRecord, ...]:
    """Return each config as the newest decision has it, else as learned until now."""
    application = state.applications.get(group)
    decided = None if application is None else application.decided
    if decided is not None and decided.inputs.configs:
        return decided.inputs.configs
    return known_configs(state.applications.learned_of(group))


def config_lines(state: ClusterState, group: str) -> list[ConfigLine]:
    """Return a line for each config of an application."""
    return [ConfigLine.of(one, group) for one in configs_of(state, group)]


def application_lines(state: ClusterState, group: str) -> Iterator[Line]:
    """Yield a line of an application's changelogs and one for each of its configs."""
    yield _changelogs(state, group)
    yield from config_lines(state, group)


def _changelogs(state: ClusterState, group: str) -> ChangelogsLine:
    line = ChangelogsLine(group, from_one_generation(state, group))
    application = state.applications.get(group)
    decided = None if application is None else application.decided
    if decided is None:
        return line
    found: dict[str, set[str]] = {}
    inputs = decided.inputs
    for task, one in sorted(inputs.scenario.tasks.items()):
        found.setdefault(str(task.subtopology), set()).update(p.topic for p in one.changelogs)
    if any(found.values()):
        line.changelogs = {number: sorted(topics) for number, topics in found.items()}
        line.changelogs_from = inputs.changelogs_from
        is_match = decided.exact.leader.result == "match"
        line.changelogs_known = is_match or inputs.changelogs_from != "inferred"
    return line


def from_one_generation(state: ClusterState, group: str) -> bool:
    """Return whether a group's configs were learned from its newest generation only.

    That is so if no service has stored learned configs, or their topic can't be read.
    """
    application = state.applications.get(group)
    since = state.applications.learned_of(group).since
    return application is not None and since == application.newest.generation
