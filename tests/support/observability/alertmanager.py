"""A real Alertmanager on loopback, with our own routes and inhibition, and its receivers."""

from __future__ import annotations

import json
import shutil
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from ruamel.yaml import YAML

from caughtup.demo.processes.children import ClosedOnExit, Process, Processes, free_ports
from tests.observability.repository import ROOT, read_yaml
from tests.support.observability.scraping import wait_until_served

DEADLINE_SECONDS = 60.0
CONFIG = ROOT / "prometheus" / "alertmanager.yml"


class Webhook(ClosedOnExit):
    """Keeps Alertmanager's notifications; ``told`` has each alert of each message, oldest first.

    An alert is Alertmanager's own object, with ``receiver``: the path that it was posted to.
    """

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        told = self.told

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                told.extend(
                    {**alert, "receiver": self.path.strip("/")} for alert in message["alerts"]
                )
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Log nothing: a test's output is for its failures."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def alerts(self, name: str, status: str = "firing") -> list[dict[str, Any]]:
        """Return the notifications of an alert by its name."""
        return [a for a in self.told if (a["labels"]["alertname"], a["status"]) == (name, status)]


class Alertmanager:
    """Sends to ``webhook``; it ends with ``processes``.

    Its configuration is prometheus/alertmanager.yml with that address and no delays.
    """

    def __init__(self, processes: Processes, webhook: str, directory: Path) -> None:
        program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
        package = "prometheus-alertmanager"
        assert program, f"{package} is missing: apt-get install --no-install-recommends {package}"
        (port,) = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        config = directory / "alertmanager.yml"
        YAML(typ="safe", pure=True).dump(_configuration(webhook), config)
        self._process: Process = processes.start(
            "alertmanager",
            [
                program,
                f"--config.file={config}",
                f"--storage.path={directory / 'alertmanager'}",
                f"--web.listen-address={self.address}",
                "--cluster.listen-address=",
                "--log.level=warn",
            ],
        )

    def wait_ready(self) -> None:
        """Wait until it serves."""
        wait_until_served(self._process, lambda: self._call("-/ready"))

    def post(self, *alerts: dict[str, str]) -> None:
        """Post alerts by their labels, as Prometheus does."""
        self._call("api/v2/alerts", json.dumps([{"labels": labels} for labels in alerts]).encode())

    def alerts(self) -> list[dict[str, Any]]:
        """Return its current alerts, with the alerts that inhibit each (``status.inhibitedBy``)."""
        known: list[dict[str, Any]] = json.loads(self._call("api/v2/alerts"))
        return known

    def _call(self, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(
            f"http://{self.address}/{path}", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            said: bytes = answer.read()
        return said


def _configuration(webhook: str) -> Any:
    configuration = read_yaml(CONFIG)
    configuration["route"] |= {"group_wait": "0s", "group_interval": "1s"}
    for receiver in configuration["receivers"]:
        (hook,) = receiver["webhook_configs"]
        hook["url"] = f"{webhook}/{receiver['name']}"
    return configuration
