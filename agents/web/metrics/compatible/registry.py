"""The metrics of each exporter that this service can stand in for."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from caughtup.agents.watching_settings import Exporter
from caughtup.agents.web.metrics.compatible.burrow_exporter import BURROW_EXPORTER_FAMILIES
from caughtup.agents.web.metrics.compatible.kafka_exporter import KAFKA_EXPORTER_FAMILIES
from caughtup.agents.web.metrics.compatible.kafka_lag_exporter import KAFKA_LAG_EXPORTER_FAMILIES
from caughtup.agents.web.metrics.compatible.kminion import KMINION_FAMILIES
from caughtup.agents.web.metrics.families import Family

EXPORTERS: Mapping[Exporter, tuple[Family, ...]] = {
    "kafka_exporter": KAFKA_EXPORTER_FAMILIES,
    "kminion": KMINION_FAMILIES,
    "burrow_exporter": BURROW_EXPORTER_FAMILIES,
    "kafka_lag_exporter": KAFKA_LAG_EXPORTER_FAMILIES,
}


def compatible_families(exporters: Collection[Exporter]) -> tuple[Family, ...]:
    """Return the metrics under the names of these exporters."""
    return tuple(
        family for name, families in EXPORTERS.items() if name in exporters for family in families
    )
