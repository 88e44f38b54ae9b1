"""caughtup-recommended-assignments: a decision with its reasons, its cost and its inputs."""

from __future__ import annotations

from typing import Any, Literal

from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.following.recommendation import MAX_BYTES
from caughtup.models.errors import CaughtupError
from caughtup.models.records.decoding import (
    BAD_TYPE,
    RecordFormat,
    RefusedError,
    require_agreement,
    require_past,
)
from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Amount,
    Generation,
    Group,
    Long,
    Name,
    Offset,
    OffsetSums,
    Part,
    ProcessUuid,
    Record,
    StateTimeMs,
    Task,
    TimeMs,
    builtins_of,
    renamed_absent,
)
from caughtup.models.records.keys import decode_group
from caughtup.models.records.scenarios import ScenarioRecord


class RecommendedTasks(Part):
    """What a process is to have."""

    active: list[Task]
    standby: list[Task]
    warmup: list[Task]


class RecommendedMovement(Part):
    """A task that is to move, and why; ``lag`` of the destination in offsets, where it is known."""

    task: Task
    to: ProcessUuid
    kind: Name
    reason: str
    from_: ProcessUuid | Absent = renamed_absent("from")
    lag: Offset | Absent = ABSENT


class ProbingRecord(Part):
    """Whether a probing rebalance is needed, when the next is due, and when it is worthwhile (ms)."""

    needed: bool
    reason: str
    due_ms: Long | Absent = ABSENT
    worthwhile_at_ms: Long | Absent = ABSENT


class CostRecord(Part):
    """What a plan costs: see ``plan_cost``."""

    copies: Offset
    rebalances: Offset
    seconds: Amount
    estimated: bool
    offsets: Offset | Absent = ABSENT


class LeaderRecord(Part):
    """What the group's own leader decided, compared with what it should have."""

    assignor: Name
    identical: bool | Literal["unknown"]
    result: Literal["match", "mismatch", "undetermined"]
    why: str


class InputsRecord(Part):
    """What the decision was made from: see ``GenerationInputs``."""

    scenario: ScenarioRecord
    end_offset_sums: dict[Task, OffsetSums | None]
    changelogs: Name
    inferred: list[str]
    assumed: list[str]
    unknown: list[str]
    offset_sums: Name | Absent = ABSENT
    end_offsets: Name | Absent = ABSENT
    contradicted: list[str] | Absent = ABSENT
    projected: bool | Absent = ABSENT
    rates: Name | Absent = ABSENT


class RecommendationRecord(Record):
    """A recommendation for a generation of a group; a tombstone once the group is gone.

    Whoever follows it ignores it once the generation or the processes are others. ``left_out``
    names the parts of a large one that are missing.
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


#: As much as followers read.
FORMAT = RecordFormat(RecommendationRecord, schemas=(1,), most_bytes=MAX_BYTES)


def read_recommendation_record(
    key: bytes | None, value: bytes | None, clock_ms: int
) -> tuple[str, dict[str, Any] | None]:
    """Decode a record: the group, and the recommendation as it was published; None: it is gone.

    ``clock_ms`` is now, by our clock. Raises RefusedError.
    """
    group = decode_group(key)
    if value is None:
        return group, None
    record = FORMAT.decode(value)
    require_agreement(group, record.group)
    require_past(max(record.as_of_ms, record.decided_at_ms), clock_ms)
    found = builtins_of(record)
    if "left_out" in found:
        return group, found
    try:
        if record.left_out is ABSENT:
            parse_scenario(found["inputs"]["scenario"])
    except CaughtupError as error:
        raise RefusedError(BAD_TYPE, f"inputs.scenario: {error.message}") from None
    return group, found
