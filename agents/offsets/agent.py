"""Batches of changes in, the cluster's state updated."""

from __future__ import annotations

import gc
import logging

import faust

from caughtup.agents.clock import now_ms
from caughtup.agents.kept_channel import KeptChannel
from caughtup.agents.offsets.polls import Changes
from caughtup.agents.offsets.rate_limit import RateLimit
from caughtup.agents.process.health import Health
from caughtup.agents.process.wakeups import Wakeup
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

log = logging.getLogger(__name__)

#: Unreadable records that the log tells of; the metrics count them all.
_SAMPLES_A_MINUTE = 10


class CaughtUp:
    """Goes down the channel behind the last batch that was there at the start."""


def offsets(
    app: faust.App,
    changes: KeptChannel,
    state: ClusterState,
    health: Health,
    wakeups: KeptChannel,
) -> None:
    """Register the offsets agent: a batch of changes in, the state updated."""
    unreadable = RateLimit(_SAMPLES_A_MINUTE)

    @app.agent(changes, name="offsets")
    async def apply(batches: faust.StreamT[Changes | CaughtUp]) -> None:
        async for change in batches:
            if isinstance(change, CaughtUp):
                state.applications.log_read_to_end()
                # What a long log left is here to stay: no garbage collection has to look through it.
                gc.freeze()
                health.ready = True
                await wakeups.put(Wakeup.GROUPS)
                log.info("caught up with %s", CONSUMER_OFFSETS)
                continue
            batch = change.batch
            state.apply_batch(batch, now_ms(), change.groups, change.connect, past=change.past)
            if batch.groups and health.standby is not None:
                state.applications.log_read_to_end()  # the active instance decides them
            for sample in batch.samples:
                if not unreadable.is_exceeded(now_ms()):
                    log.warning("skipped a record of %s: %s", CONSUMER_OFFSETS, sample)
            if batch.groups:
                await wakeups.put(Wakeup.GROUPS)
