"""Every own topic: its writers, readers, keys, and the structs of its values."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from caughtup.models.records import (
    application_states,
    catch_up_rates,
    end_offsets,
    lag_lines,
    learned_configs,
    movements,
    pipeline_progress,
    reassignments,
    recommendations,
    task_positions,
    topics,
    transactions,
)
from caughtup.models.records.decoding import RecordFormat
from caughtup.models.records.keys import (
    CopyArray,
    GroupKey,
    PartitionArray,
    PartitionKey,
    PartitionLineArray,
    ProducerArray,
)


class Key(NamedTuple):
    """A form of keys: its type, meaning and example, and whether it is text or JSON."""

    type: Any
    of: str
    example: str
    is_text: bool = True


class Kind(NamedTuple):
    """Values of one struct, with their forms of keys. ``schemas``: the versions that are read."""

    struct: type[msgspec.Struct]
    schemas: tuple[int, ...]
    keys: tuple[Key, ...]


class Topic(NamedTuple):
    """A topic by its name without prefix, with a description.

    ``when``: the JSON Schemas that distinguish the values of each kind but the last.
    """

    name: str
    about: str
    kinds: tuple[Kind, ...]
    when: tuple[dict[str, Any], ...] = ()
    tombstones: bool = True


def _kind(form: RecordFormat[Any], *keys: Key) -> Kind:
    return Kind(form.kind, form.schemas, keys)


def _has(name: str, value: str) -> dict[str, Any]:
    return {"properties": {name: {"const": value}}, "required": [name]}


_CONNECT = {"properties": {"kind": {"enum": list(movements.CONNECT_KINDS)}}, "required": ["kind"]}
_GROUP = Key(GroupKey, "the group", "orders")
_PARTITION = Key(PartitionKey, "the partition", "orders-3")
_COPY = Key(CopyArray, "group, process and task", '["orders","4e9bd3eb-…","0_3"]', is_text=False)
_CHANGELOG = Key(PartitionArray, "topic and partition", '["orders-changelog",3]', is_text=False)
_LINE = Key(
    PartitionLineArray, "group, topic and partition", '["readers","orders",3]', is_text=False
)
_PRODUCER = Key(ProducerArray, "the producer's id and epoch", "[4000,3]", is_text=False)

TOPICS = (
    Topic(
        topics.END_OFFSETS,
        "The ends of each log that a group reads. The end-offset probe of the active instance "
        "writes changed ends at once and the others each minute; every instance, the history, the "
        "recorded generations and the rates on Spark read it.",
        (_kind(end_offsets.FORMAT, _PARTITION),),
    ),
    Topic(
        topics.REASSIGNMENTS,
        "What a round of the active instance's reassignment probe observed: a record for each "
        "partition that is being reassigned, and one for the whole cluster. Every "
        "instance and the history read it.",
        (
            _kind(reassignments.FORMAT, _PARTITION),
            _kind(
                reassignments.CLUSTER_FORMAT,
                Key(Literal["_cluster"], "a name that no partition has", "_cluster"),
            ),
        ),
        when=({"required": ["topic"]},),
    ),
    Topic(
        topics.RECOMMENDATIONS,
        "The newest recommendation for each Kafka Streams application. The active instance writes "
        "one for each generation and a tombstone once the group is gone; followers inside "
        "applications read it, the history, and the service itself when it becomes active. "
        "Where records are signed, the header `caughtup-signature` has the signature.",
        (_kind(recommendations.FORMAT, _GROUP),),
    ),
    Topic(
        topics.LEARNED_CONFIGS,
        "The possible configs of each Kafka Streams application, by its settings in caughtup and by "
        "its leaders' decisions. The active instance writes them with each generation that it "
        "learned from, and a tombstone once the group is gone; the service reads them when it "
        "becomes active, and the commands that look at a cluster once.",
        (_kind(learned_configs.FORMAT, _GROUP),),
    ),
    Topic(
        topics.MOVEMENTS,
        "An event for each step of a movement: of tasks, of reassignments, and of connectors and "
        "tasks of Connect that change workers. The active instance writes them, "
        "and reads them back when it becomes active; the history and people read them.",
        (
            _kind(movements.TASKS, _GROUP),
            _kind(movements.CONNECT, _GROUP),
            _kind(movements.PARTITIONS, _PARTITION),
        ),
        when=(
            {"not": {"anyOf": [_CONNECT, _has("kind", "partition")]}},
            _CONNECT,
        ),
        tombstones=False,
    ),
    Topic(
        topics.LAG,
        "The lag table, the lines of `caughtup lag --format json`. The active instance writes "
        "changed lines every `lag_interval`, and reads the keys back when it becomes active; "
        "people and their tools read the values, which therefore have no `schema`.",
        (
            Kind(lag_lines.PartitionLine, (), (_LINE,)),
            Kind(lag_lines.CopyLine, (), (_COPY,)),
        ),
        when=(_has("kind", "partition"),),
    ),
    Topic(
        topics.TRANSACTIONS,
        "The open transactions that hold back a last stable offset which stands still. The active "
        "instance writes changed ones at once and the others each minute, and a tombstone once a "
        "transaction no longer holds anything back; it reads them back when it becomes active, and "
        "the history reads them.",
        (_kind(transactions.FORMAT, _PRODUCER),),
    ),
    Topic(
        topics.TASK_POSITIONS,
        "The positions of an application's copies between rebalances. Each of its processes "
        "writes those of its own copies (`caughtup.PositionReporter`, the Python follower): changed "
        "ones at once, the others each minute. Every instance and the rates on Spark read them.",
        (_kind(task_positions.FORMAT, _COPY),),
    ),
    Topic(
        topics.APPLICATION_STATES,
        "The inputs of an application's leader in a rebalance, and its decision. The follower in "
        "the leader writes it; every instance reads it, and decides from it instead of inferring.",
        (_kind(application_states.FORMAT, _GROUP),),
    ),
    Topic(
        topics.CATCH_UP_RATES,
        "How fast each copy restores and its changelogs grow, over 1, 5 and 15 minutes. "
        "`caughtup pipeline rates` writes changed rates at once and the others each minute; every "
        "instance reads it.",
        (_kind(catch_up_rates.FORMAT, _COPY, _CHANGELOG),),
    ),
    Topic(
        topics.PIPELINE_PROGRESS,
        "What each stream on Spark did at its last trigger, and how it ended. The streams' "
        "drivers write it; every instance reads it.",
        (_kind(pipeline_progress.FORMAT, Key(GroupKey, "the stream", "history")),),
    ),
)
