"""The probe of end offsets: lists them, and publishes them on caughtup-end-offsets."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial

from confluent_kafka import KafkaException
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.election.agent import until_active
from caughtup.agents.kafka.clients import admin_client
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.end_offset_listing import ANSWER_SECONDS, EndOffsetListing
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.readable_ends import ReadableEnds
from caughtup.agents.probes.end_offsets import PROBE, EndOffsetObserver
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.end_offsets import FORMAT, EndOffsetsRecord
from caughtup.models.records.keys import encode_partition
from caughtup.models.sharing import Lister
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

#: Unchanged end offsets are published again this often, so that readers know that they are current.
_REFRESH_MS = 60_000
#: Published end offsets that are not in the state after this time are published again: after a
#: topic is recreated, its reader may miss the first new records.
_TAKEN_MS = 5_000
#: How long a round waits until its records have come back into the state.
_ROUND_TRIP_SECONDS = 1.0
_POLL_SECONDS = 0.01
#: An instance of which nothing is heard for this time, and two rounds, lists nothing.
_SILENT_MS = 2_000
#: How often the readable ends of topics that others list are looked up.
_READABLE_SECONDS = 5.0
#: A topic of another instance of which nothing is published for this time is listed by none.
_UNLISTED_SECONDS = 300.0
#: A broker that did not answer is asked again after this time: figures get old meanwhile.
_PAUSE_SECONDS = 5.0
#: A silent connection is dropped after this time; the default is a minute.
CLIENT = {"socket.timeout.ms": 10_000}


class EndOffsetsProbe(Service):
    """Lists the end offsets of watched topics, and publishes those that changed.

    It lists every ``end_offsets_interval`` seconds, and at once when ``hurry`` is set: then a
    generation waits for end offsets listed after it began. Of the instances that share the groups,
    one lists a topic that groups of several read (``models.sharing.TopicListers``).
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        settings: Settings,
        health: Health,
        state: ClusterState,
        topic: TopicWriter,
        hurry: asyncio.Event,
    ) -> None:
        super().__init__()
        self._interval = settings.end_offsets_interval
        self._prefix = settings.topic_prefix
        self._observer = EndOffsetObserver(settings, state, admin_client(settings, **CLIENT))
        self._protocol = ClusterProtocol(
            aiokafka_config(settings), ANSWER_SECONDS, most_pause_seconds=_PAUSE_SECONDS
        )
        #: The brokers that failed in the last round.
        self._failing: frozenset[int] = frozenset()
        self._health = health
        self._state = state
        self._topic = topic
        self._hurry = hurry
        self._published: dict[TopicPartition, EndOffsets] = {}
        self._topic_ids: dict[str, bytes] = {}
        #: The last published partition and its time (ms), until that record is in the state.
        self._untaken: tuple[TopicPartition, int] | None = None
        #: The topics that were listed in the last round, and the number of this list.
        self._asked: frozenset[str] = frozenset()
        self._number = now_ms() // 1_000
        #: The readable ends of topics that other instances list.
        self._readable = ReadableEnds(settings, state)
        #: When each partition was listed last, in ms.
        self._listed_ms: dict[TopicPartition, int] = {}

    def write_again(self) -> None:
        """Publish everything again, since the topic was recreated."""
        self._published.clear()
        self._hurry.set()

    def groups_taken(self) -> None:
        """List at once; until then, count as old as what others listed of topics that groups read.

        Each of these may be as old as the other instance's last round.
        """
        wants = self._wants(self._state.wanted_topics())
        read = (partition for partition, _ in self._state.ends if wants(partition.topic))
        listed = map(self._last_listed_ms, read)
        oldest_ms = min((at_ms for at_ms in listed if at_ms is not None), default=None)
        if oldest_ms is not None:
            probed_ms = self._health.probed_ms.get(PROBE, oldest_ms)
            self._health.probed_ms[PROBE] = min(probed_ms, oldest_ms)
        self._hurry.set()

    async def on_stop(self) -> None:
        """Ask no more."""
        self._observer.close()
        self._protocol.connections.close()

    @Service.task
    async def _run(self) -> None:
        await until_active(self, self._health)
        while not self.should_stop:
            with self._state.faults.isolated(PROBE, "a round", now_ms(), self._failed):
                try:
                    if (as_of_ms := await self._round()) is not None:
                        self._health.succeeded(PROBE, as_of_ms)
                except KafkaException as error:
                    if self._failed(error):
                        log.warning("listing end offsets: %s", error.args[0].str())
            self._hurry.clear()
            try:
                await asyncio.wait_for(self._hurry.wait(), self._interval)
            except TimeoutError:
                continue

    @Service.task
    async def _look_up_readable_ends(self) -> None:
        """Look up the readable ends that this instance's groups need where another lists the topic."""
        while not self.should_stop:
            await self.sleep(_READABLE_SECONDS)
            if self._state.held.others:
                with self._state.faults.isolated(PROBE, "readable ends", now_ms(), self._failed):
                    await self._read_tails()

    @Service.task
    async def _remove_unlisted(self) -> None:
        """Remove topics that no instance lists any more, if instances share the groups; one does."""
        before: dict[str, int] = {}
        while not self.should_stop:
            await self.sleep(_UNLISTED_SECONDS)
            if not self._state.held.others or not self._health.cluster_wide():
                before = {}
                continue
            with self._state.faults.isolated(PROBE, "unlisted topics", now_ms(), self._failed):
                before = await self.remove_unlisted(before)

    async def remove_unlisted(self, before: dict[str, int]) -> dict[str, int]:
        """Remove topics of others that are as old as before, by topic (ms); return the times now.

        An instance that lists a topic publishes each of its partitions once a minute at least. While
        nothing at all is newer, brokers are away.
        """
        now: dict[str, int] = {}
        for partition, ends in self._state.ends:
            now[partition.topic] = max(now.get(partition.topic, 0), ends.as_of_ms)
        wanted = self._state.wanted_topics()
        old = {topic for topic, at_ms in now.items() if before.get(topic) == at_ms}
        if old != now.keys():
            for topic in sorted(topic for topic in old if not wanted(topic)):
                for partition, _ in sorted(self._state.ends.of_topic(topic)):
                    await self._topic.send(key=encode_partition(partition), value=None)
        return now

    async def _read_tails(self) -> None:
        state = self._state
        left = self._left(state.wanted_topics())
        found = {each: ends for topic in sorted(left) for each, ends in state.ends.of_topic(topic)}
        for partition, ends in (await self._readable.completed(found)).items():
            end, known = ends.readable_end_offset, found[partition].readable_end_offset
            if end is not None and (known is None or end < known):
                value = self._value(partition, ends, left[partition.topic].text)
                await self._topic.send(key=encode_partition(partition), value=value)

    def _failed(self, _: Exception) -> bool:
        return self._health.failed(PROBE)

    def _note(self, failed: Mapping[int, str]) -> None:
        if failed:
            self._health.failed(PROBE)
        for broker in sorted(failed.keys() - self._failing):
            log.warning("listing end offsets: broker %d: %s", broker, failed[broker])
        self._failing = frozenset(failed)

    async def _round(self) -> int | None:
        """List and publish; return the time (ms) of which the state has all end offsets.

        Returns None if the published records have not come back into the state yet.
        """
        self._note_what_was_read()
        wanted = self._state.wanted_topics()
        wants = self._wants(wanted)
        listing, found, named = await self._observer.observe(self._protocol, wants)
        self._note(listing.failed)
        self._health.leaderless_partitions = len(listing.leaderless)
        present, faults, now = listing.present, self._state.faults, now_ms()
        # Others that leave topics to this instance have to hear of each round, and list those of
        # which a leader does not answer this one.
        heard = min(found, default=None) if self._state.held.others else None
        silent = {partition.topic for partition in listing.unanswered}
        self._note_left_out(frozenset({partition.topic for partition in present} - silent))
        self._topic_ids |= named
        awaited = self._awaited()
        due = [
            (partition, ends)
            for partition, ends in found.items()
            if partition.topic.startswith(awaited)
            or partition.topic in named
            or partition == heard
            or self._is_due(partition, ends)
        ]
        for partition, ends in sorted(due):
            value = None
            with faults.isolated(PROBE, partition.topic, now):
                listed_by = None if partition.topic in silent else self._own_list()
                value = self._value(partition, ends, listed_by)
            if value is not None:
                self._published[partition] = ends
                await self._topic.send(key=encode_partition(partition), value=value)
                self._untaken = partition, ends.as_of_ms
        gone = {partition for partition, _ in self._state.ends if partition not in present}
        gone |= self._published.keys() - present
        if self._state.held.are_shared:
            # What only groups of others read isn't listed here.
            gone = {partition for partition in gone if wants(partition.topic)}
            for partition in sorted(self._published.keys() - present - gone):
                del self._published[partition]
        for partition in sorted(gone):
            self._published.pop(partition, None)
            self._topic_ids.pop(partition.topic, None)
            await self._topic.send(key=encode_partition(partition), value=None)
        as_of_ms = min(self._complete_as_of(listing), self._left_as_of(wanted, now))
        return as_of_ms if await self._is_taken(present) else None

    def _note_left_out(self, asked: frozenset[str]) -> None:
        """Note the topics that are listed, and whose leaders answer; say if one of before isn't.

        Another instance may have left it to this one. A topic that is left to another is read of there.
        """
        before, self._asked = self._asked, asked
        lister = self._lister()
        if any(lister(topic) is None for topic in before - asked):
            self._number += 1

    def _note_what_was_read(self) -> None:
        """Before the first round, count the newest end offsets in the state as this probe's last success."""
        newest_ms = self._state.ends.newest_ms
        if newest_ms is not None:
            self._health.probed_ms.setdefault(PROBE, newest_ms)

    async def _is_taken(self, present: set[TopicPartition]) -> bool:
        """Wait up to 1 s until the state has all published records; return whether it has."""
        until = time.monotonic() + _ROUND_TRIP_SECONDS
        while self._untaken is not None:
            partition, as_of_ms = self._untaken
            taken = self._state.ends.latest(partition)
            if partition not in present or (taken is not None and taken.as_of_ms >= as_of_ms):
                self._untaken = None
            elif self.should_stop or time.monotonic() >= until:
                return False
            else:
                await asyncio.sleep(_POLL_SECONDS)
        return True

    def _complete_as_of(self, listing: EndOffsetListing) -> int:
        """Return the oldest time (ms) at which a partition with a silent leader was last listed.

        Without silent leaders it is the time of this listing. Partitions that were never listed do
        not count.
        """
        listed = {partition: ends.as_of_ms for partition, ends in listing.found.items()}
        known = self._listed_ms | listed
        self._listed_ms = {p: at for p, at in known.items() if p in listing.present}
        silent = (self._last_listed_ms(partition) for partition in listing.unanswered)
        return min((at for at in silent if at is not None), default=listing.as_of_ms)

    def _left_as_of(self, wanted: Callable[[str], bool], now: int) -> int:
        """Return the oldest time (ms) as of which topics are known that are left to others."""
        names = {lister.name for lister in self._left(wanted).values()}
        heard = (self._state.listers.heard_ms(name) for name in names)
        return min((at_ms for at_ms in heard if at_ms is not None), default=now)

    def _last_listed_ms(self, partition: TopicPartition) -> int | None:
        """Return when a partition was last listed (ms), by this or the previous active instance."""
        taken = self._state.ends.latest(partition)
        return self._listed_ms.get(partition, None if taken is None else taken.as_of_ms)

    def _is_due(self, partition: TopicPartition, ends: EndOffsets) -> bool:
        """Return whether to publish end offsets: they changed, or a refresh is due."""
        known = self._published.get(partition)
        if known is None or not ends.repeats(known):
            return True
        taken = self._state.ends.latest(partition)
        # The state may have a record of another writer instead of ours, or a lower readable end.
        is_taken = (
            taken is not None
            and taken.as_of_ms >= known.as_of_ms
            and taken.repeats(known.with_readable_end_of(taken))
        )
        # The age is negative if a clock was set back.
        age_ms = ends.as_of_ms - known.as_of_ms
        return not 0 <= age_ms < (_REFRESH_MS if is_taken else _TAKEN_MS)

    def _wants(self, wanted: Callable[[str], bool]) -> Callable[[str], bool]:
        """Return a test for the topics to list. Own topics are left out: each round changes them."""
        lister, awaited = self._lister(), self._awaited()
        return lambda topic: (
            wanted(topic)
            and not topic.startswith(self._prefix)
            and (topic.startswith(awaited) or lister(topic) is None)
        )

    def _awaited(self) -> tuple[str, ...]:
        """Return the prefixes of topics that a generation waits for: it needs them listed at once."""
        return tuple(f"{group}-" for group in self._state.applications.awaited())

    def _left(self, wanted: Callable[[str], bool]) -> dict[str, Lister]:
        """Return the topics that groups read and this instance leaves to others, and to which."""
        lister = self._lister()
        topics = filter(wanted, self._state.listers.topics())
        return {topic: one for topic in topics if (one := lister(topic)) is not None}

    def _own_list(self) -> str | None:
        """Return what records say of who lists a topic; None if instances don't share the groups."""
        name = self._state.held.name
        return Lister(name, self._number).text if name else None

    def _lister(self) -> Callable[[str], Lister | None]:
        """Return a function of topics: the other instance that lists one, None if this one has to."""
        present = frozenset(peer.name for peer in self._state.held.peers())
        if not present:
            return lambda _: None
        return partial(
            self._state.listers.lister,
            present=present,
            now_ms=now_ms(),
            silent_ms=_SILENT_MS + int(2_000 * self._interval),
        )

    def _value(
        self, partition: TopicPartition, ends: EndOffsets, listed_by: str | None = None
    ) -> bytes:
        topic_id = self._topic_ids.get(partition.topic)
        return FORMAT.encode(EndOffsetsRecord.from_ends(partition, ends, topic_id, listed_by))
