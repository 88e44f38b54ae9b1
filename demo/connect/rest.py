"""A worker's REST interface: its connectors, created, scaled, restarted and deleted."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from caughtup.models.errors import CaughtupError

_SECONDS = 30.0
#: A worker that rebalances, or hasn't read the config topic as far as its leader, says so.
BUSY = 409


class RestFailed(CaughtupError):  # noqa: N818
    """A worker refused a request, or didn't answer; ``status`` is None if it didn't."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__("connect_failed", message)
        self.status = status


class RestClient:
    """Asks a worker, which passes on what is its leader's to do. Every call raises RestFailed."""

    def __init__(self, url: str) -> None:
        self.url = url

    def connectors(self) -> list[str]:
        """Return the names of all connectors."""
        names: list[str] = self._ask("GET", "connectors")
        return sorted(names)

    def configure(self, connector: str, config: Mapping[str, str]) -> None:
        """Create a connector, or give it another configuration."""
        self._ask("PUT", f"{_path(connector)}/config", dict(config))

    def scale(self, connector: str, tasks: int) -> None:
        """Have a connector make so many tasks at most, its configuration otherwise as it is."""
        config = self._ask("GET", f"{_path(connector)}/config")
        self.configure(connector, {**config, "tasks.max": str(tasks)})

    def restart(self, connector: str, *, task: int | None = None) -> None:
        """Restart a connector, without its tasks, or one of its tasks."""
        which = "" if task is None else f"/tasks/{task}"
        self._ask("POST", f"{_path(connector)}{which}/restart")

    def delete(self, connector: str) -> None:
        """Delete a connector."""
        self._ask("DELETE", _path(connector))

    def status(self, connector: str) -> dict[str, Any]:
        """Return the states of a connector and of its tasks, as their workers told them."""
        status: dict[str, Any] = self._ask("GET", f"{_path(connector)}/status")
        return status

    def is_healthy(self) -> bool:
        """Return whether the worker says that it has started and is in its group."""
        try:
            self._ask("GET", "health")
        except RestFailed:
            return False
        return True

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as response:
                answer = response.read()
        except urllib.error.HTTPError as error:
            reason = error.read().decode(errors="replace")
            raise RestFailed(f"{method} {path}: {error.code} {reason:.300}", error.code) from None
        except OSError as error:
            raise RestFailed(f"{method} {path}: {error}") from None
        return json.loads(answer) if answer else None


def _path(connector: str) -> str:
    return f"connectors/{quote(connector, safe='')}"
