"""caughtup-catch-up-rates: how fast copies restore, as the job on Spark measures it."""

from __future__ import annotations

import faust

from caughtup.agents.topics.decoding import taking, times_of
from caughtup.agents.topics.records import Slice
from caughtup.models.copies.catch_up_rates import choose_rate
from caughtup.models.ids import TopicPartition
from caughtup.models.records.catch_up_rates import read_rates
from caughtup.models.records.decoding import TOO_MANY, RefusedError, require_past
from caughtup.models.records.topics import CATCH_UP_RATES
from caughtup.models.state.cluster import ClusterState


def catch_up_rates(app: faust.App, channel: faust.ChannelT, state: ClusterState) -> None:
    """Register the catch-up-rates agent: records in batches, the state updated."""

    @app.agent(channel, name="catch_up_rates")
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                apply_record(state, record.key, record.value, *times_of(record))


def apply_record(
    state: ClusterState,
    key: bytes | None,
    value: bytes | None,
    at_ms: int | None = None,
    clock_ms: int | None = None,
) -> None:
    """Take one record of caughtup-catch-up-rates, unless it is refused.

    ``at_ms`` is the record's timestamp, which the broker gives it when it is appended; None: it
    is taken to have been written when its windows ended. ``clock_ms``: what to hold it against.
    Records of changelog partitions only show that the stream is up: the service looks at ends
    itself.
    """
    with taking(state, CATCH_UP_RATES, key, clock_ms) as clock:
        subject, record = read_rates(key, value)
        rate = None
        if record is not None:
            written_ms = record.as_of_ms if at_ms is None else at_ms
            require_past(written_ms, clock)
            windows = [window.to_window() for window in record.windows]
            rate = choose_rate(min(record.as_of_ms, written_ms), windows)
            state.rates.heard(written_ms, round(record.trigger_seconds * 1000), clock)
        if not isinstance(subject, TopicPartition) and not state.rates.apply(*subject, rate):
            raise RefusedError(TOO_MANY, "rates of too many copies are kept")
