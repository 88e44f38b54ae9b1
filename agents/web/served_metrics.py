"""All metrics that a service has, for scrapes and for OTLP: its own, others' names, the process's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain

from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.watching_settings import Exporter
from caughtup.agents.web.metrics.compatible.burrow_exporter import BURROW_EXPORTER_FAMILIES
from caughtup.agents.web.metrics.compatible.kafka_exporter import KAFKA_EXPORTER_FAMILIES
from caughtup.agents.web.metrics.compatible.kafka_lag_exporter import KAFKA_LAG_EXPORTER_FAMILIES
from caughtup.agents.web.metrics.compatible.kminion import KMINION_FAMILIES
from caughtup.agents.web.metrics.exposition import exposition, valid_families
from caughtup.agents.web.metrics.families import ExpositionSettings, Family, Scrape
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.metrics.group_lines import Detail
from caughtup.agents.web.metrics.service import process_families
from caughtup.models.state.cluster import ClusterState

#: The metrics under other exporters' names.
EXPORTERS: Mapping[Exporter, tuple[Family, ...]] = {
    "kafka_exporter": KAFKA_EXPORTER_FAMILIES,
    "kminion": KMINION_FAMILIES,
    "burrow_exporter": BURROW_EXPORTER_FAMILIES,
    "kafka_lag_exporter": KAFKA_LAG_EXPORTER_FAMILIES,
}


class ServedMetrics:
    """The metrics of one service. ``labels`` caches lines from one time to the next."""

    def __init__(self, settings: Settings, state: ClusterState, health: Health) -> None:
        self.labels = GroupLabels(
            Detail(settings.metrics_granularity, settings.metrics_group_limit)
        )
        self._state = state
        self._health = health
        self._settings = ExpositionSettings(settings.legacy_status_values, settings.objectives())
        self._compatible = compatible_families(settings.compat_metrics)

    def text(self, *, openmetrics: bool) -> Iterator[bytes]:
        """Yield the whole of ``/metrics`` in small pieces."""
        return exposition(
            self._state,
            self._health,
            self.labels,
            openmetrics=openmetrics,
            settings=self._settings,
            others=self._others(),
        )

    def families(self, now_ms: int) -> tuple[Scrape, Iterator[Family]]:
        """Return the metrics that are valid at ``now_ms``, and the inputs of their lines."""
        scrape = Scrape(self._state, self._health, self.labels, now_ms, self._settings)
        return scrape, chain(valid_families(scrape), self._others())

    def _others(self) -> Iterator[Family]:
        yield from self._compatible
        yield from process_families()


def compatible_families(exporters: Collection[Exporter]) -> tuple[Family, ...]:
    """Return the metrics under the names of these exporters."""
    return tuple(
        family for name, families in EXPORTERS.items() if name in exporters for family in families
    )
