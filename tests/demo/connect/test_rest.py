"""A worker's REST interface, asked for what the demo and tests need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from caughtup.demo.connect.workers import BUSY, RestClient, RestFailed

ODD = "an/odd name?"
ESCAPED = "an%2Fodd%20name%3F"


class Worker(HTTPServer):
    """Answers what it was told to, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: list[tuple[str, object]] = []


class _Handler(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        assert isinstance(self.server, Worker)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        what = f"{self.command} {self.path}"
        self.server.asked.append((what, json.loads(body) if body else None))
        status, answer = self.server.answers.get(what, (200, b""))
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def rest(worker: Worker) -> RestClient:
    return RestClient(f"http://127.0.0.1:{worker.server_port}/")


def test_connectors_are_created_restarted_and_deleted_by_any_name(
    worker: Worker, rest: RestClient
) -> None:
    rest.configure(ODD, {"tasks.max": "1"})
    rest.restart(ODD)
    rest.restart(ODD, task=3)
    rest.delete(ODD)

    assert worker.asked == [
        (f"PUT /connectors/{ESCAPED}/config", {"tasks.max": "1"}),
        (f"POST /connectors/{ESCAPED}/restart", None),
        (f"POST /connectors/{ESCAPED}/tasks/3/restart", None),
        (f"DELETE /connectors/{ESCAPED}", None),
    ]


def test_scaling_leaves_the_rest_of_the_configuration(worker: Worker, rest: RestClient) -> None:
    worker.answers["GET /connectors/A/config"] = (200, b'{"topics": "t", "tasks.max": "1"}')

    rest.scale("A", 4)

    assert worker.asked[-1] == ("PUT /connectors/A/config", {"topics": "t", "tasks.max": "4"})


def test_what_is_refused_says_why_and_with_which_status(worker: Worker, rest: RestClient) -> None:
    worker.answers["DELETE /connectors/A"] = (409, b'{"message": "rebalance is in process"}')

    with pytest.raises(RestFailed, match="rebalance is in process") as failed:
        rest.delete("A")

    assert failed.value.status == BUSY


def test_who_does_not_answer_is_not_healthy(worker: Worker, rest: RestClient) -> None:
    assert rest.is_healthy()
    worker.answers["GET /health"] = (503, b"{}")
    assert not rest.is_healthy()
    assert not RestClient("http://127.0.0.1:1/").is_healthy()
