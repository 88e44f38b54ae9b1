"""The partitions of ``__consumer_offsets``: how far each is read, and which broker leads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field

from aiokafka.errors import (
    KafkaError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.protocol import answers, requests
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.cluster_answers import PartitionInfo, decode_metadata
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.decoding import decode as decode_answer
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.pending_commits import PendingCommits
from caughtup.models.polls.record_batches import NO_LEADER_EPOCH
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS


@dataclass(slots=True)
class LogPartition:
    """How far a partition is read, in offsets.

    ``position``: the next offset to read. ``end_at_start``: the end when the log was opened.
    ``high_watermark``: as in the leader's last answer, at ``answered_ms`` (None: no answer yet).
    ``leader`` is None while there is none. ``records_epoch``: the leader epoch of the last batch
    that was read. ``is_asked``: a fetch for it is running. ``pending``: commits of open
    transactions; ``first_pending``: the offset of the first of them, None without one. ``moved_ms``: when
    another leader was seen last, None if it has always been the first one.
    """

    position: int = 0
    end_at_start: int = 0
    high_watermark: int = 0
    leader: int | None = None
    leader_epoch: int = NO_LEADER_EPOCH
    records_epoch: int = NO_LEADER_EPOCH
    answered_ms: int | None = None
    is_asked: bool = False
    pending: PendingCommits = field(default_factory=PendingCommits)
    first_pending: int | None = None
    moved_ms: int | None = None


def coordinator_moved_ms(partitions: Mapping[int, LogPartition], group: str) -> int | None:
    """Return when a group last got another coordinator (ms), None if it did not while it was watched."""
    number = coordinator_partition(group, len(partitions)) if partitions else 0
    return partitions[number].moved_ms if number in partitions else None


def held_offsets(
    partitions: Mapping[int, LogPartition], at_ms: int
) -> dict[TopicPartition, EndOffsets]:
    """Return the partitions with commits of open transactions, with end offsets as of a time (ms).

    Their last stable offset is at or before the first of these commits, which is returned for it.
    """
    return {
        TopicPartition(CONSUMER_OFFSETS, number): EndOffsets(
            0, one.first_pending, max(one.first_pending, one.position), at_ms
        )
        for number, one in sorted(partitions.items())
        if one.first_pending is not None
    }


class PartitionLeaders:
    """Keeps the leaders and the starting positions in ``partitions`` up to date.

    ``on_error`` is called with a sentence on each failure.
    """

    def __init__(
        self,
        protocol: ClusterProtocol,
        partitions: MutableMapping[int, LogPartition],
        on_error: Callable[[str], object],
    ) -> None:
        self._protocol = protocol
        self._on_error = on_error
        self.partitions = partitions

    async def open(self) -> bool:
        """Learn the start and end of each partition; return False while the topic does not exist.

        Brokers create it when the first group needs it. Raises KafkaError.
        """
        await self._protocol.brokers()
        try:
            await self._learn(await self._describe())
        except UnknownTopicOrPartitionError:
            return False
        leaders = {number: one.leader for number, one in self.partitions.items()}
        ends = await self._list(leaders, requests.LATEST)
        for number, partition in self.partitions.items():
            partition.high_watermark = max(ends[number], partition.position)
            partition.end_at_start = partition.high_watermark
        return bool(self.partitions)

    async def refresh(self) -> bool:
        """Learn of new leaders; return whether each partition has a leader to read from.

        If a new leader lacks records that were read (an unclean election), the partition is read
        again from its log start.
        """
        try:
            await self._protocol.brokers()
            await self._learn(await self._describe())
        except KafkaError as error:
            self._on_error(str(error))
            return False
        return all(one.leader is not None for one in self.partitions.values())

    async def start_again(self, numbers: list[int]) -> None:
        """Set partitions back to their log starts. Raises KafkaError."""
        await self._start_at_start({number: self.partitions[number].leader for number in numbers})

    async def _describe(self) -> dict[int, PartitionInfo]:
        call = requests.metadata_call([CONSUMER_OFFSETS])
        _, data = await self._protocol.connections.ask_any(call)
        _, described = await decode_answer(decode_metadata, data)
        raise_for(described.errors.get(CONSUMER_OFFSETS, 0))
        return {number: one for (_, number), one in sorted(described.partitions.items())}

    async def _learn(self, described: Mapping[int, PartitionInfo]) -> None:
        """Update the leaders of known partitions, and add new partitions."""
        new, moved = [], {}
        for number, info in described.items():
            known = self.partitions.get(number)
            if known is None:
                new.append(number)
            elif known.leader_epoch == info.leader_epoch or info.leader is None:
                known.leader = info.leader
            else:
                known.leader = None  # until _take_moved has compared its epochs
                moved[number] = info
        await self._take_new({number: described[number] for number in new})
        await self._take_moved(moved)

    async def _take_new(self, described: Mapping[int, PartitionInfo]) -> None:
        leaders = {number: info.leader for number, info in described.items()}
        starts = await self._list(leaders, requests.EARLIEST)
        for number, info in described.items():
            self.partitions[number] = LogPartition(
                starts[number], starts[number], starts[number], info.leader, info.leader_epoch
            )

    async def _take_moved(self, described: Mapping[int, PartitionInfo]) -> None:
        """Read from a new leader, from its log start if it lacks records already read (KIP-320)."""
        leaders = {number: info.leader for number, info in described.items()}
        for broker, numbers in _by_leader(leaders).items():
            epochs = {
                TopicPartition(CONSUMER_OFFSETS, number): self.partitions[number].records_epoch
                for number in numbers
                if self.partitions[number].records_epoch != NO_LEADER_EPOCH
            }
            lost: list[int] = []
            try:
                if epochs and await self._tells_epochs(broker):
                    call = requests.leader_epoch_ends_call(epochs)
                    data = await self._protocol.connections.ask(broker, call)
                    ends = await decode_answer(answers.decode_epoch_ends, data)
                    unknown = {number for _, number in epochs.keys() - ends.keys()}
                    numbers = [number for number in numbers if number not in unknown]
                    lost = [n for (_, n), end in ends.items() if end < self.partitions[n].position]
                if lost:
                    await self._start_at_start(dict.fromkeys(lost, broker))
            except KafkaError as error:
                self._on_error(f"broker {broker}: {error}")
                continue
            if lost:
                self._on_error(f"partitions {lost}: records are lost; reading them from the start")
            for number in numbers:
                known = self.partitions[number]
                known.leader, known.leader_epoch = broker, described[number].leader_epoch
                known.moved_ms = now_ms()

    async def _tells_epochs(self, broker: int) -> bool:
        """Return whether a broker answers OffsetForLeaderEpoch v3: since 2.3."""
        offered = await self._protocol.offered(broker)
        call = requests.leader_epoch_ends_call({})
        return offered.requests.get(call.key, (0, 0))[1] >= call.version

    async def _start_at_start(self, leaders: Mapping[int, int | None]) -> None:
        """Set partitions back to their log starts, as their leaders have them."""
        for number, start in (await self._list(leaders, requests.EARLIEST)).items():
            partition = self.partitions[number]
            partition.position = start
            partition.high_watermark = max(start, partition.high_watermark)
            partition.pending.clear()
            partition.first_pending = None

    async def _list(self, leaders: Mapping[int, int | None], at: int) -> dict[int, int]:
        """Return the start or end offset of each partition, from its leader."""
        found: dict[int, int] = {}
        for broker, numbers in _by_leader(leaders).items():
            wanted = [TopicPartition(CONSUMER_OFFSETS, number) for number in numbers]
            offsets = await self._protocol.list_offsets(broker, wanted, at)
            found |= {number: offset for (_, number), offset in offsets.items()}
        return found


def _by_leader(leaders: Mapping[int, int | None]) -> dict[int, list[int]]:
    """Group partitions by leader. Raises KafkaError if a partition has no leader."""
    found: dict[int, list[int]] = {}
    for number, leader in sorted(leaders.items()):
        if leader is None:
            raise LeaderNotAvailableError(f"{CONSUMER_OFFSETS}-{number} has no leader")
        found.setdefault(leader, []).append(number)
    return found
