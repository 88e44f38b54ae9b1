"""What an assignor decides from, gathered from one generation on the wire.

The result is a scenario, from whose record any decision can be made again, together with what
about it was inferred, assumed or could not be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from caughtup.models.assignment.compact import CompactScenario, CompactTask
from caughtup.models.assignment.scenario import Client
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import LATEST_OFFSET, LONG_MAX, UNKNOWN_OFFSET_SUM, task_lag
from caughtup.models.parameters import DEFAULTS, TAGS, ApplicationParameters
from caughtup.models.partition_assignor.rebalance import MemberSubscription, clients_of
from caughtup.models.records.recommendations import KnownConfigRecord
from caughtup.models.tasks.end_offset_sums import (
    SourceCommits,
    changelog_partitions,
    end_offset_sums,
)
from caughtup.models.tasks.placements import possible_changelogs, widest_bounds
from caughtup.models.tasks.topology import find_changelogs

#: The assignor whose decisions are recommended.
RECOMMENDED = "minimal_movement"
#: How far a broker's clock may be ahead of ours when end offsets are matched to a moment, in ms.
CLOCK_ALLOWANCE_MS = 1_000


@dataclass(frozen=True, slots=True)
class GenerationInputs:
    """A scenario, and what is not certain about it.

    ``scenario`` names the assignor that recommends, and has each task's lag of who has nothing of
    it as the greatest. ``unknown`` says why the leader may have
    decided from something else; empty when every input that matters is known. ``inferred``
    and ``assumed`` name what was not read from the wire or the settings. ``ends`` holds each
    stateful task's end offset sum, None where it could not be bounded. ``tentative`` as long as a
    topic that nobody has looked at yet may be a changelog. ``projected`` if the scenario is not
    what the generation was decided from, but what the next one would be. ``contradicted`` says
    which configs the settings give otherwise than the application, whose word counts, or than its
    leaders decide. ``configs`` is what is known of each config, empty where nobody asked yet.
    ``placed`` as for ``Changelogs``.
    ``replicas`` has the rack of each partition's replicas, None of one without; None where nobody
    looked them up.
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
) -> GenerationInputs:
    """Gather what the leader decided a generation from.

    ``commits`` are the application's own, ``seen_ms`` is when the generation's record was read:
    the leader listed end offsets before that and after the group's state changed. ``placed`` as
    for ``find_changelogs``. The scenario's
    lags use the upper bound of each end offset sum. Source: StreamsPartitionAssignor.assign.
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
    between_ms = generation.as_of_ms - CLOCK_ALLOWANCE_MS, seen_ms
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
        [end_offset_sums(tasks, way, ends, greatest, *between_ms, sources) for way in ways]
    )
    unknown = [f"member left out: {skipped}" for skipped in generation.skipped]
    unknown += [f"changelog {topic}: which subtopology has it" for topic in changelogs.unplaced]
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
    # Whoever reported nothing of a task lags by all there is.
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
                {
                    task: lag
                    for task, offset_sum in sorted(sums[process].items())
                    if task in nothing
                    and (lag := task_lag(offset_sum, nothing[task])) != nothing[task]
                },
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


def members_of(generation: StreamsGeneration) -> tuple[MemberSubscription, ...]:
    """Return the members as the leader read them, in the order in which it was told of them."""
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
    """List the ``acceptable.recovery.lag`` for which end offset sums within the bound may differ.

    That is, lead to different decisions: from a least to a greatest each, in offsets. ``reported``
    are the offset sums of those of so many ``clients`` that have any. Between clients
    only the order of their sums matters, and that doesn't depend on the end. The end decides who is
    caught up; where all clients stand alike, it decides nothing. A sum beyond the end, of a
    recreated changelog, counts as nothing restored.
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
    """State that a task's end offset sum isn't known well enough."""
    return (
        f"task {task}: its end offset sum when the leader decided, "
        f"between {bound.low} and {bound.high}"
    )


def _without_state(
    generation: StreamsGeneration, bounds: Mapping[TaskId, EndOffsetSum | None]
) -> list[str]:
    """Name tasks that somebody reports state of, but for which no changelog is known."""
    reported = {t for c in generation.clients.values() for t in c.offset_sums}
    missing = sorted((reported & generation.all_tasks()) - bounds.keys())
    return [f"task {task}: it has state, but no changelog is known" for task in missing]
