"""The dashboard of consumer groups: verdicts, lag, and commits."""

from __future__ import annotations

from typing import Any

from caughtup.models.verdicts import LAG
from scripts.dashboards.layout import REBALANCES, STARTS, group_variable, made, topic_variable
from scripts.dashboards.links import GROUPS, HEALTH, OVERVIEW_PAGE, TRANSACTIONS
from scripts.dashboards.panels import lines, table

#: The colours of groups' verdicts.
STATUSES = {term.word: term.chart for term in LAG.terms}


def groups() -> str:
    """Return the dashboard of consumer groups as JSON."""
    return made(
        "caughtup-groups",
        "caughtup: consumer groups",
        "How far consumer groups are behind, which of them do not keep up, and what they may lose.",
        variables=(
            group_variable("caughtup_group_has_commit{CLUSTER}"),
            topic_variable("caughtup_group_has_commit{GROUP}"),
        ),
        marks=(REBALANCES, STARTS),
        top=(by_status(), behind(), most_behind(), *_lag()),
        rows={
            "Whether they catch up": _catching_up(),
            "Retention: what may be deleted unread": _retention(),
            "Commits and members": _commits(),
            "Rebalances": _rebalances(),
            "Open transactions": _transactions(),
            "Groups that metrics leave out": _left_out(),
        },
    )


def by_status() -> Any:
    """Return the panel of the number of groups by verdict."""
    return lines(
        "Groups by status",
        "How many groups have which verdict, from ok to stopped. "
        "Why a group has its own: the page, or caughtup lag.",
        ("sum by (status) (caughtup_group_status{GROUP})", "{{status}}"),
        links=OVERVIEW_PAGE,
        colors=STATUSES,
        stacked=True,
    )


def behind() -> Any:
    """Return the panel of groups whose verdict is slow or worse."""
    return table(
        "Groups that do not keep up",
        "Every group that is slow or worse, with its verdict.",
        'sum by (cluster, group, status) (caughtup_group_status{GROUP,status!~"ok|unknown"}) > 0',
        columns={"cluster": "Cluster", "group": "Group", "status": "Status"},
        links=GROUPS,
    )


def most_behind() -> Any:
    """Return the panel of the groups with the greatest lag in time."""
    return lines(
        "Lag in time, the 10 groups with the most",
        "Age of the oldest record that a group has yet to read, on its worst partition.",
        (
            "topk(10, max by (cluster, group) (caughtup_group_lag_seconds{GROUP_TOPIC}))",
            "{{group}}",
        ),
        ("min(caughtup_group_lag_objective_seconds{GROUP})", "the strictest objective"),
        links=GROUPS,
        unit="s",
    )


def _lag() -> tuple[Any, ...]:
    return (
        lines(
            "Lag, the 10 groups with the most",
            "Records that a read_committed reader has yet to read, summed over partitions.",
            (
                "topk(10, sum by (cluster, group) (caughtup_group_lag_records{GROUP_TOPIC}))",
                "{{group}}",
            ),
            links=GROUPS,
            width=12,
        ),
        lines(
            "Lag, the 10 partitions with the most",
            "The same, partition by partition.",
            (
                "topk(10, caughtup_group_lag_records{GROUP_TOPIC})",
                "{{group}} {{topic}}-{{partition}}",
            ),
            links=GROUPS,
            width=12,
        ),
    )


def _transactions() -> tuple[Any, ...]:
    return (
        lines(
            "Age of the oldest open transactions",
            "The ten oldest that hold back a last stable offset: since their start or, where that "
            "is not known, since their last write.",
            (
                "caughtup_transaction_open_seconds{CLUSTER}",
                "{{transactional_id}} (producer id {{producer_id}})",
            ),
            links=TRANSACTIONS,
            unit="s",
            width=12,
        ),
        lines(
            "What they hold back",
            "Groups that wait at a last stable offset, partitions where one stands still, and "
            "transactions that no coordinator will ever end.",
            ("caughtup_transaction_blocked_groups{CLUSTER}", "blocked groups"),
            ("caughtup_transaction_held_partitions{CLUSTER}", "partitions held back"),
            ("caughtup_transactions_open{CLUSTER}", "open transactions that hold one back"),
            ("caughtup_transactions_hanging{CLUSTER}", "hanging transactions"),
            ("caughtup_transactions_partial{CLUSTER}", "1 if not all of them are known"),
            links=TRANSACTIONS,
            width=12,
        ),
    )


def _catching_up() -> tuple[Any, ...]:
    velocity = "sum by (cluster, group) (caughtup_group_lag_velocity{GROUP_TOPIC})"
    longest = "max by (cluster, group) (caughtup_group_catchup_eta_seconds{GROUP_TOPIC})"
    never = "count by (cluster, group) (caughtup_group_catchup_eta_seconds{GROUP_TOPIC} == +Inf)"
    return (
        lines(
            "Velocity of the lag",
            "Records a second by which the lag grows, summed over a group's partitions; "
            "below 0 it catches up. The 5 that grow and the 5 that fall fastest.",
            (f"topk(5, {velocity}) or bottomk(5, {velocity})", "{{group}}"),
            links=GROUPS,
            unit="ops",
            least=None,
        ),
        lines(
            "Time to catch up, the 10 groups with the longest",
            "At the present rates, on the partition that takes longest. "
            "Partitions that never catch up are on the right.",
            (f"topk(10, {longest} < +Inf)", "{{group}}"),
            links=GROUPS,
            unit="s",
        ),
        lines(
            "Partitions that never catch up",
            "How many partitions of a group are behind and never catch up at the present rates.",
            (f"topk(10, {never})", "{{group}}"),
            links=GROUPS,
        ),
    )


def _retention() -> tuple[Any, ...]:
    left = (
        "caughtup_group_committed_offset{GROUP_TOPIC}"
        " - on (cluster, topic, partition) group_left () caughtup_partition_start_offset{TOPIC}"
    )
    used = "max by (cluster, group) (caughtup_group_retention_used_ratio{GROUP_TOPIC})"
    return (
        lines(
            "Retention used, the 10 groups with the most",
            "How near a log's start is to a group's commit, on its worst partition; above 100 % "
            "records were deleted unread. The lines are where the alerts start.",
            (f"topk(10, {used})", "{{group}}"),
            links=GROUPS,
            unit="percentunit",
            limits=((0.8, "orange"), (0.95, "red")),
            width=12,
        ),
        lines(
            "Left before unread records are deleted, the 10 groups with the least",
            "Offsets from a log's start to a group's commit, on its worst partition; below 0 "
            "records were deleted unread. Where nothing was ever deleted, that is all that the "
            "group has read.",
            (f"bottomk(10, min by (cluster, group) ({left}))", "{{group}}"),
            links=GROUPS,
            least=None,
            width=12,
        ),
    )


def _commits() -> tuple[Any, ...]:
    committed = "caughtup_group_committed_offset{GROUP_TOPIC}"
    ends = 'caughtup_partition_end_offset{TOPIC,isolation="read_%s"}'
    written = f"rate({ends % 'committed'}[5m])"
    start = "caughtup_group_share_start_offset{GROUP_TOPIC}"
    last = "max by (cluster, group) (caughtup_group_last_commit_timestamp_seconds{GROUP_TOPIC})"
    return (
        lines(
            "Committing and producing",
            "Offsets committed and written a second, of the chosen groups' partitions.",
            (f"sum(rate({committed}[5m]))", "committed"),
            (f"sum({written} and on (cluster, topic, partition) {committed})", "written"),
            links=OVERVIEW_PAGE,
            unit="ops",
        ),
        lines(
            "Since the last commit, the 10 groups with the longest",
            "Time since a group last committed. A group that has nothing to read may commit nothing.",
            (f"topk(10, time() - {last})", "{{group}}"),
            links=GROUPS,
            unit="s",
        ),
        lines(
            "Open transactions",
            "Records behind the last stable offset: written, but not yet readable under "
            "read_committed.",
            (
                f"topk(10, {ends % 'uncommitted'} - ignoring (isolation) {ends % 'committed'} > 0)",
                "{{topic}}-{{partition}}",
            ),
            links=OVERVIEW_PAGE,
        ),
        lines(
            "Share groups: not done beyond the start, the 10 with the most",
            "Offsets between a share group's start offset and its position: some of them are done, and "
            "one that is not holds the start offset back.",
            (
                f"topk(10, {committed} - on (cluster, group, topic, partition) {start})",
                "{{group}} {{topic}}-{{partition}}",
            ),
            links=GROUPS,
            width=24,
        ),
        table(
            "Partitions without a commit",
            "Assigned partitions on which the group never committed; "
            "their lag counts from the log's start.",
            "count by (cluster, group, topic) (caughtup_group_has_commit{GROUP_TOPIC} == 0)",
            columns={"group": "Group", "topic": "Topic", "Value": "Partitions"},
            links=GROUPS,
            width=12,
        ),
        lines(
            "Members, the 10 groups with the most",
            "Members of each group; a jagged line means that members join and leave often.",
            (
                "topk(10, sum by (cluster, group) (caughtup_group_members{GROUP}))",
                "{{group}}",
            ),
            links=GROUPS,
            width=12,
        ),
    )


def _rebalances() -> tuple[Any, ...]:
    return (
        lines(
            "Rebalances by cause",
            "How many rebalances each cause had; caughtup explain GROUP names the members.",
            (
                "sum by (cause) (increase(caughtup_group_rebalances_total{GROUP}[$__rate_interval]))",
                "{{cause}}",
            ),
            links=OVERVIEW_PAGE,
            width=12,
        ),
        lines(
            "Lost by rebalancing, the 10 groups that lost most",
            "Partitions that stand still, on average: their time without a commit around rebalances, "
            "at most.",
            (
                "topk(10, sum by (cluster, group) (rate("
                + "caughtup_group_rebalance_lost_seconds_total{GROUP}[$__rate_interval])))",
                "{{group}}",
            ),
            links=GROUPS,
            width=12,
        ),
        table(
            "Groups that rebalance again and again",
            "Six rebalances or more within ten minutes, and what causes most of them.",
            "caughtup_group_storm_rebalances{GROUP}",
            columns={
                "cluster": "Cluster",
                "group": "Group",
                "cause": "Cause",
                "client": "Client",
                "Value": "Rebalances",
            },
            links=GROUPS,
            width=12,
        ),
        lines(
            "Assignments that the assignor doesn't explain",
            "Assignments that differ from what the assignor decides, or can't be compared; caughtup "
            "explain GROUP says why.",
            (
                "topk(10, sum by (cluster, group, result) (increase("
                + 'caughtup_group_decisions_total{GROUP,result!="match"}[$__rate_interval])))',
                "{{group}} {{result}}",
            ),
            links=GROUPS,
            width=12,
        ),
    )


def _left_out() -> tuple[Any, ...]:
    return (
        lines(
            "Left out, and without a leader",
            "Groups that were seen and are ignored by the settings or folded away, and those that "
            "metrics show by topic or by group only.",
            ("sum by (reason) (caughtup_groups_not_watched{CLUSTER})", "{{reason}}"),
            ("sum(caughtup_groups_limited{CLUSTER})", "limited"),
            ("caughtup_leaderless_partitions{CLUSTER}", "partitions without a leader"),
            links=HEALTH,
            width=24,
        ),
    )
