"""The fields that views of the page share: the cluster, the service's state, reassignments, failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

import msgspec

import caughtup
from caughtup.agents.process.health import Health
from caughtup.models.faults import Fault, Refusal, SetAside
from caughtup.models.reassignments.orphaned_throttles import OrphanedThrottle
from caughtup.models.records.fields import ABSENT, Absent, Json, Part, or_absent
from caughtup.models.records.reassignment_lines import EndedReassignment, Reassignment
from caughtup.models.shown.groups import CheckpointProblem, checkpoint_problems
from caughtup.models.state.cluster import ClusterState

#: The most failures that the page lists, the newest.
FAULTS_SHOWN = 20
#: The most reassignments that the page lists, the worst; it counts the others.
REASSIGNMENTS_SHOWN = 50

P = TypeVar("P", bound=Part)
V = TypeVar("V", bound="Head")


class PageReader(Part, kw_only=True, omit_defaults=True):
    """The progress of the reader of ``__consumer_offsets``; ``lag`` in offsets."""

    records: int
    lag: int | None = None
    decode_errors: int


class RefusedOfTopic(Part):
    """The newest refused record of a topic, and the number of refused ones."""

    topic: str
    key: str
    reason: str
    message: str
    at_ms: int
    times: int


class InstancePart(Part, kw_only=True, omit_defaults=True):
    """Another instance that shares the groups, and the age of its part of a view.

    name: its host and process id.
    address: the URL of its page.
    partitions: the number of partitions of ``__consumer_offsets`` that it has.
    as_of_ms: as of when its figures are, by this service's clock; None if the view has none of it.
    why: why it did not answer the last time, or is not ready; None if it did and is.
    """

    name: str
    address: str
    partitions: int
    as_of_ms: int | None = None
    why: str | None = None


class Head(Part, kw_only=True):
    """The service and its reader at ``now_ms``.

    ``figures_ms``: when the log of groups and the end offsets were last read, the earlier of the two.
    ``instances``: the others, if several share the groups and the view has their parts.

    Lists that an older service does not send are empty. The web server adds ``schema``, and to a
    view ``view``, ``links``, ``declared`` (columns and verdicts) and ``history``.
    """

    schema: int | Absent = ABSENT
    view: str | Absent = ABSENT
    links: Mapping[str, str] | Absent = ABSENT
    declared: Json | Absent = ABSENT
    history: bool | Absent = ABSENT
    now_ms: int
    figures_ms: int | Absent = ABSENT
    ready: bool
    unready: Sequence[str]
    notices: Sequence[str]
    cluster: str
    cluster_name: str | Absent = ABSENT
    version: str
    reader: PageReader
    instances: Sequence[InstancePart] | Absent = ABSENT


class HeadWithReassignments(Head, kw_only=True):
    """Adds the worst reassignments, the number of each verdict, and those that ended."""

    reassignments: Sequence[Reassignment] = ()
    reassignment_counts: Mapping[str, int] = {}
    reassignments_missing: Sequence[str] = ()
    throttles: Sequence[OrphanedThrottle] = ()
    recent_reassignments: Sequence[EndedReassignment] = ()


class HeadWithFailures(HeadWithReassignments, kw_only=True):
    """Adds refused records, failures and records that could not be written, newest first."""

    refused: Sequence[RefusedOfTopic] = ()
    faults: Sequence[Fault] = ()
    checkpoint_problems: Sequence[CheckpointProblem] = ()
    set_aside: Sequence[SetAside] = ()


def view_with_head(
    kind: Callable[..., V], state: ClusterState, health: Health, now_ms: int, **others: object
) -> V:
    """Return a view of this kind: its head and ``others``."""
    return kind(
        now_ms=now_ms,
        figures_ms=or_absent(health.figures_ms),
        ready=not health.unready(),
        unready=health.unready(),
        notices=health.notices(),
        cluster=state.cluster,
        cluster_name=or_absent(health.cluster_name),
        version=caughtup.__version__,
        reader=PageReader(
            records=sum(state.counts.records.values()),
            lag=health.reader_lag,
            decode_errors=sum(state.counts.errors.values()),
        ),
        **others,
    )


def reassignment_fields(
    state: ClusterState, now_ms: int, most: int = REASSIGNMENTS_SHOWN
) -> dict[str, object]:
    """Return the fields of ``HeadWithReassignments``, with at most ``most`` reassignments."""
    tracker, watch = state.reassignments, state.reassignment_watch
    rows = []
    for partition in watch.worst_first(tracker)[:most]:
        with state.faults.isolated("page", str(partition), now_ms):
            rows.append(watch.detailed(tracker, partition, now_ms))
    return {
        "reassignments": rows,
        "reassignment_counts": watch.verdict_counts(tracker),
        "reassignments_missing": tracker.cluster.missing if tracker.cluster is not None else (),
        "throttles": watch.orphaned(now_ms),
        "recent_reassignments": tracker.ended[::-1],
    }


def failure_fields(state: ClusterState) -> dict[str, object]:
    """Return the fields that ``HeadWithFailures`` adds."""
    return {
        "refused": [_refused(state, one) for _, one in sorted(state.refused.newest.items())],
        "faults": state.faults.newest()[:FAULTS_SHOWN],
        "checkpoint_problems": checkpoint_problems(state),
        "set_aside": state.set_aside.newest()[:FAULTS_SHOWN],
    }


def _refused(state: ClusterState, one: Refusal) -> RefusedOfTopic:
    times = state.refused.of(one.topic)
    return RefusedOfTopic(one.topic, one.key, one.reason, one.message, one.at_ms, times)


def encoded(value: P) -> P:
    """Return a value encoded as JSON, so that a failure to encode it costs it alone."""
    return cast(P, msgspec.Raw(msgspec.json.encode(value)))
