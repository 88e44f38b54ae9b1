"""Scrapes ``/metrics`` as a Prometheus server does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from caughtup.agents.process.health import Health
from caughtup.agents.web.metrics.exposition import exposition
from caughtup.models.state.cluster import ClusterState

Labels = tuple[str, ...]
#: Labels in the order in which these tests name their values; any others follow.
ORDER = ("group", "topic", "partition", "process", "client_id", "task")


def text(
    state: ClusterState,
    health: Health | None = None,
    encode: Callable[[Any], bytes] = generate_latest,
    **options: bool,
) -> str:
    chunks = exposition(state, health or Health(ready=True, reader_lag=0), encode, **options)
    return b"".join(chunks).decode()


def scrape(state: ClusterState, health: Health | None = None) -> dict[str, dict[Labels, float]]:
    """Return every series: name → the values of its labels but the cluster's → value."""
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text(state, health)):
        for sample in family.samples:
            assert sample.labels.pop("cluster") == state.cluster
            series = found.setdefault(sample.name, {})
            names = [name for name in ORDER if name in sample.labels]
            names += sorted(sample.labels.keys() - set(ORDER))
            labels = tuple(sample.labels[name] for name in names)
            assert labels not in series, f"{sample.name} {labels} comes twice"
            series[labels] = sample.value
    return found
