"""The settings of an application: configs that are not on the wire, under Kafka's names."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

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
_JavaInt = Annotated[int, Field(ge=_INT_MIN, le=_INT_MAX)]

ApplicationConfig: type[BaseModel] = create_model(
    "ApplicationConfig",
    __config__=ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False),
    changelogs=(
        dict[int, tuple[str, ...]] | None,
        Field(
            default=None,
            description="Its changelog topics by subtopology; inferred if not set.",
            examples=[{0: ["orders-latest-changelog"]}],
        ),
    ),
    tags=(
        tuple[str, ...] | None,
        Field(
            default=None,
            alias=TAGS,
            max_length=MOST_TAGS,
            description="The client tags over which its standbys are spread.",
            examples=[["zone"]],
        ),
    ),
    assignor=(
        Literal["high_availability", "sticky", "public_sticky", "fallback_prior"] | None,
        Field(
            default=None,
            description="Its task assignor, by the name that `caughtup assign` uses.",
            examples=["high_availability"],
        ),
    ),
    strategy=(
        Literal["none", "min_traffic", "balance_subtopology"] | None,
        Field(
            default=None,
            alias=STRATEGY,
            description="How its tasks are assigned by racks, if all clients have one.",
            examples=["min_traffic"],
        ),
    ),
    traffic_cost=(
        _JavaInt | None,
        Field(
            default=None,
            alias=TRAFFIC_COST,
            description="The cost of reading across racks; the assignor's default if it is not "
            "set.",
            examples=[10],
        ),
    ),
    non_overlap_cost=(
        _JavaInt | None,
        Field(
            default=None,
            alias=NON_OVERLAP_COST,
            description="The cost of moving a task; the assignor's default if it is not set.",
            examples=[1],
        ),
    ),
    **{
        name.replace(".", "_"): (
            int | None,
            Field(default=None, alias=name, ge=MINIMUMS[name], examples=[default]),
        )
        for name, default in DEFAULTS.items()
    },  # type: ignore[call-overload]
)


def parameters_of(application: BaseModel) -> ApplicationParameters:
    """Return an application's settings as the models' ApplicationParameters."""
    given: dict[str, Any] = application.model_dump(by_alias=True, exclude_none=True)
    return ApplicationParameters(
        changelogs=given.pop("changelogs", None),
        tags=given.pop(TAGS, None),
        assignor=given.pop("assignor", None),
        strategy=given.pop(STRATEGY, None),
        costs=(given.pop(TRAFFIC_COST, None), given.pop(NON_OVERLAP_COST, None)),
        config=given,
    )
