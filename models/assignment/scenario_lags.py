"""The lags of a scenario as JSON has it, where each task's greatest stands but once.

A client with no state of a task lags by all there is, and so do nearly all clients of a large
group; ``greatest_lags`` says that once for each task, and a client's ``lags`` say what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NO_LAGS: Mapping[str, int] = {}


def greatest_lags(scenario: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the lag of whoever doesn't say, by task; nothing where every client says its own."""
    lags: Mapping[str, int] = scenario.get("greatest_lags", NO_LAGS)
    return lags


def lag_of(scenario: Mapping[str, Any], process: str, task: str) -> int | None:
    """Return a client's lag of a task in offsets or Kafka's sentinels; None without state."""
    lag: int | None = scenario["clients"][process]["lags"].get(task)
    return greatest_lags(scenario).get(task) if lag is None else lag
