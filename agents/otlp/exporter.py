"""Send all metrics over OTLP at intervals. An endpoint that fails or hangs costs itself only.

The lines are made on the event loop in short turns, as for a scrape; a thread makes points of them
and sends them. A thread whose request hangs beyond all time-outs is left alone, and nothing more is
sent until it returns.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from threading import Thread
from typing import Protocol

from mode import Service
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData

from caughtup.agents.clock import now_ms
from caughtup.agents.otlp.points import MetricLines, Times, metrics_data, resource
from caughtup.agents.process.health import OTLP, Health
from caughtup.agents.process.turns import in_turns
from caughtup.agents.web.served_metrics import ServedMetrics

log = logging.getLogger(__name__)

#: How long a request may take with all its attempts, and after which a thread counts as hanging.
TIME_OUT_SECONDS, HANGING_SECONDS = 10.0, 15.0
#: How much text a request has: some thousand points, far below what receivers take (4 MB).
REQUEST_BYTES = 400_000
_REASON_CHARACTERS = 300


class Sender(Protocol):
    """What sends a request: OpenTelemetry's exporter."""

    def export(self, metrics_data: MetricsData, timeout_millis: float = ...) -> MetricExportResult:
        """Send, and return whether it was received."""
        ...

    def shutdown(self) -> None:
        """Send no more, and stop waiting for another attempt."""
        ...


class _Reasons(logging.Handler):
    """Keeps the newest of the exporter's messages, which it logs for each attempt."""

    newest = "no reason was given"

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self.newest = " ".join(record.getMessage().split())[:_REASON_CHARACTERS]


class OtlpExporter(Service):
    """Sends the metrics to ``endpoint`` every ``interval`` seconds."""

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        endpoint: str,
        interval: float,
        metrics: ServedMetrics,
        health: Health,
        cluster: str,
        clock: Callable[[], int] = now_ms,
        hanging_seconds: float = HANGING_SECONDS,
    ) -> None:
        super().__init__()
        self._interval = interval
        self._metrics = metrics
        self._health = health
        self._clock = clock
        self._hanging_seconds = hanging_seconds
        self._started_ms = clock()
        self._reasons = _Reasons()
        logger = logging.getLogger("opentelemetry.exporter")
        logger.addHandler(self._reasons)
        logger.propagate = False
        self._sender: Sender = OTLPMetricExporter(
            endpoint=endpoint, timeout=TIME_OUT_SECONDS, compression=Compression.Gzip
        )
        instance = f"{socket.gethostname()}:{os.getpid()}"
        self._resource = resource(cluster, health.cluster_name, instance)
        #: What a thread is sending; kept while it hangs.
        self._sending: asyncio.Future[str | None] | None = None

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            began = time.monotonic()
            try:
                problem = await self.send_all()
            except Exception as error:  # noqa: BLE001 - a metric that cannot be made breaks no other part
                problem = f"{type(error).__name__}: {error}"
            if problem is None:
                self._health.recovered(OTLP)
            elif self._health.failed(OTLP):
                log.warning("metrics were not sent over OTLP: %s", problem)
            await self.sleep(max(0.0, self._interval - (time.monotonic() - began)))

    async def on_stop(self) -> None:
        """End the attempts of a request that fails."""
        self._sender.shutdown()

    async def send_all(self) -> str | None:
        """Send all metrics once, in several requests; return why it failed, or None.

        After a request that failed the rest is not sent.
        """
        if self._sending is not None and not self._sending.done():
            return "the endpoint still has not answered an earlier request"
        now = self._clock()
        times = Times(now, self._started_ms)
        scrape, families = self._metrics.families(now)
        batch: list[MetricLines] = []
        size = 0
        for family in families:
            async for text in in_turns(family.text(scrape, openmetrics=False)):
                batch.append(MetricLines(family, text))
                size += len(text)
                if size >= REQUEST_BYTES:
                    if (problem := await self._send(batch, times)) is not None:
                        return problem
                    batch, size = [], 0
        return await self._send(batch, times)

    async def _send(self, batch: list[MetricLines], times: Times) -> str | None:
        """Send a request; return why it was not received, or None."""
        loop = asyncio.get_running_loop()
        sending: asyncio.Future[str | None] = loop.create_future()
        self._sending = sending

        def done(problem: str | None) -> None:
            if not sending.done():
                sending.set_result(problem)

        def work() -> None:
            problem = self._sent(batch, times)
            if not loop.is_closed():
                loop.call_soon_threadsafe(done, problem)

        # Not a pool's thread, for which the process would wait at its end.
        Thread(target=work, name="otlp", daemon=True).start()
        await asyncio.wait((sending,), timeout=self._hanging_seconds)
        if sending.done():
            return sending.result()
        return f"the endpoint has not answered for {self._hanging_seconds:.0f} s"

    def _sent(self, batch: list[MetricLines], times: Times) -> str | None:
        """Make points and send them, on a thread; return why they were not received, or None."""
        try:
            result = self._sender.export(metrics_data(batch, times, self._resource))
        except Exception as error:  # noqa: BLE001 - the exporter's own errors
            return f"{type(error).__name__}: {error}"[:_REASON_CHARACTERS]
        return None if result is MetricExportResult.SUCCESS else self._reasons.newest
