"""What is read of the JSON on the service's own topics: fields, and in which bounds they fit."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Brokers = tuple[_Int, ...]
#: Sums and differences of some of these still fit in 64 bits.
_Offset = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]


class Header(msgspec.Struct):
    """What tells which release wrote a record."""

    schema: int


class TaskMovement(msgspec.Struct):
    """An event of a task's movement: caughtup.models.movement_log."""

    schema: int
    event: _Text
    kind: _Text
    group: _Text
    generation: _Int
    decision_id: str
    at_ms: int
    task: _Text
    to: _Text
    from_: str | None = msgspec.field(default=None, name="from")
    plan: str = "recommended"
    reason: str | None = None
    lag: _Long | None = None
    why: str | None = None


class PartitionMovement(msgspec.Struct):
    """An event of a partition's movement: caughtup.models.partition_movements."""

    schema: int
    event: _Text
    kind: Literal["partition"]
    topic: _Text
    partition: _Partition
    at_ms: int
    to: _Brokers
    from_: _Brokers = msgspec.field(name="from")
    why: str | None = None


class MovementKind(msgspec.Struct):
    """What tells the two apart."""

    schema: int
    kind: str | None = None


class Cost(msgspec.Struct):
    """What a plan costs: caughtup.models.plan_cost."""

    copies: _Long
    rebalances: _Long
    seconds: float
    offsets: _Long | None = None
    estimated: bool | None = None


class Leader(msgspec.Struct):
    """What the group's own leader decided."""

    assignor: str
    result: str
    why: str
    identical: bool | Literal["unknown"]


class Probing(msgspec.Struct):
    """The next probing rebalance."""

    needed: bool
    due_ms: int | None = None
    worthwhile_at_ms: int | None = None


class Inputs(msgspec.Struct):
    """What a decision was made from."""

    projected: bool = False


class Decision(msgspec.Struct):
    """A recommendation: caughtup.models.recommendation."""

    schema: int
    decision_id: str
    cluster: str
    group: _Text
    generation: _Int
    as_of_ms: int
    decided_at_ms: int
    assignor: str
    process_ids: list[str]
    movements: list[msgspec.Raw]
    cost: Cost
    kafka_cost: Cost
    leader: Leader
    probing_rebalance: Probing
    inputs: Inputs


class Reassignment(msgspec.Struct):
    """A look at a partition in movement, of schema 1 and 2."""

    schema: int
    topic: _Text
    partition: _Partition
    as_of_ms: int
    replicas: _Brokers = ()
    adding: _Brokers = ()
    removing: _Brokers = ()
    isr: _Brokers = ()
    offline: _Brokers = ()
    leader: _Int | None = None
    leader_epoch: _Int | None = None
    log_ends: dict[int, _Offset] = {}
    sizes: dict[int, _Offset] = {}
    ended: bool = False
    unlisted: bool = False
    since_ms: int | None = None
    original: _Brokers | None = None


class ClusterLook(msgspec.Struct):
    """A round's look at the cluster, of schema 1 and 2."""

    schema: int
    as_of_ms: int
