"""Decode polls of ``__consumer_offsets``, and apply what they changed to the cluster's state.

A thread decodes whole polls, so that the agent gets batches of changes instead of single records.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import faust

from caughtup.agents.clock import now_ms
from caughtup.agents.kept_channel import KeptChannel, Wakeup
from caughtup.agents.process.fault_log import RateLimit
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import return_free_memory
from caughtup.models.connect_clusters.table import ReadGeneration, read_connect_groups
from caughtup.models.groups.membership import ReadGroup, read_classic_groups
from caughtup.models.polls.batch import Batch, decode_records
from caughtup.models.polls.generations import split_generations
from caughtup.models.polls.records import FramedRecords
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.group_decisions import ReadDecision, compare_classic_groups
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

log = logging.getLogger(__name__)

#: Log lines about unreadable records; the metrics count all of them.
_SAMPLES_A_MINUTE = 10
#: The largest batch that is applied at once, which occupies the event loop for some 10 ms.
LIVE_RECORDS = 2_000


class Changes(NamedTuple):
    """A batch of changes with its classic groups and Connect generations decoded, by group.

    ``decisions`` has the generations of consumers, decided again. ``past``: whether the records are
    from before the service started; more such batches may follow. ``asked``: when each group was asked
    about (ms), if the changes are answers of coordinators.
    """

    batch: Batch
    groups: Mapping[str, ReadGroup]
    connect: Mapping[str, ReadGeneration]
    decisions: Mapping[str, ReadDecision]
    past: bool = False
    asked: Mapping[str, int] = MappingProxyType({})

    @classmethod
    def of(
        cls, batch: Batch, *, past: bool = False, asked: Mapping[str, int] = MappingProxyType({})
    ) -> Changes:
        """Decode the groups of a batch, and decide them again, which takes long for large groups."""
        connect = read_connect_groups(batch.groups)
        decisions = {} if past else compare_classic_groups(batch.groups)
        return cls(batch, read_classic_groups(batch.groups), connect, decisions, past, asked)


def decode_past(records: FramedRecords) -> list[Changes]:
    """Decode records from before the service started, as one batch."""
    return [Changes.of(decode_records(records), past=True)] if len(records) else []


def decode_live(records: FramedRecords) -> list[Changes]:
    """Decode new records, split so that no batch has two generations of a group."""
    parts = split_generations(records, LIVE_RECORDS)
    return [Changes.of(decode_records(part)) for part in parts]


class CaughtUp:
    """The mark on the channel after the last batch of records from before the start."""


class ChannelMark(asyncio.Event):
    """A mark on the channel: set once everything before it is applied."""


def offsets(
    app: faust.App,
    changes: KeptChannel[Changes | CaughtUp | ChannelMark],
    state: ClusterState,
    health: Health,
    wakeups: KeptChannel[Wakeup],
) -> None:
    """Register the agent: it applies each batch of changes to the state."""
    unreadable = RateLimit(_SAMPLES_A_MINUTE)

    @app.agent(changes, name="offsets")
    async def apply(batches: faust.StreamT[Changes | CaughtUp | ChannelMark]) -> None:
        async for change in batches:
            if isinstance(change, ChannelMark):
                change.set()
                continue
            if isinstance(change, CaughtUp):
                state.applications.log_read_to_end()
                # The objects of the state stay: garbage collections need not traverse them.
                gc.freeze()
                health.ready = True
                await wakeups.put(Wakeup.GROUPS)
                log.info("caught up with %s", CONSUMER_OFFSETS)
                await asyncio.to_thread(return_free_memory)
                continue
            batch = change.batch
            state.apply_batch(
                batch,
                now_ms(),
                change.groups,
                change.connect,
                past=change.past,
                decisions=change.decisions,
            )
            state.asked_ms.update(change.asked)
            if batch.groups and health.standby is not None:
                state.applications.log_read_to_end()  # the active instance decides them
            for sample in batch.samples:
                if not unreadable.is_exceeded(now_ms()):
                    log.warning("skipped a record of %s: %s", CONSUMER_OFFSETS, sample)
            if batch.groups:
                await wakeups.put(Wakeup.GROUPS)
