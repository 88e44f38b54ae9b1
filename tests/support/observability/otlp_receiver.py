"""What receives metrics over OTLP: an HTTP server that decodes the protocol's own messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

Series = tuple[str, tuple[tuple[str, str], ...]]


class Receiver:
    """The requests received so far. ``answers`` returns a request's status; it may block."""

    def __init__(self) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []
        self.answers: Callable[[], int] = lambda: 200
        self.url = ""

    def metrics(self) -> Iterator[Metric]:
        for request in self.requests:
            for of_resource in request.resource_metrics:
                for of_scope in of_resource.scope_metrics:
                    assert of_scope.scope.name == "caughtup"
                    yield from of_scope.metrics

    def resources(self) -> list[dict[str, str]]:
        return [
            attributes(of_resource.resource.attributes)
            for request in self.requests
            for of_resource in request.resource_metrics
        ]

    def series(self) -> dict[Series, float]:
        """Return every series with its value; the test fails if one comes twice."""
        found: dict[Series, float] = {}
        for metric in self.metrics():
            kind = metric.WhichOneof("data")
            if kind == "sum":
                assert metric.sum.is_monotonic
                cumulative = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
                assert metric.sum.aggregation_temporality == cumulative
            for point in getattr(metric, kind).data_points:
                assert point.time_unix_nano >= point.start_time_unix_nano
                assert (point.start_time_unix_nano > 0) == (kind == "sum")
                series = (metric.name, tuple(sorted(attributes(point.attributes).items())))
                assert series not in found, series
                found[series] = point.as_double
        return found


def attributes(given: list[KeyValue]) -> dict[str, str]:
    return {one.key: one.value.string_value for one in given}


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Receive metrics on a port of loopback."""
    receiver = Receiver()

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Print nothing where a client left; what it sent is not among the requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == "application/x-protobuf"
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            request = ExportMetricsServiceRequest.FromString(body)
            if (status := receiver.answers()) == 200:
                receiver.requests.append(request)
            answer = ExportMetricsServiceResponse().SerializeToString()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = Server(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/v1/metrics"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
