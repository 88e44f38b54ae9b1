"""An S3 server, and a proxy that fails as told, each in a process of its own.

The library holds Python's lock while it waits for an answer, so a server in its process could not
answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

from caughtup.demo.processes.children import free_ports

BUCKET = "lake"
SECRET = "wJalrXUtnFEMI-K7MDENG"
ROOT = Path(__file__).resolve().parents[3]
_SECONDS = 120.0


@contextmanager
def s3_server(log: Path) -> Iterator[str]:
    """Start an S3 server with a bucket, and yield its URL."""
    (port,) = free_ports(1)
    command = ["-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with served(command, f"http://127.0.0.1:{port}", f"/{BUCKET}", log) as url:
        yield url


@contextmanager
def between(s3: str, log: Path) -> Iterator[Between]:
    """Start a proxy in front of an S3 server."""
    (port,) = free_ports(1)
    command = ["-m", "tests.support.pipelines.s3_between", str(port), s3]
    with served(command, f"http://127.0.0.1:{port}", "/-/fault", log) as url:
        yield Between(url)


class Between:
    """The proxy's URL, and control of its failures."""

    def __init__(self, url: str) -> None:
        self.url = url

    def fail(self, contains: str, kind: str, *, once: bool = False) -> None:
        """Fail PUT and POST requests whose path contains a text.

        ``kind``: ``503`` or ``lost`` (no answer) after the store did the work; ``no 503`` without
        asking the store. ``once``: only the first request of each path.
        """
        rule = {"contains": contains, "kind": kind, "once": once}
        put(f"{self.url}/-/fault", json.dumps(rule).encode())

    def stop_failing(self) -> int:
        """Stop failing requests, and return how many failed."""
        return int(put(f"{self.url}/-/fault", b""))


@contextmanager
def served(arguments: list[str], url: str, ready: str, log: Path) -> Iterator[str]:
    """Run a server in Python until the context is left; enter once it answers."""
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, *arguments], stdout=out, stderr=out, cwd=ROOT)
    try:
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                put(f"{url}{ready}", b"")
                break
            except (URLError, ConnectionError):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
        yield url
    finally:
        process.kill()
        process.wait()


def put(url: str, content: bytes) -> str:
    """Put content, and return the answer."""
    request = urllib.request.Request(url, content, method="PUT")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def options(url: str) -> dict[str, str]:
    """Return the Delta library's options for an S3 server."""
    return {
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
    }
