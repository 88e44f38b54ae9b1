"""The five questions in pandas: run the first cell, then any other."""

# %%
import re
from datetime import UTC, datetime, timedelta

import pandas as pd
from deltalake import DeltaTable

tables = "history"
since, until = datetime(2026, 11, 17, tzinfo=UTC), datetime(2026, 11, 18, tzinfo=UTC)


def read(table: str, time: str, since: datetime = since) -> pd.DataFrame:
    """Return a table's rows of the time that is asked for."""
    days = [("date", ">=", since.date()), ("date", "<=", until.date())]
    rows = DeltaTable(f"{tables}/{table}").to_pandas(filters=days)
    return rows[rows[time].between(since, until)]


# %%
# lag
changes = read("lag", "as_of", since - timedelta(days=7)).query("group == 'orders'")
moments = pd.date_range(since, until, freq="30min", name="moment")
partitions = changes.set_index("as_of").sort_index().groupby(["topic", "partition"])["lag"]
at_moments = pd.DataFrame(
    {one: lag.groupby(level=0).last().reindex(moments, method="ffill") for one, lag in partitions}
)
pd.DataFrame(
    {"lag": at_moments.sum(axis=1, min_count=1), "worst": at_moments.max(axis=1)}
).reset_index()

# %%
# deployments
decisions = read("decisions", "as_of").query("present and (copies > 0 or kafka_copies > 0)")
decisions.sort_values(["kafka_copies", "as_of"], ascending=[False, True]).head(50)[
    ["as_of", "group", "generation", "copies", "kafka_copies", "seconds", "kafka_seconds"]
]

# %%
# commits
by_group = read("commits", "commit_timestamp").query("present").groupby("group")
answer = by_group["commit_timestamp"].agg(commits="size", last_commit="max").reset_index()
answer["per_second"] = (answer["commits"] / (until - since).total_seconds()).round(3)
answer.sort_values(["commits", "group"], ascending=[False, True]).head(50)

# %%
# rebalances
seen = read("rebalances", "as_of")
unknown = {"kind": "unknown", "sure": "unknown", "client": None, "topic": None}
causes = [
    {
        "group": row.group,
        "cause": cause["kind"],
        "about": re.sub("-StreamThread-.*", "", cause["client"] or cause["topic"] or ""),
        "sure": cause["sure"],
        "log_offset": row.log_offset,
    }
    for row in seen[seen["error"].isna()].itertuples()
    for cause in ([unknown] if row.causes is None else row.causes)
]
of = ["group", "cause", "about", "sure"]
answer = pd.DataFrame(causes).groupby(of)["log_offset"].nunique().rename("rebalances")
answer.reset_index().sort_values(
    ["rebalances", *of], ascending=[False, True, True, True, True]
).head(50)

# %%
# warm-ups
steps = read("movements", "as_of").dropna(subset="task").sort_values("log_offset")
copies = steps.groupby(["group", "plan", "task", "to_process"], dropna=False)["event"]
for event in ("planned", "warming"):
    steps[event] = steps["as_of"].where(steps["event"] == event)
    steps[event] = steps.groupby(["group", "plan", "task", "to_process"], dropna=False)[
        event
    ].ffill()
steps["seconds"] = (steps["as_of"] - steps["warming"]).dt.total_seconds()
answer = steps.query("event == 'promoted' and warming >= planned").rename(
    columns={"as_of": "promoted"}
)
answer.sort_values(["seconds", "promoted"], ascending=[False, True]).head(50)[
    ["promoted", "group", "task", "to_process", "lag", "seconds"]
]
