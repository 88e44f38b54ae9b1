"""A real Prometheus scrapes a Connect group that is played: every panel has data."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from caughtup.demo.processes.children import Processes
from tests.observability.test_dashboard import SET, panels
from tests.support.connect.clusters import stormy
from tests.support.observability.prometheus import Prometheus
from tests.support.observability.scraping import text
from tests.support.service import wait_for

SECONDS = 60.0
CONNECT = SET["caughtup-connect"]
TARGETS = [
    pytest.param(target, id=f"{panel['title']} {target['refId']}")
    for panel in panels(CONNECT)
    for target in panel["targets"]
]


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    """A Prometheus that has scraped the group twice."""
    state = stormy(int(time.time() * 1000)).state

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text(state).encode())

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        with Processes() as processes:
            target = f"127.0.0.1:{server.server_address[1]}"
            found = Prometheus(processes, target, processes.directory)
            found.wait_ready()
            scrapes = "count_over_time(caughtup_connect_generation[10s]) >= 2"
            wait_for("two scrapes", lambda: found.instant(scrapes, time.time()), SECONDS)
            yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("target", TARGETS)
def test_every_expression_has_data(prometheus: Prometheus, target: dict[str, Any]) -> None:
    expression = target["expr"].replace("$cluster", ".*").replace("$group", ".*")
    expression = expression.replace("$__rate_interval", "10s")
    assert prometheus.instant(expression, time.time()), f"no data: {expression}"
