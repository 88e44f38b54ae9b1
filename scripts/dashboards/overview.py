"""The overview dashboard: all problems, with links to the other dashboards."""

from __future__ import annotations

from scripts.dashboards.connect import contradictions, wrong
from scripts.dashboards.copies import by_role
from scripts.dashboards.groups import behind, by_status, most_behind
from scripts.dashboards.health import reader
from scripts.dashboards.layout import (
    MOVEMENTS,
    REASSIGNMENTS,
    REBALANCES,
    RECOMMENDATIONS,
    STARTS,
    group_variable,
    made,
    topic_variable,
)
from scripts.dashboards.links import dashboard
from scripts.dashboards.panels import alerts
from scripts.dashboards.reassignments import in_movement, stuck, verdicts
from scripts.dashboards.streams import plans, stats

_HEALTH = (dashboard("caughtup-health", "caughtup's own health"),)
_STREAMS = (dashboard("caughtup-streams", "Streams applications"),)
_REASSIGNMENTS = (dashboard("caughtup-reassignments", "Reassignments"),)
_CONNECT = (dashboard("caughtup-connect", "Connect"),)


def overview() -> str:
    """Return the overview as JSON."""
    copies, seconds = plans()
    return made(
        "caughtup",
        "caughtup: overview",
        "Everything that is wrong: groups that do not keep up, alerts, and what needs an operator.",
        variables=(
            group_variable("caughtup_group_has_commit{CLUSTER}"),
            topic_variable("caughtup_group_has_commit{GROUP}"),
        ),
        marks=(REBALANCES, MOVEMENTS, RECOMMENDATIONS, REASSIGNMENTS, STARTS),
        top=(
            reader(_HEALTH, width=4),
            *stats(_STREAMS, width=3),
            stuck(_REASSIGNMENTS, width=4),
            contradictions(_CONNECT, width=4),
            by_status(),
            behind(),
            alerts(
                "Alerts",
                "caughtup's alerts that are pending or firing, on every cluster.",
            ),
            most_behind(),
            copies,
            verdicts(),
        ),
        rows={
            "Streams applications": (seconds, by_role()),
            "Reassignments": (in_movement(),),
            "Connect": wrong(),
        },
    )
