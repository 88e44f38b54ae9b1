"""The settings of an application: configs that are not on the wire, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from caughtup.agents.declared_settings import setting, settings_of
from caughtup.models.parameters import (
    DEFAULTS,
    MINIMUMS,
    MOST_TAGS,
    NON_OVERLAP_COST,
    STRATEGY,
    TAGS,
    TRAFFIC_COST,
    ApplicationParameters,
)

_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1


def _config(name: str) -> Any:
    return setting(None, name=name, ge=MINIMUMS[name], examples=[DEFAULTS[name]])


@dataclass(frozen=True, kw_only=True)
class ApplicationConfig:
    """The configs of an application that are set; None for the others."""

    changelogs: dict[int, tuple[str, ...]] | None = setting(
        None,
        "Its changelog topics by subtopology; inferred if not set.",
        examples=[{0: ["orders-latest-changelog"]}],
    )
    tags: tuple[str, ...] | None = setting(
        None,
        "The client tags over which its standbys are spread.",
        name=TAGS,
        max_length=MOST_TAGS,
        examples=[["zone"]],
    )
    assignor: Literal["high_availability", "sticky", "public_sticky", "fallback_prior"] | None = (
        setting(
            None,
            "Its task assignor, by the name that `caughtup assign` uses.",
            examples=["high_availability"],
        )
    )
    strategy: Literal["none", "min_traffic", "balance_subtopology"] | None = setting(
        None,
        "How its tasks are assigned by racks, if all clients have one.",
        name=STRATEGY,
        examples=["min_traffic"],
    )
    traffic_cost: int | None = setting(
        None,
        "The cost of reading across racks; the assignor's default if it is not set.",
        name=TRAFFIC_COST,
        ge=_INT_MIN,
        le=_INT_MAX,
        examples=[10],
    )
    non_overlap_cost: int | None = setting(
        None,
        "The cost of moving a task; the assignor's default if it is not set.",
        name=NON_OVERLAP_COST,
        ge=_INT_MIN,
        le=_INT_MAX,
        examples=[1],
    )
    acceptable_recovery_lag: int | None = _config("acceptable.recovery.lag")
    max_warmup_replicas: int | None = _config("max.warmup.replicas")
    num_standby_replicas: int | None = _config("num.standby.replicas")
    probing_rebalance_interval_ms: int | None = _config("probing.rebalance.interval.ms")

    def given(self) -> dict[str, Any]:
        """Return the configs that are set, under Kafka's names."""
        known = settings_of(ApplicationConfig).items()
        found = {one.name: getattr(self, key) for key, one in known}
        return {name: value for name, value in found.items() if value is not None}

    def parameters(self) -> ApplicationParameters:
        """Return the configs as the models' ApplicationParameters."""
        given = self.given()
        return ApplicationParameters(
            changelogs=given.pop("changelogs", None),
            tags=given.pop(TAGS, None),
            assignor=given.pop("assignor", None),
            strategy=given.pop(STRATEGY, None),
            costs=(given.pop(TRAFFIC_COST, None), given.pop(NON_OVERLAP_COST, None)),
            config=given,
        )
