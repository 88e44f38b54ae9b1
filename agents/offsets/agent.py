"""The agent that applies batches of changes from ``__consumer_offsets`` to the cluster's state."""

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

#: Log lines about unreadable records; the metrics count all of them.
_SAMPLES_A_MINUTE = 10


class CaughtUp:
    """The mark on the channel after the last batch of records from before the start."""


def offsets(
    app: faust.App,
    changes: KeptChannel,
    state: ClusterState,
    health: Health,
    wakeups: KeptChannel,
) -> None:
    """Register the agent: it applies each batch of changes to the state."""
    unreadable = RateLimit(_SAMPLES_A_MINUTE)

    @app.agent(changes, name="offsets")
    async def apply(batches: faust.StreamT[Changes | CaughtUp]) -> None:
        async for change in batches:
            if isinstance(change, CaughtUp):
                state.applications.log_read_to_end()
                # The objects of the state stay: garbage collections need not traverse them.
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
