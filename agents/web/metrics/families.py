"""What a metric is on ``/metrics``, and how it is written: in pieces, in both of Prometheus' formats.

A million series would take a metrics library seconds and gigabytes at once. Here the lines of each
group or partition come by themselves, and others get their turn in between.
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
from caughtup.models.faults.isolation import Isolation
from caughtup.models.state.cluster import ClusterState
from caughtup.models.watching import Objectives

#: What fails here is counted under this part of the service.
PART = "metrics"


class Telling(NamedTuple):
    """What the settings say of how things are told."""

    legacy_status_values: bool = False
    objectives: Objectives = Objectives()


@dataclass(frozen=True)
class Scrape:
    """What one scrape is made from, and its moment (ms). The state may change between two pieces.

    ``group_labels`` is what was kept from the last scrape, ``telling`` what the settings say.
    """

    state: ClusterState
    health: Health
    group_labels: GroupLabels
    now_ms: int
    telling: Telling = Telling()  # noqa: RUF009 - nothing changes it

    @cached_property
    def groups(self) -> list[str]:
        """Every group, as at the first time that they are asked for."""
        return self.state.group_names()

    @cached_property
    def cluster_label(self) -> str:
        """The text of the label that every series has."""
        return f'cluster="{escaped(self.state.cluster)}"'

    def isolated(self, subject: str) -> Isolation:
        """Return what counts an error over a subject that is raised within it."""
        return self.state.faults.isolated(PART, subject, self.now_ms)


class Family(NamedTuple):
    """A metric: its name in queries, what it says, and the names of its labels.

    ``lines`` writes the lines of one of the ``subjects``, which are groups or partitions: one that
    fails is left out. Without ``subjects`` it is called once, with None. ``known``: whether there
    is anything to be said at all.
    """

    name: str
    documentation: str
    labels: tuple[str, ...]
    lines: Callable[[Family, Scrape, Any], Iterator[bytes]]
    subjects: Callable[[Scrape], Iterable[Any]] | None = None
    type: Literal["gauge", "counter"] = "gauge"
    known: Callable[[Scrape], bool] = lambda _: True

    def text(self, scrape: Scrape, *, openmetrics: bool) -> Iterator[bytes]:
        """Write the metric in pieces of less than a millisecond's work."""
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
        """In OpenMetrics a counter's name is without what its samples end with."""
        name = self.name.removesuffix("_total") if openmetrics else self.name
        return f"# HELP {name} {self.documentation}\n# TYPE {name} {self.type}\n".encode()

    def line(self, values: Iterable[str], figure: float) -> bytes:
        """Write a line as Prometheus' own library does: labels sorted, a figure as Go writes it."""
        named = sorted(zip(self.labels, values, strict=True))
        labels = ",".join(f'{label}="{escaped(value)}"' for label, value in named)
        braces = f"{{{labels}}}" if labels else ""
        return f"{self.name}{braces} {floatToGoString(figure)}\n".encode()

    def line_of(self, labels: str, figure: float) -> bytes:
        """Write a line whose labels are text already: for metrics of thousands of lines."""
        number = "+Inf" if isinf(figure) else figure
        return f"{self.name}{{{labels}}} {number}\n".encode()
