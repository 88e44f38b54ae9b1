"""Links from series and rows to caughtup's page and other dashboards, and between dashboards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from grafana_foundation_sdk.builders.dashboard import DashboardLink
from grafana_foundation_sdk.models.dashboard import DashboardLinkType, DynamicConfigValue

TAG = "caughtup"
_CHOSEN = "${datasource:queryparam}&${cluster:queryparam}&${page:queryparam}&${__url_time_range}"


class Link(NamedTuple):
    """A link of a series or a row; ``column`` is the label with the target's name, if any."""

    title: str
    url: str
    column: str = ""

    def of_series(self) -> DashboardLink:
        """Return the link for a series, whose labels are its field's."""
        return DashboardLink(self.title).url(self._url("__field.labels")).target_blank(True)

    def of_row(self) -> dict[str, object]:
        """Return the link for a table's row, whose labels are its columns."""
        return {"title": self.title, "url": self._url("__data.fields"), "targetBlank": True}

    def _url(self, labels: str) -> str:
        return self.url.replace("NAME", f"${{{labels}.{self.column}:percentencode}}")


def page(path: str, title: str) -> Link:
    """Return a link to a path of caughtup's page."""
    return Link(title, "${page:raw}" + path)


def dashboard(uid: str, title: str) -> Link:
    """Return a link to another dashboard with the same data source, cluster and time."""
    return Link(title, f"/d/{uid}?{_CHOSEN}")


def of_group(uid: str) -> tuple[Link, Link]:
    """Return the links of a group's series: its page, and its dashboard."""
    return (
        Link("This group on caughtup's page", "${page:raw}/groups/NAME", "group"),
        Link("This group's dashboard", f"/d/{uid}?{_CHOSEN}&var-group=NAME", "group"),
    )


GROUPS = of_group("caughtup-groups")
STREAMS = of_group("caughtup-streams")
CONNECT = of_group("caughtup-connect")
OVERVIEW_PAGE = (page("/", "caughtup's page"),)
CONNECT_PAGE = (page("/connect", "Connect on caughtup's page"),)
TRANSACTIONS = (page("/transactions", "Transactions on caughtup's page"),)
REASSIGNMENTS = (page("/reassignments", "Reassignments on caughtup's page"),)
HEALTH = (page("/health", "caughtup's health on its page"),)
SPARK = (page("/streams", "Streams on Spark on caughtup's page"),)


def rows_to(links: Iterable[Link]) -> DynamicConfigValue:
    """Return the property that links each cell of a table's column."""
    return DynamicConfigValue("links", [link.of_row() for link in links])


def between() -> tuple[DashboardLink, ...]:
    """Return the links at the top of each dashboard: the page, and the other dashboards."""
    return (
        DashboardLink("caughtup's page")
        .type(DashboardLinkType.LINK)
        .icon("external link")
        .url("${page:raw}")
        .target_blank(True),
        DashboardLink("Dashboards")
        .type(DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(True),
    )
