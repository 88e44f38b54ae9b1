"""A proxy of an S3 server that fails some requests.

``python -m tests.support.pipelines.s3_between PORT URL``
"""

from __future__ import annotations

import http.client
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_SECONDS = 60.0
_OWN = "/-/fault"
_HOP = ("connection", "transfer-encoding", "content-length")


class Faults:
    """The requests to fail, and how many have failed."""

    rule: dict[str, Any] | None = None
    count = 0
    seen: set[str] = set()  # noqa: RUF012 (there is one)

    @classmethod
    def control(cls, content: bytes) -> str:
        count, cls.count = cls.count, 0
        cls.rule, cls.seen = json.loads(content) if content else None, set()
        return str(count)

    @classmethod
    def of(cls, method: str, path: str) -> str | None:
        rule = cls.rule
        if rule is None or method not in ("PUT", "POST") or rule["contains"] not in path:
            return None
        if rule["once"] and path in cls.seen:
            return None
        cls.seen.add(path)
        cls.count += 1
        return rule["kind"]


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of each connection one after another."""

    protocol_version = "HTTP/1.1"
    address = ""

    def do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == _OWN:
            return self.answer(200, [], Faults.control(body).encode())
        fault = Faults.of(self.command, self.path)
        if fault is not None and fault.startswith("no"):
            return self.answer(503, [], b"")
        status, headers, content = self.asked(body)
        if fault == "lost":
            self.close_connection = True
            return None
        if fault is not None:
            return self.answer(503, [], b"")
        return self.answer(status, headers, content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do  # noqa: N815 (the base class's names)

    def asked(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.address, timeout=_SECONDS)
        try:
            connection.request(self.command, self.path, body, dict(self.headers))
            found = connection.getresponse()
            return found.status, found.getheaders(), found.read()
        finally:
            connection.close()

    def answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        length = str(len(content))
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _HOP:
                self.send_header(name, value)
            elif name.lower() == "content-length" and self.command == "HEAD":
                length = value
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


if __name__ == "__main__":
    Handler.address = sys.argv[2].removeprefix("http://")
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.daemon_threads = True
    server.serve_forever()
