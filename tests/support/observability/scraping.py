"""Scrapes ``/metrics`` like Prometheus, and waits for a server."""

from __future__ import annotations

import urllib.error
from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from caughtup.agents.process.health import Health
from caughtup.agents.web.metrics.exposition import exposition
from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.served_metrics import EXPORTERS, compatible_families
from caughtup.demo.processes.children import Process
from caughtup.models.state.cluster import ClusterState
from tests.support.service import wait_for

Labels = tuple[str, ...]
#: Scrapes with the names of every compatible exporter.
COMPATIBLE = compatible_families(EXPORTERS)
#: Labels in the order of these tests' tuples; others follow.
ORDER = ("group", "topic", "partition", "process", "client_id", "task")


def text(
    state: ClusterState,
    health: Health | None = None,
    **options: Any,
) -> str:
    chunks = exposition(state, health or Health(ready=True, reader_lag=0), **options)
    return b"".join(chunks).decode()


def scrape(
    state: ClusterState, health: Health | None = None, **options: Any
) -> dict[str, dict[Labels, float]]:
    """Return every series: name → label values (without the cluster's) → value."""
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text(state, health, **options)):
        for sample in family.samples:
            assert sample.labels.pop("cluster") == state.cluster
            series = found.setdefault(sample.name, {})
            names = [name for name in ORDER if name in sample.labels]
            names += sorted(sample.labels.keys() - set(ORDER))
            labels = tuple(sample.labels[name] for name in names)
            assert labels not in series, f"{sample.name} {labels} comes twice"
            series[labels] = sample.value
    return found


def samples_of(
    families: Sequence[Family], state: ClusterState, now_ms: int
) -> list[tuple[str, dict[str, str], float]]:
    """Return the series of some families at a time (ms): name, labels, value."""
    made = Scrape(state, Health(ready=True, reader_lag=0), GroupLabels(), now_ms)
    written = b"".join(
        piece for family in families for piece in family.text(made, openmetrics=False)
    )
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(written.decode())
        for sample in family.samples
    ]


def wait_until_served(process: Process, ask: Callable[[], object]) -> None:
    """Poll a process over HTTP until it answers; fail with its output if it ends before."""

    def answers() -> bool:
        assert process.exit_code is None, process.first_error()
        try:
            ask()
        except urllib.error.URLError:
            return False
        return True

    wait_for("it serves", answers)
