"""Make a scenario that fails as small as it can be and still fail."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Scenario = dict[str, Any]

#: A scenario is tried in milliseconds, so that this many take some seconds.
MOST_TRIALS = 3_000


#: Yields smaller scenarios, each made of the one that is current by then.
InTurn = Callable[[Callable[[], Scenario]], Iterator[Scenario]]


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool]) -> Scenario:
    """Shrink a failing scenario to what it still fails with.

    First clients and tasks, by halves, quarters and so on; then what clients had, lags, tags,
    racks and configs, one by one.
    """
    return shrink_by(_in_turn, scenario, fails)


def shrink_by(in_turn: InTurn, scenario: Scenario, fails: Callable[[Scenario], bool]) -> Scenario:
    """Try smaller scenarios in turn, and start over until nothing more can go."""
    least, left = [scenario], MOST_TRIALS
    smaller = True
    while smaller:
        smaller = False
        for candidate in in_turn(lambda: least[0]):
            if candidate == least[0]:
                continue
            if not left:
                return least[0]
            left -= 1
            if fails(candidate):
                least[0], smaller = candidate, True
    return least[0]


def _in_turn(current: Callable[[], Scenario]) -> Iterator[Scenario]:
    """Yield smaller scenarios, each made of the one that is current by then."""
    for what in ("clients", "tasks"):
        names = list(current()[what])
        size = len(names) // 2
        while size:
            for first in range(0, len(names), size):
                yield _without(current(), what, names[first : first + size])
            size //= 2
    for process in list(current()["clients"]):
        yield from _simpler_clients(current, process)
    for name, value in _PLAIN_CONFIGS.items():
        yield _with(current(), ("config", name), value)
    for name in list(current()["config"]):
        if name not in _PLAIN_CONFIGS:
            yield _with(current(), ("config", name), None)
    for part in ("brokers", "replicas"):
        for name in list(current().get(part, ())):
            yield _with(current(), (part, name), None)


_PLAIN_CONFIGS = {
    "acceptable.recovery.lag": 0,
    "max.warmup.replicas": 1,
    "num.standby.replicas": 0,
    "probing.rebalance.interval.ms": 600_000,
}


def _simpler_clients(current: Callable[[], Scenario], process: str) -> Iterator[Scenario]:
    at = ("clients", process)
    yield _with(current(), (*at, "capacity"), 1)
    yield _with(current(), (*at, "tags"), None)
    yield _with(current(), (*at, "rack"), None)
    for field in ("previous_active", "previous_standby"):
        yield _with(current(), (*at, field), [])
        for task in current()["clients"][process][field]:
            rest = [one for one in current()["clients"][process][field] if one != task]
            yield _with(current(), (*at, field), rest)
    for task in list(current()["clients"][process]["lags"]):
        yield _with(current(), (*at, "lags", task), 0)


def _without(scenario: Scenario, what: str, names: list[str]) -> Scenario:
    """Copy a scenario but for some clients, or but for some tasks wherever they are named."""
    smaller = copy.deepcopy(scenario)
    gone = set(names)
    smaller[what] = {name: one for name, one in smaller[what].items() if name not in gone}
    if what == "tasks":
        for client in smaller["clients"].values():
            client["lags"] = {t: lag for t, lag in client["lags"].items() if t not in gone}
            for field in ("previous_active", "previous_standby"):
                client[field] = [task for task in client[field] if task not in gone]
    return smaller if smaller[what] else scenario


def _with(scenario: Scenario, path: tuple[str, ...], value: object) -> Scenario:
    """Copy a scenario but for one field, which is left out if ``value`` is None."""
    changed = copy.deepcopy(scenario)
    *owners, last = path
    owner = changed
    for name in owners:
        owner = owner[name]
    if value is not None:
        owner[last] = value
    else:
        owner.pop(last, None)
    return changed
