"""A metric family and its lines, in both of Prometheus' text formats.

A million series would take a metrics library seconds and gigabytes at once. Here the lines of each
group or partition are made by themselves, and other work runs in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isinf
from typing import Any, Literal, NamedTuple

from prometheus_client.utils import floatToGoString

from caughtup.agents.process.health import Health
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.metrics.group_lines import escaped
from caughtup.models.faults import Isolation
from caughtup.models.state.cluster import ClusterState
from caughtup.models.watching import Objectives

#: The part of the service under which failures here are counted.
PART = "metrics"


class ExpositionSettings(NamedTuple):
    """The settings that metrics depend on."""

    legacy_status_values: bool = False
    objectives: Objectives = Objectives()


@dataclass(frozen=True)
class Scrape:
    """The inputs of one scrape at ``now_ms``. The state may change between two pieces.

    ``group_labels`` caches lines from the last scrape.
    """

    state: ClusterState
    health: Health
    group_labels: GroupLabels
    now_ms: int
    settings: ExpositionSettings = ExpositionSettings()  # noqa: RUF009 - immutable

    @cached_property
    def groups(self) -> list[str]:
        """The names of all groups, as at the first access."""
        return self.state.group_names()

    @cached_property
    def cluster_label(self) -> str:
        """The label that every series has, as text."""
        return f'cluster="{escaped(self.state.cluster)}"'

    def isolated(self, subject: str) -> Isolation:
        """Return a context that counts and suppresses an error about a subject."""
        return self.state.faults.isolated(PART, subject, self.now_ms)


class Family(NamedTuple):
    """A metric: its name, its help text, and the names of its labels.

    ``lines`` yields the lines of one of the ``subjects``, groups or partitions; one that fails is
    left out. Without ``subjects`` it is called once, with None. ``known`` is whether the metric has
    a value at all.
    """

    name: str
    documentation: str
    labels: tuple[str, ...]
    lines: Callable[[Family, Scrape, Any], Iterator[bytes]]
    subjects: Callable[[Scrape], Iterable[Any]] | None = None
    type: Literal["gauge", "counter"] = "gauge"
    known: Callable[[Scrape], bool] = lambda _: True

    def text(self, scrape: Scrape, *, openmetrics: bool) -> Iterator[bytes]:
        """Yield the metric's text in pieces of less than a millisecond's work."""
        with scrape.isolated(self.name):
            if not self.known(scrape):
                return
            yield self._head(openmetrics=openmetrics)
            if self.subjects is None:
                yield from self.lines(self, scrape, None)
                return
            for subject in self.subjects(scrape):
                with scrape.isolated(str(subject)):
                    yield from self.lines(self, scrape, subject)

    def _head(self, *, openmetrics: bool) -> bytes:
        """Return HELP and TYPE; in OpenMetrics a counter's name lacks ``_total`` there."""
        name = self.name.removesuffix("_total") if openmetrics else self.name
        return f"# HELP {name} {self.documentation}\n# TYPE {name} {self.type}\n".encode()

    def line(self, values: Iterable[str], figure: float) -> bytes:
        """Return a line as Prometheus' library writes it: sorted labels, numbers as in Go."""
        named = sorted(zip(self.labels, values, strict=True))
        labels = ",".join(f'{label}="{escaped(value)}"' for label, value in named)
        braces = f"{{{labels}}}" if labels else ""
        return f"{self.name}{braces} {floatToGoString(figure)}\n".encode()

    def line_of(self, labels: str, figure: float) -> bytes:
        """Return a line with labels that are text already, for metrics of thousands of lines."""
        number = "+Inf" if isinf(figure) else figure
        return f"{self.name}{{{labels}}} {number}\n".encode()
