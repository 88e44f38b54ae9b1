"""What can be set of what is watched, and of how finely it is told in metrics."""

from __future__ import annotations

import json
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from caughtup.models.watching import SPARK_DRIVERS, WatchPatterns

Granularity = Literal["partition", "topic", "group"]


def separated(given: object) -> object:
    """Split a variable's values at commas, or read them as a JSON list: patterns may have commas."""
    if not isinstance(given, str):
        return given
    if given.lstrip().startswith('["'):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            raise ValueError("it begins as a JSON list and is none") from None
    return [value.strip() for value in given.split(",") if value.strip()]


def _are_patterns(given: tuple[str, ...]) -> tuple[str, ...]:
    for number, pattern in enumerate(given, 1):
        try:
            re.compile(pattern)
        except re.error as error:
            at = f", at its character {error.pos + 1}" if error.pos is not None else ""
            raise ValueError(f"entry {number} is no regular expression{at}") from None
        except (RecursionError, OverflowError):
            raise ValueError(f"entry {number} is too deep a regular expression") from None
    return given


Patterns = Annotated[tuple[str, ...], BeforeValidator(separated), AfterValidator(_are_patterns)]


class WatchingSettings(BaseModel):
    """Which groups and topics are watched, and how finely they are told in metrics."""

    watch_groups: Patterns = Field(
        default=(),
        description="Regular expressions for the whole names of the groups that are watched; "
        "without any all are, but for caughtup's own and those of Spark's drivers.",
        examples=[["orders-.*", "payments"]],
    )
    ignore_groups: Patterns = Field(
        default=(),
        description="The same for groups that aren't watched, whatever watch_groups says.",
        examples=[["console-consumer-[0-9]+"]],
    )
    watch_topics: Patterns = Field(
        default=(),
        description="Regular expressions for the whole names of the topics on which groups are "
        "watched; without any all are.",
        examples=[["orders\\..*"]],
    )
    ignore_topics: Patterns = Field(
        default=(),
        description="The same for topics on which they aren't, whatever watch_topics says.",
        examples=[["test-.*"]],
    )
    metrics_granularity: Granularity = Field(
        default="partition",
        description="What a group has a series of in each metric: partition, topic or group.",
    )
    metrics_group_limit: int | None = Field(
        default=None,
        ge=1,
        description="The most series that a group has in one metric: one with more partitions is "
        "told of by topic, and one with more topics, too, as a whole.",
        examples=[1000],
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        for kind in ("groups", "topics"):
            watched, ignored = (getattr(self, f"{verb}_{kind}") for verb in ("watch", "ignore"))
            for number, pattern in enumerate(ignored, 1):
                if pattern in watched:
                    raise ValueError(
                        f"ignore_{kind} contradicts watch_{kind}: its entry {number} is entry "
                        f"{watched.index(pattern) + 1} there, so that none of these is watched"
                    )
        if self.metrics_group_limit is not None and self.metrics_granularity == "group":
            raise ValueError(
                "metrics_group_limit contradicts metrics_granularity: by group there is one series"
            )
        return self

    def patterns(self, application_id: str) -> WatchPatterns:
        """Return the patterns, with those of the groups that are folded away."""
        return WatchPatterns(
            self.watch_groups,
            self.ignore_groups,
            self.watch_topics,
            self.ignore_topics,
            (SPARK_DRIVERS, re.escape(application_id)),
        )
