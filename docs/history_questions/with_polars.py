"""The five questions in polars: run the first cell, then any other."""

# %%
from datetime import UTC, datetime, timedelta

import polars as pl

tables = "history"
since, until = datetime(2026, 11, 17, tzinfo=UTC), datetime(2026, 11, 18, tzinfo=UTC)
days = pl.col("date").is_between(since.date(), until.date())

# %%
# lag
changes = (
    pl.scan_delta(f"{tables}/lag")
    .filter(pl.col("date").is_between((since - timedelta(days=7)).date(), until.date()))
    .filter(pl.col("group") == "orders")
    .select("topic", "partition", "lag", moment="as_of")
    .sort("moment")
)
moments = pl.LazyFrame({"moment": pl.datetime_range(since, until, "30m", eager=True)})
(
    moments.join(changes.select("topic", "partition").unique(), how="cross")
    .sort("moment")
    .join_asof(changes, on="moment", by=["topic", "partition"], check_sortedness=False)
    .group_by("moment")
    .agg(
        lag=pl.when(pl.col("lag").count() > 0).then(pl.col("lag").sum()),
        worst=pl.col("lag").max(),
    )
    .sort("moment")
    .collect()
)

# %%
# deployments
(
    pl.scan_delta(f"{tables}/decisions")
    .filter(days, pl.col("as_of").is_between(since, until), pl.col("present"))
    .filter((pl.col("copies") > 0) | (pl.col("kafka_copies") > 0))
    .select("as_of", "group", "generation", "copies", "kafka_copies", "seconds", "kafka_seconds")
    .sort("kafka_copies", "as_of", descending=[True, False], nulls_last=True)
    .head(50)
    .collect()
)

# %%
# commits
(
    pl.scan_delta(f"{tables}/commits")
    .filter(days, pl.col("commit_timestamp").is_between(since, until), pl.col("present"))
    .group_by("group")
    .agg(commits=pl.len(), last_commit=pl.col("commit_timestamp").max())
    .with_columns(per_second=(pl.col("commits") / (until - since).total_seconds()).round(3))
    .sort("commits", "group", descending=[True, False])
    .head(50)
    .collect()
)

# %%
# rebalances
cause = pl.col("causes").struct
client = cause.field("client").str.replace("-StreamThread-.*", "")
(
    pl.scan_delta(f"{tables}/rebalances")
    .filter(days, pl.col("as_of").is_between(since, until), pl.col("error").is_null())
    .explode("causes", empty_as_null=True)
    .select(
        "group",
        "log_offset",
        cause=cause.field("kind").fill_null("unknown"),
        about=pl.coalesce(client, cause.field("topic"), pl.lit("")),
        sure=cause.field("sure").fill_null("unknown"),
    )
    .group_by("group", "cause", "about", "sure")
    .agg(rebalances=pl.col("log_offset").n_unique())
    .sort("rebalances", "group", "cause", "about", "sure", descending=[True, *[False] * 4])
    .head(50)
    .collect()
)

# %%
# warm-ups
copy = ["group", "plan", "task", "to_process"]
(
    pl.scan_delta(f"{tables}/movements")
    .filter(days, pl.col("as_of").is_between(since, until), pl.col("task").is_not_null())
    .sort("log_offset")
    .with_columns(
        pl.when(pl.col("event") == event).then("as_of").forward_fill().over(copy).alias(event)
        for event in ("planned", "warming")
    )
    .filter(pl.col("event") == "promoted", pl.col("warming") >= pl.col("planned"))
    .select(
        "group",
        "task",
        "to_process",
        "lag",
        promoted="as_of",
        seconds=(pl.col("as_of") - pl.col("warming")).dt.total_milliseconds() / 1000,
    )
    .sort("seconds", "promoted", descending=[True, False])
    .head(50)
    .collect()
)
