"""Metrics of tasks' copies: a large group has thousands of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_lines import escaped
from caughtup.models.copies.warmups import CopyAssessment
from caughtup.models.verdicts import COPIES

_COPY = ("cluster", "group", "process", "client_id", "task", "role")


def _applications(scrape: Scrape) -> list[str]:
    return sorted(scrape.state.applications.keys() | scrape.state.groups.streams.keys())


def _watched(scrape: Scrape) -> list[str]:
    return sorted(scrape.state.watches)


def _lags(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    before = f'{scrape.cluster_label},group="{escaped(group)}",process="'
    for copy in scrape.state.task_rows(group):
        if copy.lag is not None:
            labels = (
                f'{before}{escaped(copy.process)}",client_id="{escaped(copy.client_id)}",'
                f'task="{copy.task}",role="{copy.role}"'
            )
            yield family.line_of(labels, copy.lag)


def _counts(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    roles = Counter(copy.role for copy in scrape.state.task_rows(group))
    before = f'{scrape.cluster_label},group="{escaped(group)}",role='
    for role, count in sorted(roles.items()):
        yield family.line_of(f'{before}"{role}"', count)


def _statuses(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    for labels, assessed in _assessed(scrape, group):
        yield b"".join(
            family.line_of(f'{labels},status="{verdict}"', int(verdict == assessed.verdict))
            for verdict in COPIES.words
        )


def _etas(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    for labels, assessed in _assessed(scrape, group):
        if (eta := assessed.figures.eta) is not None:
            yield family.line_of(labels, eta.seconds)


def _assessed(scrape: Scrape, group: str) -> Iterator[tuple[str, CopyAssessment]]:
    """Yield a group's copies as last assessed, each with the labels of its series."""
    watch = scrape.state.watches.get(group)
    if watch is None:
        return
    before = f'{scrape.cluster_label},group="{escaped(group)}",process="'
    clients, copies = watch.client_ids, watch.copies
    for key, assessed in sorted(copies.items()):
        labels = (
            f'{before}{escaped(key.process)}",client_id="{escaped(clients[key.process])}",'
            f'task="{key.task}",role="{assessed.role}"'
        )
        yield labels, assessed


TASK_FAMILIES = (
    Family(
        "caughtup_task_lag_records",
        "Offsets a copy of a task has yet to restore, as last reported",
        _COPY,
        _lags,
        _applications,
    ),
    Family(
        "caughtup_task_copies",
        "Copies of tasks, by role",
        ("cluster", "group", "role"),
        _counts,
        _applications,
    ),
    Family(
        "caughtup_task_status",
        "1 for the verdict on a copy that is to catch up, 0 for the others",
        (*_COPY, "status"),
        _statuses,
        _watched,
    ),
    Family(
        "caughtup_task_catchup_eta_seconds",
        "Seconds until the copy is caught up; +Inf: never",
        _COPY,
        _etas,
        _watched,
    ),
)
