"""What every view of the page begins with: which cluster, how the service itself is doing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

import caughtup
from caughtup.agents.process.health import Health
from caughtup.models.faults import Fault, Refusal, SetAside
from caughtup.models.reassignments.orphaned_throttles import OrphanedThrottle
from caughtup.models.records.fields import ABSENT, Absent, Json, Part, or_absent
from caughtup.models.records.reassignment_lines import EndedReassignment, Reassignment
from caughtup.models.shown.groups import CheckpointProblem, checkpoint_problems
from caughtup.models.state.cluster import ClusterState

#: Failures that the page lists, the newest.
FAULTS_SHOWN = 20
#: Reassignments that the page lists, the worst; the others it counts.
REASSIGNMENTS_SHOWN = 50

P = TypeVar("P", bound=Part)
V = TypeVar("V", bound="Head")


class PageReader(Part, kw_only=True, omit_defaults=True):
    """What the reader of ``__consumer_offsets`` read; ``lag`` in offsets."""

    records: int
    lag: int | None = None
    decode_errors: int


class RefusedOfTopic(Part):
    """The newest record of a topic that was refused, and how many were."""

    topic: str
    key: str
    reason: str
    message: str
    at_ms: int
    times: int


class Head(Part, kw_only=True):
    """The service and its reader at a moment (ms).

    Lists that an older service may not have are empty then. The web server adds ``schema``, and to a view its name, addresses of other pages, the columns
    and verdicts that are declared, and whether there is a history.
    """

    schema: int | Absent = ABSENT
    view: str | Absent = ABSENT
    links: Mapping[str, str] | Absent = ABSENT
    declared: Json | Absent = ABSENT
    history: bool | Absent = ABSENT
    now_ms: int
    ready: bool
    unready: Sequence[str]
    notices: Sequence[str]
    cluster: str
    cluster_name: str | Absent = ABSENT
    version: str
    reader: PageReader


class Movements(Head, kw_only=True):
    """The same with the worst reassignments, how many there are of each verdict, and ended ones."""

    reassignments: Sequence[Reassignment] = ()
    reassignment_counts: Mapping[str, int] = {}
    reassignments_missing: Sequence[str] = ()
    throttles: Sequence[OrphanedThrottle] = ()
    recent_reassignments: Sequence[EndedReassignment] = ()


class Everything(Movements, kw_only=True):
    """The same with what was refused, what failed and what could not be written, newest first."""

    refused: Sequence[RefusedOfTopic] = ()
    faults: Sequence[Fault] = ()
    checkpoint_problems: Sequence[CheckpointProblem] = ()
    set_aside: Sequence[SetAside] = ()


def head_of(
    kind: Callable[..., V], state: ClusterState, health: Health, now_ms: int, **others: Any
) -> V:
    """Return a view with its head, and with ``others``."""
    return kind(
        now_ms=now_ms,
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


def movements(state: ClusterState, now_ms: int, most: int = REASSIGNMENTS_SHOWN) -> dict[str, Any]:
    """Return the fields of ``Movements``: reassignments that fare worst only, and ended ones."""
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


def left_out(state: ClusterState) -> dict[str, Any]:
    """Return the last fields of ``Everything``."""
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
    """Return a value as it will be in the answer: what can't be encoded costs itself alone."""
    return cast(P, msgspec.Raw(msgspec.json.encode(value)))
