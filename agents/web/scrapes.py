"""``/metrics``: made as it is sent, so many at once, and not for a scraper that gives up before."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from itertools import chain

from aiohttp import web
from prometheus_client.exposition import choose_encoder, gzip_accepted

from caughtup.agents.process.garbage import FreezeOnGrowth
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import gzipped, in_turns
from caughtup.agents.settings import Settings
from caughtup.agents.web.answer import send_whole
from caughtup.agents.web.door.questions import Slots
from caughtup.agents.web.door.refusals import Refusals
from caughtup.agents.web.metrics.exposition import compatible_families, exposition
from caughtup.agents.web.metrics.families import Telling
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.metrics.service import process_families
from caughtup.models.state.cluster import ClusterState

_OPENMETRICS = "application/openmetrics-text"
_SCRAPES = 8
#: Prometheus says by this header how long it waits, in seconds.
_TIME_OUT = "X-Prometheus-Scrape-Timeout-Seconds"
#: For so long the next scrapers that wait no longer are refused; then one is tried again.
_REFUSED_SECONDS = 60.0
_FINER = {"partition": 'metrics_granularity = "topic"', "topic": 'metrics_granularity = "group"'}


class Scrapes:
    """Answers ``/metrics`` from the state."""

    def __init__(
        self,
        settings: Settings,
        state: ClusterState,
        health: Health,
        labels: GroupLabels,
        clock: Callable[[], int],
        refusals: Refusals,
    ) -> None:
        self._state = state
        self._health = health
        self._labels = labels
        self._clock = clock
        self._refusals = refusals
        self._telling = Telling(settings.legacy_status_values, settings.objectives())
        self._compatible = compatible_families(settings.compat_metrics)
        self._freeze = FreezeOnGrowth()
        self._slots = Slots("scrapes", refusals, _SCRAPES, retry_seconds=5)
        #: The longest that a scraper waited in vain (s), and until when that counts (monotonic).
        self._too_short, self._until = 0.0, 0.0

    def add_routes(self, app: web.Application) -> None:
        """Add what it answers to an application."""
        app.router.add_get("/metrics", self._metrics)

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        """Write the metrics as they are made, letting others have their turn in between."""
        waits = _seconds(request.headers.get(_TIME_OUT))
        if waits <= self._too_short and time.monotonic() < self._until:
            raise self._too_slow(waits)
        with self._slots.taken(request):
            _, content_type = choose_encoder(request.headers.get("Accept", ""))
            headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
            openmetrics = content_type.startswith(_OPENMETRICS)
            chunks = self._exposed(waits, openmetrics=openmetrics)
            if gzip_accepted(request.headers.get("Accept-Encoding", "")):
                headers["Content-Encoding"] = "gzip"
                chunks = gzipped(chunks)
            async with aclosing(chunks):
                return await send_whole(request, headers, chunks, self._failed)

    async def _exposed(self, waits: float, *, openmetrics: bool) -> AsyncGenerator[bytes, None]:
        """Make the metrics. Raises HTTPServiceUnavailable when that takes longer than one waits.

        What counts is the time in which it is made, not that in which its reader takes it.
        """
        pieces = exposition(
            self._state,
            self._health,
            self._labels,
            openmetrics=openmetrics,
            telling=self._telling,
            others=chain(self._compatible, process_families()),
        )
        made, began = 0.0, time.monotonic()
        try:
            async for chunk in in_turns(pieces):
                made += time.monotonic() - began
                if made > waits:
                    raise self._too_slow(waits)
                yield chunk
                began = time.monotonic()
                self._freeze.reached(len(self._labels))
        finally:
            # Whoever waits in vain leaves at about the same moment.
            now = time.monotonic()
            if made > 0.9 * waits and (waits > self._too_short or now > self._until):
                self._too_short, self._until = waits, now + _REFUSED_SECONDS

    def _too_slow(self, waits: float) -> web.HTTPServiceUnavailable:
        finer = _FINER.get(self._labels.detail.granularity)
        helps = "metrics_group_limit" if finer is None else f"{finer} or metrics_group_limit"
        refusal = self._refusals.unavailable("series", retry_seconds=round(_REFUSED_SECONDS))
        refusal.text = (
            f"too many series to make within this scraper's time-out of {waits:g} s: "
            f"set {helps}, or scrape with a longer one\n"
        )
        return refusal

    def _failed(self, error: Exception) -> None:
        self._state.faults.note("metrics", "/metrics", error, self._clock())


def _seconds(text: str | None) -> float:
    """Return for how long a scraper waits (s); for ever where it doesn't say."""
    try:
        seconds = float(text or "inf")
    except ValueError:
        return math.inf
    return seconds if seconds > 0 else math.inf
