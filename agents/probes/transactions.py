"""Observe open transactions: ask leaders for the producers that hold back a last stable offset.

Then ask every broker which of their transactions it coordinates, and the coordinators for details.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping

from aiokafka.errors import KafkaError, TopicAuthorizationFailedError, for_code

from caughtup.agents.kafka.protocol import transactions as wire
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.decoding import decode, explain_failure
from caughtup.agents.kafka.recent_names import RecentNames
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.transactions import OpenTransaction
from caughtup.models.transactions.holders import (
    MOST_TRANSACTIONS,
    DescribedTransaction,
    ListedTransaction,
    Observed,
    ProducerState,
    open_transactions,
    suspects,
)
from caughtup.models.transactions.table import Missing

#: The most partitions of one round, and of one request to a leader.
MOST_PARTITIONS = 500
_BATCH = 100
#: The time-out of ``ClusterProtocol`` for the observer: a slow broker must not hold up a round.
TIMEOUT_SECONDS = 5.0
#: No such transactional id exists. A user who may describe it may describe every one: it doesn't
#: begin as the service's own does, for which an ACL by prefix is documented.
_ANY_ID = "any-transactional-id-that-caughtup-may-describe"
_NOT_FOUND, _NOT_COORDINATOR, _LOADING = 105, 16, 14
_NOT_ALLOWED = 53
_REFUSED_IDS = "missing: DESCRIBE on all transactional ids"

#: The result where no last stable offset is held back.
NONE_HELD: tuple[list[OpenTransaction], Missing] = ([], Missing())

_Producers = dict[TopicPartition, list[ProducerState]]


class TransactionObserver:
    """Observes open transactions over connections that the caller opens and closes.

    ``refused``: the topics whose producers brokers refused to tell us, and _ANY_ID: they are left
    alone for ten minutes. A caller that makes several observers passes the same to each.
    """

    def __init__(self, protocol: ClusterProtocol, refused: RecentNames | None = None) -> None:
        self._protocol = protocol
        self._refused = RecentNames() if refused is None else refused

    async def observe(
        self, ends: Mapping[TopicPartition, EndOffsets]
    ) -> tuple[list[OpenTransaction], Missing]:
        """Return the transactions that hold back the last stable offsets of these partitions.

        What brokers do not answer is missing, and named. Needs READ on the topics, and DESCRIBE on
        transactional ids. Raises KafkaError if no broker can be reached.
        """
        missing: set[str] = set()
        if not ends:
            return NONE_HELD
        await self._protocol.brokers()
        producers = await self._producers(ends, missing)
        ids = {state.producer_id for states in producers.values() for state in states}
        if not ids:
            return [], Missing(tuple(sorted(missing)), len(ends) - len(producers))
        listed, not_known = await self._listed(ids)
        described = await self._described(listed, missing)
        again = suspects(producers, listed, described)
        confirmed = await self._producers(again, missing) if again else {}
        if not_known is not None:
            missing.add(not_known)
        observed = Observed(
            producers,
            listed,
            described,
            {
                partition: {(state.producer_id, state.first_offset) for state in states}
                for partition, states in confirmed.items()
            },
            not_known,
        )
        found = open_transactions(observed, ends)
        return found, Missing(tuple(sorted(missing)), len(ends) - len(producers))

    async def _producers(
        self, partitions: Collection[TopicPartition], missing: set[str]
    ) -> _Producers:
        """Return the producers with an open transaction on each partition that could be asked for.

        Only the first of them, which holds back the last stable offset.
        """
        led: dict[int, list[TopicPartition]] = {}
        refused = {one.topic for one in partitions if one.topic in self._refused}
        missing.update(
            _untold(topic, explain_failure(TopicAuthorizationFailedError(), "READ"))
            for topic in refused
        )
        asked = [one for one in partitions if one.topic not in refused]
        places = await self._protocol.describe_partitions(asked)
        for partition, place in sorted(places.partitions.items()):
            if place.leader is None:
                missing.add(f"producers of {partition}: it has no leader")
            else:
                led.setdefault(place.leader, []).append(partition)
        found: _Producers = {}
        answers = await asyncio.gather(
            *(self._led(leader, of_leader, missing) for leader, of_leader in sorted(led.items()))
        )
        for answer in answers:
            found |= answer
        return found

    async def _led(
        self, leader: int, partitions: list[TopicPartition], missing: set[str]
    ) -> _Producers:
        found: _Producers = {}
        try:
            for start in range(0, len(partitions), _BATCH):
                call = wire.describe_producers_call(partitions[start : start + _BATCH])
                data = await self._protocol.connections.ask(leader, call)
                answer = await decode(wire.decode_producers, data)
                for partition, states in answer.open.items():
                    first = min(states, key=lambda state: state.first_offset, default=None)
                    found[partition] = [] if first is None else [first]
                for partition, code in sorted(answer.errors.items()):
                    if code == TopicAuthorizationFailedError.errno:
                        self._refused.add(partition.topic)
                    why = explain_failure(for_code(code)(), "READ")
                    missing.add(_untold(partition.topic, why))
        except KafkaError as error:
            missing.add(f"producers on broker {leader}: {explain_failure(error)}")
        return found

    async def _listed(self, ids: set[int]) -> tuple[list[ListedTransaction], str | None]:
        """Return the transactions of producers, and why others may be missing."""
        found: list[ListedTransaction] = []
        reasons = []
        brokers = sorted(self._protocol.connections.brokers)
        answers = await asyncio.gather(
            *(self._coordinated(broker, ids) for broker in brokers), return_exceptions=True
        )
        for broker, answer in zip(brokers, answers, strict=True):
            if isinstance(answer, KafkaError):
                reasons.append(f"transactions of broker {broker}: {explain_failure(answer)}")
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found += answer
        if not reasons and {one.producer_id for one in found} < ids:
            reason = await self._not_allowed(brokers)
            if reason is not None:
                reasons.append(reason)
        return found, reasons[0] if reasons else None

    async def _coordinated(self, broker: int, ids: set[int]) -> list[ListedTransaction]:
        call = wire.list_transactions_call(ids)
        data = await self._protocol.connections.ask(broker, call)
        code, found = await decode(lambda raw: wire.decode_listed(raw, broker), data)
        if code:
            raise for_code(code)()
        return [one for one in found if one.producer_id in ids]

    async def _not_allowed(self, brokers: Iterable[int]) -> str | None:
        """Return why transactional ids may be missing from the lists; None if they can't be.

        Brokers leave out those that may not be described, and do not say so.
        """
        if _ANY_ID in self._refused:
            return _REFUSED_IDS
        call = wire.describe_transactions_call([_ANY_ID])
        for broker in brokers:
            try:
                data = await self._protocol.connections.ask(broker, call)
                [(code, _)] = await decode(wire.decode_described, data)
            except (KafkaError, ValueError):
                continue
            if code == _NOT_ALLOWED:
                self._refused.add(_ANY_ID)
                return _REFUSED_IDS
            return None
        return "no broker says which transactional ids may be described"

    async def _described(
        self, listed: Collection[ListedTransaction], missing: set[str]
    ) -> dict[str, DescribedTransaction]:
        by_coordinator: dict[int, list[str]] = {}
        for one in sorted(listed)[:MOST_TRANSACTIONS]:
            by_coordinator.setdefault(one.coordinator, []).append(one.transactional_id)
        found: dict[str, DescribedTransaction] = {}

        async def ask(coordinator: int, names: list[str]) -> None:
            try:
                for start in range(0, len(names), _BATCH):
                    call = wire.describe_transactions_call(names[start : start + _BATCH])
                    data = await self._protocol.connections.ask(coordinator, call)
                    for code, one in await decode(wire.decode_described, data):
                        if not code:
                            found[one.transactional_id] = one
            except KafkaError as error:
                missing.add(f"transactions of broker {coordinator}: {explain_failure(error)}")

        await asyncio.gather(*(ask(*of_one) for of_one in sorted(by_coordinator.items())))
        return found


def _untold(topic: str, why: str) -> str:
    return f"producers of {topic}: {why}"
