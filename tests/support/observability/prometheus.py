"""A real Prometheus on loopback, with our own configuration and rules, scraping one service."""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from caughtup.demo.processes.children import Process, Processes, free_ports
from tests.observability.repository import ROOT, RULES, read_yaml
from tests.support.observability.scraping import wait_until_served

SCRAPE_SECONDS = 1


class Prometheus:
    """Scrapes ``target`` (host:port) every second; it ends with ``processes``.

    Its configuration is prometheus/prometheus.yml with that target and shorter intervals; alerts of
    the rules in ``rules`` go to ``alertmanager`` (host:port), if given. ``job`` is added to the
    scrape job.
    """

    def __init__(
        self,
        processes: Processes,
        target: str,
        directory: Path,
        alertmanager: str | None = None,
        rules: Path = RULES,
        **job: Any,
    ) -> None:
        program = shutil.which("prometheus")
        assert program, "prometheus is missing: apt-get install --no-install-recommends prometheus"
        (self._port,) = free_ports(1)
        config = directory / "prometheus.yml"
        YAML(typ="safe", pure=True).dump(_configuration(target, alertmanager, rules, job), config)
        self._process: Process = processes.start(
            "prometheus",
            [
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{self._port}",
                "--log.level=warn",
            ],
        )

    def wait_ready(self) -> None:
        """Wait until it serves."""
        wait_until_served(self._process, lambda: self._get("-/ready"))

    def instant(self, expression: str, at: float) -> list[Any]:
        """Return an expression's result at a time (s)."""
        return list(self.api("query", query=expression, time=str(at))["result"])

    def over(self, expression: str, start: float, end: float) -> list[Any]:
        """Return an expression's result over a time range (s), one value a second."""
        asked = {"query": expression, "start": str(start), "end": str(end), "step": "1"}
        return list(self.api("query_range", **asked)["result"])

    def api(self, path: str, **parameters: str) -> Any:
        """Call the HTTP API; fails with Prometheus' message when it refuses."""
        try:
            answer = json.loads(self._get(f"api/v1/{path}?{urllib.parse.urlencode(parameters)}"))
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None
        assert answer["status"] == "success", answer
        assert "warnings" not in answer, answer["warnings"]
        return answer["data"]

    def scraped_after(self, moment: float) -> bool:
        """Return whether a scrape that began after a time (s) has completed."""
        # Except for a plain selector, timestamp() returns the time of the query.
        up = 'up{job="caughtup"}'
        stamped = self.instant(f"timestamp({up}) and {up} == 1", time.time())
        return any(float(row["value"][1]) > moment for row in stamped)

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/{path}", timeout=10) as answer:
            body: bytes = answer.read()
        return body


def _configuration(target: str, alertmanager: str | None, rules: Path, more: dict[str, Any]) -> Any:
    configuration = read_yaml(ROOT / "prometheus" / "prometheus.yml")
    every = f"{SCRAPE_SECONDS}s"
    configuration["global"] |= {"scrape_interval": every, "evaluation_interval": every}
    configuration["rule_files"] = [str(rules)]
    (receiver,) = configuration["alerting"]["alertmanagers"]
    receiver["static_configs"] = [{"targets": [alertmanager] if alertmanager else []}]
    (job,) = configuration["scrape_configs"]
    del job["dns_sd_configs"]
    job |= {**more, "static_configs": [{"targets": [target]}]}
    return configuration
