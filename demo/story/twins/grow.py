"""The main act: start a fourth instance of both applications, and count what it costs until they are balanced."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from caughtup.demo.apps.restore_listener import RestoredCopy
from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import read_topic
from caughtup.demo.story.growing import FIRST, LAST, actives, is_balanced, now_ms
from caughtup.demo.story.truth import recommendations_in_log
from caughtup.demo.story.twins.stage import FOLLOWS, TASKS, TwinStage
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


_LOOK_SECONDS = 0.5
_SHARE = TASKS // (len(FIRST) + 1)


def grow(stage: TwinStage, say: Callable[[str], None], seconds: float) -> list[Cost]:
    """Start a fourth instance of each application; return the costs, in the stage's order.

    Waits at most ``seconds`` for both to be balanced. Raises CaughtupError.
    """
    started: dict[str, int] = {}

    def start(application: StreamsApplication) -> None:
        application.start_instance(LAST, wait=False)
        started[application.application_id] = now_ms()

    stage.on_both(start)
    ended = _watch(stage, say, started, seconds)
    stopped_ms = now_ms()
    return [
        _cost(stage, one, started[one.application_id], ended.get(one.application_id), stopped_ms)
        for one in stage.applications
    ]


def _watch(
    stage: TwinStage, say: Callable[[str], None], started: dict[str, int], seconds: float
) -> dict[str, int]:
    """Print every task that the fourth instances get; return when each was balanced (ms)."""
    deadline = time.monotonic() + seconds
    ended: dict[str, int] = {}
    runs = dict.fromkeys(started, 0)
    while len(ended) < len(started) and time.monotonic() < deadline:
        stage.check_alive()
        for application in stage.applications:
            name = application.application_id
            if name in ended:
                continue
            got = actives(application)[LAST]
            if got != runs[name]:
                say(f"{name}: {LAST} runs {got} of its {_SHARE} tasks")
                runs[name] = got
            if is_balanced(application, TASKS):
                ended[name] = now_ms()
                after = (ended[name] - started[name]) / 1000
                say(f"{name} is balanced, {after:.0f} s after {LAST} joined")
        time.sleep(_LOOK_SECONDS)
    return ended


def _cost(
    stage: TwinStage,
    application: StreamsApplication,
    started_ms: int,
    balanced_ms: int | None,
    stopped_ms: int,
) -> Cost:
    name = application.application_id
    records = recommendations_in_log(stage.cluster, name)
    grown = (record for record in records if len(record["process_ids"]) > len(FIRST))
    return cost(
        name,
        [copy for one in application.instances for copy in application.restored(one)],
        generations_of(stage.cluster, name),
        started_ms,
        stopped_ms if balanced_ms is None else balanced_ms,
        balanced_ms is not None,
        foretold(next(grown, {}), name == FOLLOWS),
    )
