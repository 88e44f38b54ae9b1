"""``/metrics``: made while it is sent, for a few scrapers at once, within their time-outs."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from aiohttp import web
from prometheus_client.exposition import choose_encoder, gzip_accepted

from caughtup.agents.process.turns import FreezeOnGrowth, gzipped, in_turns
from caughtup.agents.web.answer import send_stream
from caughtup.agents.web.door.questions import Slots
from caughtup.agents.web.door.refusals import Refusals
from caughtup.agents.web.served_metrics import ServedMetrics
from caughtup.models.state.cluster import ClusterState

_OPENMETRICS = "application/openmetrics-text"
_SCRAPES = 8
#: The header in which Prometheus sends its time-out, in seconds.
_TIME_OUT = "X-Prometheus-Scrape-Timeout-Seconds"
#: After a scrape timed out, others with no longer time-out are refused for this long.
_REFUSED_SECONDS = 60.0
_FINER = {"partition": 'metrics_granularity = "topic"', "topic": 'metrics_granularity = "group"'}


class Scrapes:
    """Answers ``/metrics`` from the state."""

    def __init__(
        self,
        metrics: ServedMetrics,
        state: ClusterState,
        clock: Callable[[], int],
        refusals: Refusals,
    ) -> None:
        self._served = metrics
        self._state = state
        self._clock = clock
        self._refusals = refusals
        self._freeze = FreezeOnGrowth()
        self._slots = Slots("scrapes", refusals, _SCRAPES, retry_seconds=5)
        #: The longest time-out that was too short (s), and until when that counts (monotonic).
        self._too_short, self._until = 0.0, 0.0

    def add_routes(self, app: web.Application) -> None:
        """Register ``/metrics``."""
        app.router.add_get("/metrics", self._metrics)

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        """Send the metrics as they are made; other tasks of the event loop run in between."""
        time_out = _seconds(request.headers.get(_TIME_OUT))
        if time_out <= self._too_short and time.monotonic() < self._until:
            raise self._too_slow(time_out)
        with self._slots.taken(request):
            _, content_type = choose_encoder(request.headers.get("Accept", ""))
            headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
            openmetrics = content_type.startswith(_OPENMETRICS)
            chunks = self._chunks(time_out, openmetrics=openmetrics)
            if gzip_accepted(request.headers.get("Accept-Encoding", "")):
                headers["Content-Encoding"] = "gzip"
                chunks = gzipped(chunks)
            async with aclosing(chunks):
                return await send_stream(request, headers, chunks, self._failed)

    async def _chunks(self, time_out: float, *, openmetrics: bool) -> AsyncGenerator[bytes, None]:
        """Yield the metrics. Raises HTTPServiceUnavailable if making them exceeds the time-out.

        The time in which the client reads doesn't count.
        """
        pieces = self._served.text(openmetrics=openmetrics)
        made, began = 0.0, time.monotonic()
        try:
            async for chunk in in_turns(pieces):
                made += time.monotonic() - began
                if made > time_out:
                    raise self._too_slow(time_out)
                yield chunk
                began = time.monotonic()
                self._freeze.reached(len(self._served.labels))
        finally:
            # A scraper that times out closes the connection at about this moment.
            now = time.monotonic()
            if made > 0.9 * time_out and (time_out > self._too_short or now > self._until):
                self._too_short, self._until = time_out, now + _REFUSED_SECONDS

    def _too_slow(self, time_out: float) -> web.HTTPServiceUnavailable:
        finer = _FINER.get(self._served.labels.detail.granularity)
        helps = "metrics_group_limit" if finer is None else f"{finer} or metrics_group_limit"
        refusal = self._refusals.unavailable("series", retry_seconds=round(_REFUSED_SECONDS))
        refusal.text = (
            f"too many series to make within this scraper's time-out of {time_out:g} s: "
            f"set {helps}, or scrape with a longer one\n"
        )
        return refusal

    def _failed(self, error: Exception) -> None:
        self._state.faults.note("metrics", "/metrics", error, self._clock())


def _seconds(text: str | None) -> float:
    """Return a scraper's time-out in seconds, infinity if it sends none."""
    try:
        seconds = float(text or "inf")
    except ValueError:
        return math.inf
    return seconds if seconds > 0 else math.inf
