"""caughtup-recommended-assignments: a decision with its reasons, its cost and its inputs.

A ``RecommendationRecord`` is the result of the models, the record on the topic, and the object in
the page and in ``caughtup explain --format json``.
"""

from __future__ import annotations

from typing import Literal

from caughtup.models.durations import counted
from caughtup.models.records.decoding import RecordFormat
from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Count,
    DueTimeMs,
    Generation,
    Group,
    Long,
    Name,
    Offsets,
    OffsetSums,
    Part,
    ProcessUuid,
    Record,
    Seconds,
    StateTimeMs,
    Task,
    TimeMs,
    or_none,
    renamed_absent,
)
from caughtup.models.records.scenarios import Configs, ScenarioRecord
from caughtup.models.records.topics import MOST_RECOMMENDATION_BYTES

#: The results of comparing a leader's decision with Kafka's assignor.
Result = Literal["match", "consistent", "mismatch", "undetermined"]
RESULTS: tuple[Result, ...] = ("match", "consistent", "mismatch", "undetermined")
#: How the value of a config is known.
Provenance = Literal["told", "read", "learned", "assumed"]


class RecommendedTasks(Part):
    """What a process is to have.

    active: its active tasks.
    standby: its standby tasks, warm-ups included.
    warmup: those of its standby tasks that warm up.
    """

    active: list[Task]
    standby: list[Task]
    warmup: list[Task]


class RecommendedMovement(Part, kw_only=True):
    """A task that is to move, and why.

    task: the task.
    to: the process that it moves to.
    kind: ``active``: at once, it is caught up there. ``cold``: it has to restore there first.
        ``swap``: an active and a standby change places. ``warmup``: the copy is built while the
        source serves. ``waiting``: the same, once a warm-up is over. ``standby``: a new standby.
        ``stateless``: without state.
    reason: a sentence.
    from: the process that has it; absent where none has.
    lag: of the copy on ``to``, at the greatest end offsets within their bounds; absent where it
        isn't known.
    may_be_caught_up: ``true`` where the copy on ``to`` counts as not caught up, but is by other end
        offsets within their bounds; else absent.
    """

    task: Task
    to: ProcessUuid
    from_: ProcessUuid | Absent = renamed_absent("from")
    kind: Name
    reason: str
    lag: Offsets | Absent = ABSENT
    may_be_caught_up: bool | Absent = ABSENT


class ProbingRecord(Part):
    """Whether a probing rebalance is needed, and when.

    needed: whether another rebalance is needed after this one.
    reason: a sentence.
    due_ms: when the group's leader asked for the next rebalance.
    worthwhile_at_ms: from when on it would promote a copy; absent if no copy's rate is known.
    """

    needed: bool
    reason: str
    due_ms: DueTimeMs | Absent = ABSENT
    worthwhile_at_ms: DueTimeMs | Absent = ABSENT


class CostRecord(Part, kw_only=True):
    """The cost until the group is balanced.

    copies: copies of state to build.
    rebalances: probing rebalances.
    seconds: what these take at ``probing.rebalance.interval.ms``.
    estimated: whether it was estimated from the first decision instead of played round by round.
    offsets: to restore for the copies; absent if lags are unknown.
    """

    copies: Count
    offsets: Offsets | Absent = ABSENT
    rebalances: Count
    seconds: Seconds
    estimated: bool


class WitnessRecord(Part):
    """Inputs within all bounds by which Kafka's assignor decides exactly what the leader decided.

    assignor: its name in scenarios.
    release: the release of Kafka Streams whose assignor it is, or the first of several.
    config: one value of each config.
    end_offset_sums: an end offset sum of each task of which only bounds are known.
    open_tasks: the tasks for which the bounds leave open which copies are caught up.
    alternatives: the sets of caught-up copies that the bounds allow, at most a million: no more
        decisions were possible.
    """

    assignor: Name
    release: Name
    config: Configs
    end_offset_sums: dict[Task, Offsets]
    open_tasks: Count
    alternatives: Count


class LeaderRecord(Part):
    """What the group's own leader decided, compared with what Kafka's assignor decides.

    assignor: the assignor by which the leader seems to decide.
    identical: ``true`` for a match, ``false`` for a mismatch.
    result: of the comparison, member by member.
    why: the differences, or the unknown inputs; empty for a match.
    told: what the application's follower reported; absent if it reported nothing.
    witness: the inputs that show that the decision is consistent; absent for other results.
    """

    assignor: Name
    identical: bool | Literal["unknown"]
    result: Result
    why: str
    told: str | Absent = ABSENT
    witness: WitnessRecord | Absent = ABSENT


class KnownConfigRecord(Part):
    """What is known of a config of the application.

    name: Kafka's, or ``assignor``.
    values: its possible values, in words.
    value: the value that the decision used.
    provenance: ``told`` by the settings, ``read`` from the wire or from the application,
        ``learned`` from what its leaders decided, or ``assumed``: nothing is known of it.
    generations: the number of generations explained since it was learned; absent for others.
    would_tell: what would narrow it further; absent where there is one value.
    as_if_default: ``true`` where several values remain, and Kafka's default, which is among them,
        is used; else absent.
    """

    name: Name
    values: str
    value: Long | Name
    provenance: Provenance
    generations: Count | Absent = ABSENT
    would_tell: str | Absent = ABSENT
    as_if_default: bool | Absent = ABSENT

    @property
    def source(self) -> str:
        """How the config is known, in words."""
        source: str = self.provenance
        if self.provenance == "learned":
            source = f"learned from {counted(or_none(self.generations) or 0, 'generation')}"
        return f"{source}, as if by default" if or_none(self.as_if_default) else source


class InputsRecord(Part, kw_only=True):
    """What the decision was made from: ``GenerationInputs``.

    scenario: what ``caughtup assign`` decides again.
    end_offset_sums: by task, the least and the greatest end offset sum of its changelogs when the
        leader decided; null: not known.
    changelogs: whether they are from the settings or inferred, and from what.
    inferred: inferences, in words.
    assumed: assumptions, in words.
    unknown: the unknown inputs, in words.
    offset_sums: ``reported`` by the members.
    end_offsets: ``measured``, ``bounded`` or ``unknown``.
    contradicted: which settings the log contradicts, in words.
    configs: what is known of the application's configs; absent if it was not requested.
    projected: whether it is for the rebalance that would come next.
    rates: who measured the rates of copies: ``spark``, or the service's ``own``.
    """

    scenario: ScenarioRecord
    end_offset_sums: dict[Task, OffsetSums | None]
    offset_sums: Name | Absent = ABSENT
    end_offsets: Name | Absent = ABSENT
    changelogs: Name
    inferred: list[str]
    assumed: list[str]
    unknown: list[str]
    contradicted: list[str] | Absent = ABSENT
    configs: list[KnownConfigRecord] | Absent = ABSENT
    projected: bool | Absent = ABSENT
    rates: Name | Absent = ABSENT


class RecommendationRecord(Record):
    """A recommendation for a group's newest generation; a tombstone: the group is gone.

    A follower ignores it once the group has another generation or other processes.

    decision_id: a digest of the cluster and the scenario.
    cluster: the cluster's id.
    group: the application's group.
    generation: the generation that it was decided for.
    as_of_ms: when the group's state changed, by its coordinator's clock; -1: not known.
    process_ids: the processes of that generation.
    assignor: what decided.
    decided_at_ms: when it was decided, by the service's clock.
    assignment: by process, the tasks that it is to have.
    movements: what has to move for it.
    probing_rebalance: whether another rebalance is needed.
    cost: what it costs until the group is balanced, if the application follows this recommendation.
    kafka_cost: the same, if Kafka's assignor decides.
    leader: what the group's own leader decided.
    inputs: what it was decided from.
    left_out: the parts that are missing because it would have been too large.
    """

    decision_id: Name
    cluster: Name
    group: Group
    generation: Generation
    as_of_ms: StateTimeMs
    process_ids: list[ProcessUuid]
    assignor: Name
    decided_at_ms: TimeMs
    assignment: dict[ProcessUuid, RecommendedTasks]
    movements: list[RecommendedMovement]
    probing_rebalance: ProbingRecord
    cost: CostRecord
    kafka_cost: CostRecord
    leader: LeaderRecord
    inputs: InputsRecord
    left_out: list[Name] | Absent = ABSENT


#: The greatest size that followers read.
FORMAT = RecordFormat(RecommendationRecord, schemas=(1,), most_bytes=MOST_RECOMMENDATION_BYTES)
