"""The costs of a fourth instance for each application, from Kafka's log and the instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from caughtup.demo.apps.restore_listener import RestoredCopy
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.log import read_topic
from caughtup.models.decisions.rebalancing_cost import waited_ms
from caughtup.models.groups.generation import StreamsGeneration, read_streams_generation
from caughtup.models.polls.batch import decode_batch
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS, RecordType

_GROUP_METADATA = int(RecordType.GROUP_METADATA).to_bytes(2, "big")


class Cost(NamedTuple):
    """The costs of an application from a time until it was balanced, or until now.

    ``copies``: stores' partitions that an instance started to restore from nothing, by its restore
    listener; ``offsets``: the sum of restored offsets. ``rebalances``, and the waiting times for
    them in ``waits_ms``, are from ``__consumer_offsets``. ``seconds``: until all tasks were evenly
    distributed; ``balanced``: whether that happened. ``foretold``: the service's forecast of copies,
    None without one.
    """

    application: str
    balanced: bool
    seconds: float
    copies: int
    offsets: int
    rebalances: int
    waits_ms: tuple[int, ...]
    foretold: int | None = None

    @property
    def waited_seconds(self) -> float:
        """The total time that it waited for rebalances that it had scheduled."""
        return sum(self.waits_ms) / 1000


def cost(
    application: str,
    restored: Iterable[RestoredCopy],
    generations: Sequence[StreamsGeneration],
    started_ms: int,
    ended_ms: int,
    balanced: bool,
    foretold: int | None = None,
) -> Cost:
    """Return an application's costs between two times (ms)."""
    copies = [copy for copy in restored if copy.started_ms >= started_ms]
    during = [one for one in generations if started_ms <= one.as_of_ms <= ended_ms]
    return Cost(
        application,
        balanced,
        (ended_ms - started_ms) / 1000,
        sum(copy.from_nothing for copy in copies),
        sum(copy.loaded + 1 - copy.start for copy in copies if copy.loaded is not None),
        len(during),
        tuple(waited for one, later in pairwise(during) if (waited := waited_ms(one, later))),
        foretold,
    )


def foretold(record: Mapping[str, object], follows: bool) -> int | None:
    """Return the copies in a recommendation's costs: as recommended, or with Kafka's assignor."""
    named = record.get("cost" if follows else "kafka_cost")
    copies = named.get("copies") if isinstance(named, Mapping) else None
    return copies if isinstance(copies, int) else None


def generations_of(cluster: EmbeddedCluster, group: str) -> list[StreamsGeneration]:
    """Return every generation of an application from Kafka's log, the oldest first."""
    found: dict[int, StreamsGeneration] = {}
    sources: dict[str, int] = {}
    for _, _, key, value in read_topic(cluster, CONSUMER_OFFSETS):
        if key is None or not key.startswith(_GROUP_METADATA):
            continue
        metadata = decode_batch([(key, value)]).groups.get(group)
        generation = metadata and read_streams_generation(group, metadata, sources)
        if generation:
            found.setdefault(generation.generation, generation)
            sources |= generation.source_topics
    return [found[number] for number in sorted(found)]
