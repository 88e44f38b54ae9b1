"""The inputs of an assignor, gathered from the records of one generation.

The result is a scenario, by which any decision can be made again, and which parts of it were
inferred, assumed, or are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from caughtup.models.assignment.compact import CompactScenario, CompactTask
from caughtup.models.assignment.scenario import Client
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.histories.rebalance_ends import ListedBounds
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import LATEST_OFFSET, LONG_MAX, UNKNOWN_OFFSET_SUM, task_lag
from caughtup.models.parameters import DEFAULTS, TAGS, ApplicationParameters
from caughtup.models.partition_assignor.rebalance import (
    ClientMetadata,
    MemberSubscription,
    clients_of,
)
from caughtup.models.records.recommendations import KnownConfigRecord
from caughtup.models.tasks.changelogs import (
    SourceCommits,
    changelog_partitions,
    end_offset_sums,
    find_changelogs,
)
from caughtup.models.tasks.placements import possible_changelogs, widest_bounds

#: The assignor whose decisions are recommended.
RECOMMENDED = "minimal_movement"
#: How far (ms) a broker's clock may be ahead of ours when end offsets at a time are looked up.
CLOCK_ALLOWANCE_MS = 1_000
#: How long (ms) a leader may take from the join phase to its record, if only our clock can tell.
LONGEST_DECISION_MS = 30_000


@dataclass(frozen=True, slots=True)
class GenerationInputs:
    """A scenario, and what is uncertain about it.

    ``scenario`` names the recommending assignor, and its greatest lags are those of clients without
    state. ``ends``: each stateful task's end offset sum, None if it has no bounds. ``unknown``: why
    the leader may have decided by other inputs; empty when all that matter are known. ``inferred``
    and ``assumed`` name inputs that weren't read from records or settings. ``tentative``: a topic
    whose partitions aren't known yet may be a changelog. ``projected``: the scenario is the next
    rebalance's. ``contradicted``: configs that differ in the settings and in the application or in
    its leaders' decisions, both of which count more. ``configs``: what is known of each config,
    empty before they are looked up. ``placed``: see ``Changelogs``. ``replicas``: the rack of each
    replica by partition, None for one without; None before they are looked up.
    """

    scenario: CompactScenario
    ends: Mapping[TaskId, EndOffsetSum | None]
    unknown: tuple[str, ...]
    inferred: tuple[str, ...]
    assumed: tuple[str, ...]
    changelogs_from: str
    tentative: bool = False
    projected: bool = False
    contradicted: tuple[str, ...] = ()
    configs: tuple[KnownConfigRecord, ...] = ()
    placed: Mapping[str, int] = field(default_factory=dict)
    replicas: Mapping[TopicPartition, Sequence[str | None]] | None = None


def gather_inputs(
    generation: StreamsGeneration,
    parameters: ApplicationParameters,
    ends: EndOffsetTable,
    commits: Mapping[TopicPartition, CommitHistory],
    seen_ms: int,
    placed: Mapping[str, int] | None = None,
    listed: Mapping[TopicPartition, ListedBounds] | None = None,
) -> GenerationInputs:
    """Return the inputs by which the leader decided a generation.

    ``commits`` are the application's; ``seen_ms`` is when the generation's record was read: the
    leader listed end offsets before that and after the group's state changed. ``placed`` as for
    ``find_changelogs``. ``listed`` are bounds of end offsets that were listed while the group
    rebalanced. The scenario's lags use the upper bound of each end offset sum.
    Source: StreamsPartitionAssignor.assign.
    """
    tasks = sorted(generation.all_tasks())
    counts = ends.partition_counts()
    clients = clients_of(members_of(generation))
    sums = {process: clients[process].offset_sums for process in generation.clients}
    by_task: dict[TaskId, list[int]] = {}
    for reported in sums.values():
        for task, offset_sum in reported.items():
            by_task.setdefault(task, []).append(offset_sum)
    greatest = {task: max(0, *offset_sums) for task, offset_sums in by_task.items()}
    between_ms = _joined_after(generation.as_of_ms, seen_ms), seen_ms
    ways = possible_changelogs(
        find_changelogs(
            generation.group,
            generation.source_topics,
            counts,
            parameters.changelogs,
            {task.subtopology for task in greatest},
            placed,
        ),
        generation.source_topics,
        ends,
        greatest,
        *between_ms,
    )
    changelogs = ways[0]
    sources = SourceCommits(frozenset(generation.source_topics), commits, CLOCK_ALLOWANCE_MS)
    bounds = widest_bounds(
        [end_offset_sums(tasks, way, ends, greatest, *between_ms, sources, listed) for way in ways]
    )
    unknown = [f"member left out: {skipped}" for skipped in generation.skipped]
    unknown += [
        f"changelog {topic}: the subtopology that it belongs to" for topic in changelogs.unplaced
    ]
    unknown += _without_state(generation, bounds)
    limit = parameters.value("acceptable.recovery.lag")
    for task, bound in bounds.items():
        if bound is None:
            unknown.append(f"task {task}: its changelogs' end offsets around the rebalance")
        elif any(
            low <= limit <= high
            for low, high in unsettled_limits(by_task.get(task, ()), len(sums), bound)
        ):
            unknown.append(unsettled(task, bound))
    # A client that reported nothing of a task lags by its whole state.
    nothing = {
        task: bound.high if bound else greatest.get(task, 0) for task, bound in bounds.items()
    }
    previous = {
        process: generation.previous_active(client)
        for process, client in generation.clients.items()
    }
    scenario = CompactScenario(
        name=f"{generation.group}/{generation.generation}",
        assignor=RECOMMENDED,
        config={
            **{name: parameters.value(name) for name in sorted(DEFAULTS)},
            **({TAGS: list(parameters.tags)} if parameters.tags else {}),
        },
        tasks={
            task: CompactTask(
                task in bounds,
                tuple(generation.sources(task)),
                tuple(changelog_partitions(task, changelogs, counts)),
            )
            for task in tasks
        },
        clients={
            process: Client(
                process,
                client.capacity,
                frozenset(previous[process]),
                frozenset(t for t, s in sums[process].items() if s != LATEST_OFFSET)
                - previous[process],
                _lags(sums[process], nothing),
                dict(sorted(clients[process].tags.items())),
            )
            for process, client in generation.clients.items()
        },
        greatest_lags=nothing,
    )
    return GenerationInputs(
        scenario=scenario,
        ends=bounds,
        unknown=tuple(unknown),
        inferred=changelogs.inferred,
        assumed=parameters.assumed(
            tagged=any(client.tags for client in clients.values()),
            racked=all(client.rack is not None for client in clients.values()),
        ),
        changelogs_from=changelogs.provenance,
        tentative=changelogs.tentative,
        placed=changelogs.placed,
    )


def _joined_after(as_of_ms: int, seen_ms: int) -> int:
    """Return a time (ms, our clock) at which the leader had not listed end offsets yet.

    ``as_of_ms`` is when all members had joined, by the coordinator's clock.
    """
    if as_of_ms > seen_ms + CLOCK_ALLOWANCE_MS:  # its clock is ahead, it is unknown how much
        return seen_ms - LONGEST_DECISION_MS
    return min(as_of_ms, seen_ms) - CLOCK_ALLOWANCE_MS


def with_end_offset_sums(
    inputs: GenerationInputs,
    clients: Mapping[ProcessId, ClientMetadata],
    ends: Mapping[TaskId, int],
) -> GenerationInputs:
    """Return the inputs with exactly these end offset sums of some tasks, and the lags by them."""
    scenario = inputs.scenario
    greatest = {**scenario.greatest_lags, **ends}
    return replace(
        inputs,
        scenario=replace(
            scenario,
            clients={
                process: replace(client, lags=_lags(clients[process].offset_sums, greatest))
                for process, client in scenario.clients.items()
            },
            greatest_lags=greatest,
        ),
        ends={**inputs.ends, **{task: EndOffsetSum(end, end) for task, end in ends.items()}},
    )


def _lags(offset_sums: Mapping[TaskId, int], ends: Mapping[TaskId, int]) -> dict[TaskId, int]:
    """Return a client's lags that differ from the end offset sum, by which others lag."""
    return {
        task: lag
        for task, offset_sum in sorted(offset_sums.items())
        if task in ends and (lag := task_lag(offset_sum, ends[task])) != ends[task]
    }


def members_of(generation: StreamsGeneration) -> tuple[MemberSubscription, ...]:
    """Return the members as the leader read them, in the order in which it received them."""
    by_id = {member.member_id: member for member in generation.members()}
    return tuple(
        MemberSubscription(
            member_id=member_id,
            process=by_id[member_id].process,
            owned=by_id[member_id].owned,
            offset_sums=by_id[member_id].offset_sums,
            tags=by_id[member_id].client_tags,
            rack=by_id[member_id].rack,
        )
        for member_id in generation.arrival
    )


def unsettled_limits(
    reported: Iterable[int], clients: int, bound: EndOffsetSum
) -> list[tuple[int, int]]:
    """Return the spans of ``acceptable.recovery.lag`` for which the decision depends on the end.

    Within a span, from a least to a greatest in offsets, two end offset sums within ``bound`` can
    lead to different decisions. ``reported`` are the offset sums of those ``clients`` that have
    any. The end decides which clients are caught up; their order by lag doesn't depend on it. If
    all have the same sum, the end decides nothing. A sum beyond the end, of a recreated changelog,
    counts as nothing restored.
    """
    offset_sums = [*reported]
    if len(offset_sums) < clients:
        offset_sums.append(0)
    if bound.low == bound.high or len(set(offset_sums)) == 1:
        return []
    placed = [s for s in offset_sums if s not in (LATEST_OFFSET, UNKNOWN_OFFSET_SUM)]
    if any(bound.low < s <= bound.high for s in placed):
        return [(0, LONG_MAX)]
    lags = [(task_lag(s, bound.low), task_lag(s, bound.high)) for s in placed]
    return [(min(pair), max(pair) - 1) for pair in lags if pair[0] != pair[1]]


def unsettled(task: TaskId, bound: EndOffsetSum) -> str:
    """Return the doubt that a task's end offset sum isn't known well enough."""
    return (
        f"task {task}: its end offset sum when the leader decided, "
        f"between {bound.low} and {bound.high}"
    )


def _without_state(
    generation: StreamsGeneration, bounds: Mapping[TaskId, EndOffsetSum | None]
) -> list[str]:
    """Return a doubt for each task of which a client reports state, but no changelog is known."""
    reported = {t for c in generation.clients.values() for t in c.offset_sums}
    missing = sorted((reported & generation.all_tasks()) - bounds.keys())
    return [f"task {task}: it has state, but no changelog is known" for task in missing]
