"""The settings of a replay: an assignor, and configs other than the recorded ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from caughtup.models.assignors.registry import ASSIGNORS
from caughtup.models.errors import ScenarioError
from caughtup.models.parameters import MINIMUMS
from caughtup.models.replay.recorded import ScenarioJson

#: Kafka's default assignor.
KAFKAS = "high_availability"
#: Each setting is a whole replay, and more are probably a mistake.
MOST_SETTINGS = 100
_INT_MAX, _LONG_MAX = (1 << 31) - 1, (1 << 63) - 1
_GREATEST = {"max.warmup.replicas": _INT_MAX, "num.standby.replicas": _INT_MAX}


class ReplaySetting(NamedTuple):
    """An assignor by its name in scenarios, and the configs that replace the recorded ones."""

    assignor: str
    config: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return ", ".join([self.assignor, *(f"{name}={value}" for name, value in self.config)])

    def of(self, scenario: ScenarioJson) -> dict[str, object]:
        """Return a scenario under this setting, otherwise unchanged."""
        config = {**scenario.get("config", {}), **dict(self.config)}
        return {**scenario, "assignor": self.assignor, "config": config}


def replay_settings(what: Sequence[str], assignors: Sequence[str]) -> tuple[ReplaySetting, ...]:
    """Return every combination of assignors and configs, for each assignor the recorded ones first.

    ``what``: texts such as ``max.warmup.replicas=2,4,8``; ``assignors``: names, Kafka's default if
    empty. Raises ScenarioError ``unsupported``, ``unknown_config``, ``bad_field``, ``duplicate`` or ``too_many``,
    whose message names the cause.
    """
    for assignor in assignors:
        if assignor not in ASSIGNORS:
            known = ", ".join(sorted(ASSIGNORS))
            raise ScenarioError("unsupported", f"assignor {assignor!r:.80} is not among {known}")
    choices: dict[str, list[tuple[str, int]]] = {}
    for text in what:
        name, values = _choice(text)
        if name in choices:
            raise ScenarioError("duplicate", f"{name} is given twice; separate values by commas")
        choices[name] = [(name, value) for value in values]
    combined = [tuple(one) for one in product(*choices.values())]
    configs = [(), *combined] if choices else [()]
    settings = tuple(
        ReplaySetting(assignor, config)
        for assignor in dict.fromkeys(assignors or (KAFKAS,))
        for config in configs
    )
    if len(settings) > MOST_SETTINGS:
        raise ScenarioError(
            "too_many", f"{len(settings):,} combinations are more than {MOST_SETTINGS}"
        )
    return settings


def _choice(text: str) -> tuple[str, list[int]]:
    name, equals, values = text.partition("=")
    if name not in MINIMUMS:
        known = ", ".join(sorted(MINIMUMS))
        raise ScenarioError("unknown_config", f"setting {name!r:.80} is not among {known}")
    if not equals:
        raise ScenarioError("bad_field", f"{name}: give its values, such as {name}=2,4,8")
    return name, list(dict.fromkeys(_value(name, value.strip()) for value in values.split(",")))


def _value(name: str, text: str) -> int:
    least, greatest = MINIMUMS[name], _GREATEST.get(name, _LONG_MAX)
    value = (
        int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(_LONG_MAX)) else -1
    )
    if not least <= value <= greatest:
        raise ScenarioError(
            "bad_field", f"{name}: {text!r:.80} is not a number from {least:,} to {greatest:,}"
        )
    return value
