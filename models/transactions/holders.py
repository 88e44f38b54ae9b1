"""Who holds back a last stable offset: what leaders know of producers, joined with coordinators.

A partition's leader knows the producers with an open transaction there, and where each begins: the
one that begins at the last stable offset holds it back. The transaction coordinators know which
transactional id a producer id belongs to, and which partitions its transaction still has. A
transaction hangs if no coordinator has the partition in a transaction of that producer id and
epoch: then nothing ever writes its end (KIP-664, as ``kafka-transactions.sh find-hanging``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from shlex import quote
from typing import NamedTuple

from caughtup.models.durations import counted, duration
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.fields import or_absent, or_none
from caughtup.models.records.transactions import HeldPartition, OpenTransaction
from caughtup.models.wire.bounds import LATEST_MS

#: The state of a transaction of which no coordinator told anything.
UNKNOWN = "unknown"
#: The most transactions and partitions of each that are kept, the oldest first.
MOST_TRANSACTIONS = 1_000
MOST_PARTITIONS = 200


class ProducerState(NamedTuple):
    """A producer as a partition's leader knows it: the first offset of its open transaction."""

    producer_id: int
    producer_epoch: int
    last_write_ms: int
    first_offset: int


class ListedTransaction(NamedTuple):
    """A transactional id in a coordinator's list, with the broker that coordinates it."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class DescribedTransaction(NamedTuple):
    """A transaction as its coordinator describes it.

    ``partitions`` are those that wait for the transaction's end; ``started_ms`` is -1 without one.
    """

    transactional_id: str
    state: str
    timeout_ms: int
    started_ms: int
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]


class Observed(NamedTuple):
    """What brokers answered about the partitions whose last stable offset stands still.

    ``producers`` are those with an open transaction, by partition. ``confirmed`` are the
    producers' ids and first offsets that were still open after the coordinators had answered.
    ``not_known`` says why coordinators' answers are not complete, None if they are: only then can
    one say that a transaction hangs.
    """

    producers: Mapping[TopicPartition, Collection[ProducerState]]
    listed: Collection[ListedTransaction]
    described: Mapping[str, DescribedTransaction]
    confirmed: Mapping[TopicPartition, Collection[tuple[int, int]]]
    not_known: str | None


def open_transactions(
    observed: Observed, ends: Mapping[TopicPartition, EndOffsets]
) -> list[OpenTransaction]:
    """Return the transactions that hold back a last stable offset, the oldest first.

    ``ends``: the latest end offsets of the observed partitions.
    """
    held: dict[tuple[int, int], list[tuple[TopicPartition, ProducerState]]] = {}
    for partition, states in sorted(observed.producers.items()):
        holder = _holder(states, ends[partition])
        if holder is not None:
            of_producer = held.setdefault((holder.producer_id, holder.producer_epoch), [])
            of_producer.append((partition, holder))
    names = _by_producer(observed.listed)
    found = [_transaction(states, names, observed, ends) for _, states in sorted(held.items())]
    return sorted(found, key=age_order)[:MOST_TRANSACTIONS]


def suspects(
    producers: Mapping[TopicPartition, Collection[ProducerState]],
    listed: Iterable[ListedTransaction],
    described: Mapping[str, DescribedTransaction],
) -> list[TopicPartition]:
    """Return the partitions with a transaction that no coordinator will end, as far as was answered.

    Between the leaders' answers and the coordinators' it may have ended: only if its leader, asked
    again, still has it does it hang.
    """
    names = _by_producer(listed)
    return [
        partition
        for partition, states in sorted(producers.items())
        if any(_is_over(partition, *_coordinated(state, names, described)) for state in states)
    ]


def _by_producer(listed: Iterable[ListedTransaction]) -> dict[int, ListedTransaction]:
    return {one.producer_id: one for one in sorted(listed)}


def _coordinated(
    state: ProducerState,
    names: Mapping[int, ListedTransaction],
    described: Mapping[str, DescribedTransaction],
) -> tuple[ListedTransaction | None, DescribedTransaction | None]:
    """Return a producer's transaction as it is listed and as it is described, None without one."""
    listed = names.get(state.producer_id)
    found = None if listed is None else described.get(listed.transactional_id)
    if found is not None and found.producer_id != state.producer_id:
        return listed, None  # another producer has the id by now
    return listed, found


def age_order(transaction: OpenTransaction) -> tuple[int, int, int]:
    """Return the key that sorts the oldest transaction first."""
    written, started = or_none(transaction.last_write_ms), or_none(transaction.started_at_ms)
    known = [at for at in (started, written) if at is not None]
    return min(known, default=0), transaction.producer_id, transaction.producer_epoch


def _holder(states: Iterable[ProducerState], ends: EndOffsets) -> ProducerState | None:
    """Return the producer whose open transaction begins at the last stable offset.

    Between the listing of the end and of the producers the offset may have moved on: the first of
    the producers that are open now holds it back.
    """
    first = min(states, key=lambda state: (state.first_offset, state.producer_id), default=None)
    return None if first is None or first.first_offset < ends.last_stable_offset else first


def _transaction(
    states: list[tuple[TopicPartition, ProducerState]],
    names: Mapping[int, ListedTransaction],
    observed: Observed,
    ends: Mapping[TopicPartition, EndOffsets],
) -> OpenTransaction:
    first = states[0][1]
    listed, described = _coordinated(first, names, observed.described)
    hangs = [
        (partition, state)
        for partition, state in states
        if (state.producer_id, state.first_offset) in observed.confirmed.get(partition, ())
        and _is_over(partition, listed, described)
    ]
    hanging = bool(hangs) and observed.not_known is None
    if hangs:
        described = None  # its coordinator knows a later transaction only
    started = None if described is None or described.started_ms < 0 else described.started_ms
    state = UNKNOWN if hangs else _state(listed, described)
    timeout = None if described is None else described.timeout_ms
    not_known = observed.not_known
    if described is not None:
        not_known = None  # this one is known, whatever others are
    return OpenTransaction(
        transactional_id=or_absent(None if listed is None else listed.transactional_id),
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        state=state,
        hanging=hanging,
        started_at_ms=or_absent(started),
        timeout_ms=or_absent(timeout),
        verdict="hanging" if hanging else state,
        ends_at_ms=or_absent(
            None if started is None or timeout is None else min(started + timeout, LATEST_MS)
        ),
        last_write_ms=or_absent(_last_write(states)),
        partitions=tuple(
            HeldPartition(*partition, state.first_offset)
            for partition, state in states[:MOST_PARTITIONS]
        ),
        records_behind=sum(
            ends[partition].end_offset - ends[partition].last_stable_offset
            for partition, _ in states
        ),
        not_known=or_absent(not_known),
    )


def _is_over(
    partition: TopicPartition,
    listed: ListedTransaction | None,
    described: DescribedTransaction | None,
) -> bool:
    """Return whether the coordinators have no transaction that will end on this partition."""
    if listed is None:
        return True
    if described is None:
        return False
    return partition not in described.partitions


def _state(listed: ListedTransaction | None, described: DescribedTransaction | None) -> str:
    if described is not None:
        return described.state
    return UNKNOWN if listed is None else listed.state


def _last_write(states: Iterable[tuple[TopicPartition, ProducerState]]) -> int | None:
    return max(
        (state.last_write_ms for _, state in states if state.last_write_ms >= 0), default=None
    )


def advice(transaction: OpenTransaction, now_ms: int) -> str:
    """Return what ends a transaction, and what that loses."""
    if transaction.hanging:
        held = transaction.partitions[0]
        others = len(transaction.partitions) - 1
        more = f", and the same for {counted(others, 'other partition')}" if others else ""
        return (
            "no coordinator will end it: kafka-transactions.sh --bootstrap-server BROKER abort "
            f"--topic {held.topic} --partition {held.partition} --start-offset "
            f"{held.first_offset}{more}; its records are then never read by consumers of "
            "committed records"
        )
    if (not_known := or_none(transaction.not_known)) is not None:
        return f"whether it hangs is not known: {not_known}"
    timeout_ms, started_ms = or_none(transaction.timeout_ms), or_none(transaction.started_at_ms)
    if transaction.state.startswith("Prepare"):
        return (
            "its coordinator is writing its end; if this lasts, a broker with one of its partitions "
            "does not answer"
        )
    if timeout_ms is None or started_ms is None:
        return "it ends when its producer commits or aborts it"
    left = duration(max(0, started_ms + timeout_ms - now_ms) / 1000)
    return (
        f"its coordinator aborts it in {left}, if its producer does not end it before; to abort it "
        "at once, restart the producer, or: kafka-transactions.sh --bootstrap-server BROKER "
        f"forceTerminateTransaction --transactional-id {quote(transaction.name)} (Kafka 4.3)"
    )


def held_back(partition: TopicPartition, holder: OpenTransaction) -> str:
    """Return what a transaction holds back on a partition, as a clause."""
    first = next((one for one in holder.partitions if one.topic_partition == partition), None)
    beyond = "" if first is None else f" beyond offset {first.first_offset}"
    return f"read_committed consumers of {partition} read nothing{beyond}: {described(holder)}"


def described(transaction: OpenTransaction | None) -> str:
    """Return a transaction as the object of a sentence about what it holds back."""
    if transaction is None:
        return "the producer of the open transaction is not known yet"
    what = "a hanging transaction" if transaction.hanging else "an open transaction"
    return f"it is held back by {what} of {transaction.name}"
