"""A client of a worker's REST interface: create, scale, restart and delete connectors."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from caughtup.models.errors import CaughtupError

_SECONDS = 30.0
#: The status of a worker that rebalances, or is behind its leader in the config topic.
BUSY = 409


class RestFailed(CaughtupError):  # noqa: N818
    """A worker refused a request, or did not answer (then ``status`` is None)."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__("connect_failed", message)
        self.status = status


class RestClient:
    """Sends requests to a worker, which forwards those for its leader. Calls raise RestFailed."""

    def __init__(self, url: str) -> None:
        self.url = url

    def connectors(self) -> list[str]:
        """Return the names of all connectors."""
        names: list[str] = self._ask("GET", "connectors")
        return sorted(names)

    def configure(self, connector: str, config: Mapping[str, str]) -> None:
        """Create a connector, or change its configuration."""
        self._ask("PUT", f"{_path(connector)}/config", dict(config))

    def scale(self, connector: str, tasks: int) -> None:
        """Set a connector's tasks.max."""
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
        """Return the status of a connector and of its tasks, as reported by their workers."""
        status: dict[str, Any] = self._ask("GET", f"{_path(connector)}/status")
        return status

    def is_healthy(self) -> bool:
        """Return whether the worker reports that it has started and is in its group."""
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
