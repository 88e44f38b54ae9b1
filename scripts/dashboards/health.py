"""The dashboard of caughtup itself: readers and probes, refused records, parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scripts.dashboards.layout import STARTS, made
from scripts.dashboards.links import HEALTH, Link
from scripts.dashboards.panels import lines, stat
from scripts.dashboards.spark import spark


def health() -> str:
    """Return the dashboard of caughtup itself as JSON."""
    return made(
        "caughtup-health",
        "caughtup: its own health",
        "Whether caughtup's figures can be relied upon: what it reads, how old it is, what failed.",
        marks=(STARTS,),
        top=(reader(HEALTH, width=6, height=8), *_reading()),
        rows={
            "What failed, was refused or set aside": _failures(),
            "Instances and their parts": _instances(),
            "Streams on Spark": spark(),
        },
    )


def reader(links: Sequence[Link], width: int, height: int = 4) -> Any:
    """Return the panel that shows whether ``__consumer_offsets`` is read to its end."""
    return stat(
        "Reader",
        "Whether the log of __consumer_offsets was read to its end. "
        "Until then no group's lag is shown.",
        "min(caughtup_offsets_reader_ready{CLUSTER})",
        links,
        texts={"0": ("catching up", "red"), "1": ("ready", "green")},
        width=width,
        height=height,
    )


def _reading() -> tuple[Any, ...]:
    read = "sum by (key_type) (rate(caughtup_offsets_records%s_total{CLUSTER}[$__rate_interval]))"
    return (
        lines(
            "Age of the last answers",
            "Since each probe last succeeded, and since the brokers last answered the reader on "
            "every partition. The line is where the alert on probes starts; the one on the reader "
            "starts at 30 s.",
            ("caughtup_snapshot_age_seconds{CLUSTER}", "{{source}}"),
            ("time() - caughtup_offsets_last_poll_timestamp_seconds{CLUSTER}", "reader"),
            links=HEALTH,
            unit="s",
            limits=((60, "red"),),
            width=18,
        ),
        lines(
            "Reader's lag",
            "Records of __consumer_offsets it has yet to read.",
            ("caughtup_offsets_reader_lag_records{CLUSTER}", "{{cluster}}"),
            links=HEALTH,
        ),
        lines(
            "Records read",
            "By key type, a second: 0 and 1 are commits, 2 is group metadata. "
            "Skipped: types that are not read.",
            (read % "", "type {{key_type}}"),
            (read % "_skipped", "skipped, type {{key_type}}"),
            links=HEALTH,
            unit="ops",
        ),
        lines(
            "Errors",
            "Records that could not be read, and probes that failed, in each interval.",
            (
                "sum by (code) (increase(caughtup_decode_errors_total{CLUSTER}[$__rate_interval]))",
                "decode {{code}}",
            ),
            (
                "sum by (probe) (increase(caughtup_probe_errors_total{CLUSTER}[$__rate_interval]))",
                "probe {{probe}}",
            ),
            links=HEALTH,
        ),
    )


def _failures() -> tuple[Any, ...]:
    refused = "rate(caughtup_records_refused_total{CLUSTER}[$__rate_interval])"
    faults = "rate(caughtup_faults_total{CLUSTER}[$__rate_interval])"
    return (
        lines(
            "Left out",
            "Failures a second to process a group, topic or partition, by part and cause. A failure is a bug: the log has its traceback.",
            (f"sum by (part, cause) ({faults}) or vector(0)", "{{part}}: {{cause}}"),
            links=HEALTH,
            width=12,
        ),
        lines(
            "Failed last",
            "Groups, topics and partitions that failed last, and how often.",
            (
                "max by (subject, part) (caughtup_recent_faults{CLUSTER}) or vector(0)",
                "{{subject}}: {{part}}",
            ),
            links=HEALTH,
            width=12,
        ),
        lines(
            "Records refused",
            "Records a second on the service's own topics that broke the rules of their kind, "
            "by topic and reason.",
            (f"sum by (topic, reason) ({refused}) or vector(0)", "{{topic}}: {{reason}}"),
            links=HEALTH,
        ),
        lines(
            "Records set aside",
            "Records of the service that no broker accepts, by topic and reason.",
            (
                "sum by (topic, reason) (caughtup_records_set_aside_total{CLUSTER}) or vector(0)",
                "{{topic}}: {{reason}}",
            ),
            links=HEALTH,
        ),
        lines(
            "Topics with another configuration",
            "Configs of the service's own topics that do not have the required value.",
            (
                "max by (topic, problem) (caughtup_topic_problems{CLUSTER}) or vector(0)",
                "{{topic}}: {{problem}}",
            ),
            links=HEALTH,
        ),
    )


def _instances() -> tuple[Any, ...]:
    late = "sum(rate(caughtup_event_loop_late_seconds_total{CLUSTER}[$__rate_interval]))"
    return (
        lines(
            "Looking for rebalances",
            "Requests to brokers: which applications rebalance, and end offsets meanwhile.",
            ("rate(caughtup_rebalance_requests_total{CLUSTER}[$__rate_interval])", "requests"),
            links=HEALTH,
            unit="ops",
        ),
        lines(
            "Asking coordinators",
            "Requests about groups: about all, where their log may not be read, or about share groups; "
            "how long a round of them takes, and how long brokers made it wait by their quotas.",
            (
                "rate(caughtup_source_requests_total{CLUSTER}[$__rate_interval])",
                "requests a second",
            ),
            ("max by (cluster) (caughtup_source_round_seconds{CLUSTER})", "seconds of a round"),
            (
                "rate(caughtup_source_throttled_seconds_total{CLUSTER}[$__rate_interval])",
                "seconds of waiting a second",
            ),
            (
                'max by (cluster) (caughtup_source{CLUSTER,source="ask"})',
                "1: all groups are asked about",
            ),
            links=HEALTH,
        ),
        lines(
            "Active instances",
            "Instances that decide and publish: one, and for a moment none while another takes "
            "over; or all that share the groups, with the partitions that each has.",
            ("sum by (cluster) (caughtup_active{CLUSTER})", "{{cluster}}"),
            (
                "sum by (instance) (caughtup_offsets_held_partitions{CLUSTER})",
                "partitions of {{instance}}",
            ),
            (
                "max by (cluster) (caughtup_offsets_shared_partitions{CLUSTER})",
                "partitions of {{cluster}}",
            ),
            (
                "max by (cluster, cluster_name) (caughtup_cluster_info{CLUSTER})",
                "{{cluster}} is {{cluster_name}}",
            ),
            links=HEALTH,
        ),
        lines(
            "Parts of the process",
            "Time since each part of a process last made progress, and by how much turns of its "
            "event loop come late.",
            ("max by (part) (caughtup_last_turn_age_seconds{CLUSTER})", "{{part}}"),
            (late, "late a second"),
            links=HEALTH,
            unit="s",
        ),
        lines(
            "Refused by the web port",
            "Requests and connections that the web port refused or cut off, by reason.",
            (
                "sum by (reason) (rate(caughtup_web_refusals_total{CLUSTER}[$__rate_interval]))",
                "{{reason}}",
            ),
            links=HEALTH,
            unit="reqps",
        ),
        lines(
            "Releases",
            "Instances by the release that they run.",
            (
                "count by (version, python) (caughtup_build_info{CLUSTER})",
                "{{version}} on Python {{python}}",
            ),
            links=HEALTH,
        ),
    )
