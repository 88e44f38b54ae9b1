"""The settings for what is watched, and for the granularity of metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from caughtup.agents.declared_settings import setting
from caughtup.models.spark_queries import GROUP_PREFIX, read_entry
from caughtup.models.watching import SPARK_DRIVERS, Objectives, WatchPatterns

Granularity = Literal["partition", "topic", "group"]
Exporter = Literal["kafka_exporter", "kminion", "burrow_exporter", "kafka_lag_exporter"]
KAFKA_EXPORTER: Exporter = "kafka_exporter"


def separated(given: object) -> object:
    """Split a variable's value at commas, or parse it as a JSON list, for values with commas."""
    if not isinstance(given, str):
        return given
    if given.lstrip().startswith('["'):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            raise ValueError("the value begins like a JSON list and is not one") from None
    return [value.strip() for value in given.split(",") if value.strip()]


def _are_patterns(given: tuple[str, ...]) -> None:
    for number, pattern in enumerate(given, 1):
        try:
            re.compile(pattern)
        except re.error as error:
            at = f", at its character {error.pos + 1}" if error.pos is not None else ""
            raise ValueError(f"entry {number} is not a regular expression{at}") from None
        except (RecursionError, OverflowError):
            raise ValueError(
                f"entry {number} is a regular expression that is nested too deeply"
            ) from None


def _are_objectives(given: tuple[str, ...]) -> None:
    for number, entry in enumerate(given, 1):
        pattern, _, seconds = entry.rpartition("=")
        if not pattern or not re.fullmatch(r"[0-9]+(\.[0-9]+)?", seconds) or not float(seconds):
            raise ValueError(f"entry {number} is not PATTERN=SECONDS")
        try:
            _are_patterns((pattern,))
        except ValueError as error:
            raise ValueError(str(error).replace("entry 1", f"entry {number}")) from None


def _are_checkpoints(given: tuple[str, ...]) -> None:
    for number, entry in enumerate(given, 1):
        try:
            read_entry(entry)
        except ValueError as error:
            raise ValueError(f"entry {number} {error}") from None


def _exporters(given: object) -> object:
    """Return the named exporters; ``true`` means kafka_exporter, as in earlier releases."""
    if given is True or (isinstance(given, str) and given.lower() in ("true", "1", "yes", "on")):
        return (KAFKA_EXPORTER,)
    if given is False or (isinstance(given, str) and given.lower() in ("false", "0", "no", "off")):
        return ()
    return separated(given)


@dataclass(frozen=True, kw_only=True)
class WatchingSettings:
    """Which groups and topics are watched, and how finely metrics show them."""

    watch_groups: tuple[str, ...] = setting(
        (),
        "Regular expressions for the whole names of the groups that are watched; if "
        "there are none, all are, except caughtup's own and those of Spark's drivers.",
        examples=[["orders-.*", "payments"]],
        read=separated,
        check=_are_patterns,
    )
    ignore_groups: tuple[str, ...] = setting(
        (),
        "Regular expressions for groups that are not watched, whatever watch_groups says.",
        examples=[["console-consumer-[0-9]+"]],
        read=separated,
        check=_are_patterns,
    )
    watch_topics: tuple[str, ...] = setting(
        (),
        "Regular expressions for the whole names of the topics on which groups are "
        "watched; if there are none, all are.",
        examples=[["orders\\..*"]],
        read=separated,
        check=_are_patterns,
    )
    ignore_topics: tuple[str, ...] = setting(
        (),
        "Regular expressions for topics on which groups are not watched, whatever "
        "watch_topics says.",
        examples=[["test-.*"]],
        read=separated,
        check=_are_patterns,
    )
    metrics_granularity: Granularity = setting(
        "partition",
        "Whether a group has a series in each metric for each partition, for each "
        "topic, or one for the group.",
    )
    metrics_group_limit: int | None = setting(
        None,
        "The most series that a group has in one metric: a group with more partitions "
        "has series by topic, and one with more topics, too, one series.",
        ge=1,
        examples=[1000],
    )

    compat_metrics: tuple[Exporter, ...] = setting(
        (),
        "Exporters under whose metric names lag is also served, for existing "
        "dashboards: kafka_exporter, kminion, burrow_exporter, kafka_lag_exporter.",
        examples=[["kafka_exporter"]],
        read=_exporters,
    )
    lag_objectives: tuple[str, ...] = setting(
        (),
        "PATTERN=SECONDS: the greatest age that the oldest unread record of a group "
        "may have. The first regular expression that matches the group's whole name counts; an "
        "alert goes by it.",
        examples=[["orders-.*=60", ".*=900"]],
        read=separated,
        check=_are_objectives,
    )
    spark_checkpoints: tuple[str, ...] = setting(
        (),
        "[NAME=]URI: checkpoints of Spark Structured Streaming, or folders under "
        "which they lie, up to three deep; each query is shown as the group spark:NAME, or by its "
        "folder.",
        examples=[["/data/checkpoints", "orders=s3://bucket/orders-checkpoint"]],
        read=separated,
        check=_are_checkpoints,
    )
    spark_checkpoints_interval: float = setting(
        10.0, "Seconds between two reads of the checkpoints.", ge=1, le=20
    )
    spark_checkpoints_commit: bool = setting(
        False,
        "Also commit the checkpoints' offsets to Kafka under those groups, for the "
        "history and for any tool that reads groups. Spark itself never reads these commits.",
    )
    legacy_status_values: bool = setting(
        False,
        "Write statuses of metrics with spaces, such as dead target, as earlier "
        "releases did; the next release does not know this setting.",
    )

    def contradictions(self) -> Iterator[str]:
        """Yield a line for each setting that another one rules out."""
        for kind in ("groups", "topics"):
            watched, ignored = (getattr(self, f"{verb}_{kind}") for verb in ("watch", "ignore"))
            for number, pattern in enumerate(ignored, 1):
                if pattern in watched:
                    yield (
                        f"ignore_{kind} contradicts watch_{kind}: its entry {number} is entry "
                        f"{watched.index(pattern) + 1} there, so that no such group is watched"
                    )
        if self.metrics_group_limit is not None and self.metrics_granularity == "group":
            yield (
                "metrics_group_limit contradicts metrics_granularity=group, which has one series a group"
            )

    def objectives(self) -> Objectives:
        """Return the objectives: how old the oldest unread record of a group may be."""
        given = (entry.rpartition("=") for entry in self.lag_objectives)
        return Objectives([(pattern, float(seconds)) for pattern, _, seconds in given])

    def patterns(self, application_id: str) -> WatchPatterns:
        """Return the patterns, with those of Spark drivers' groups and the service's own."""
        return WatchPatterns(
            self.watch_groups,
            self.ignore_groups,
            self.watch_topics,
            self.ignore_topics,
            (SPARK_DRIVERS, re.escape(application_id)),
            (rf"(?s:{re.escape(GROUP_PREFIX)}.*)",) if self.spark_checkpoints else (),
        )
