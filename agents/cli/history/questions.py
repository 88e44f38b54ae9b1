"""Frequent questions to the history, as SQL over its tables.

``$since`` and ``$until`` bound the time, ``$group`` is a group's name or NULL for all groups. Each
query names the day too, so that only the files of those days are opened.
"""

from __future__ import annotations

from typing import NamedTuple


class Question(NamedTuple):
    """A question with its tables and its query.

    ``plotted`` is the column that a plot draws, ``needs_group`` whether it is about one group.
    """

    name: str
    asks: str
    tables: tuple[str, ...]
    sql: str
    plotted: str
    needs_group: bool = False


_DAYS = "date BETWEEN CAST($since AS DATE) AND CAST($until AS DATE)"
_OF_GROUP = '($group IS NULL OR "group" = $group)'

#: A row of lag is valid until the next one of its partition; an idle partition has none, so rows of
#: the week before count.
_LAG = f"""
WITH moments AS (
    SELECT unnest(generate_series($since, $until, greatest(($until - $since) / 48, INTERVAL 1 SECOND))) AS moment
    UNION SELECT $until
), changes AS (
    SELECT as_of AS moment, topic, partition, lag FROM lag
    WHERE {_DAYS.replace("$since", "($since - INTERVAL 7 DAY)")} AND "group" = $group
), partitions AS (SELECT DISTINCT topic, partition FROM changes)
SELECT moment, sum(lag) AS lag, count(lag) AS partitions, max(lag) AS worst,
       arg_max(topic || '-' || partition, lag) AS worst_partition
FROM (SELECT moment, topic, partition FROM moments CROSS JOIN partitions) AS asked
ASOF LEFT JOIN changes USING (topic, partition, moment)
GROUP BY moment ORDER BY moment
"""

_DEPLOYMENTS = f"""
SELECT as_of, "group", generation, copies, kafka_copies, offsets, kafka_offsets,
       seconds, kafka_seconds, leader_result
FROM decisions
WHERE {_DAYS} AND as_of BETWEEN $since AND $until AND present AND {_OF_GROUP}
      AND (copies > 0 OR kafka_copies > 0)
ORDER BY kafka_copies DESC, as_of LIMIT 50
"""

_COMMITS = f"""
SELECT "group", count(*) AS commits,
       round(count(*) / greatest(epoch($until - $since), 1), 3) AS per_second,
       count(DISTINCT topic || '-' || partition) AS partitions, max(commit_timestamp) AS last_commit
FROM commits
WHERE {_DAYS} AND commit_timestamp BETWEEN $since AND $until AND present AND {_OF_GROUP}
GROUP BY "group" ORDER BY commits DESC, "group" LIMIT 50
"""

#: The names of a generation's clients, without the thread that Kafka Streams appends.
CLIENTS = """list_distinct(list_transform(members, lambda m:
               regexp_replace(m.client_id, '-StreamThread-.*', '')))"""
#: Each cause of each rebalance; a client of Kafka Streams has several threads, which cause it together.
_REBALANCES = f"""
WITH causes AS (
    SELECT "group", as_of, log_offset, moved, unnest(causes) AS cause
    FROM rebalances
    WHERE {_DAYS} AND as_of BETWEEN $since AND $until AND {_OF_GROUP} AND causes IS NOT NULL
), told AS (
    SELECT "group", as_of, log_offset, cause.kind AS cause, cause.sure AS sure, cause.why AS why,
           coalesce(regexp_replace(cause.client, '-StreamThread-.*', ''), cause.topic, '') AS about
    FROM causes
    UNION ALL
    SELECT "group", as_of, log_offset, 'unknown', 'unknown',
           'the generation before it is not in the history', ''
    FROM rebalances
    WHERE {_DAYS} AND as_of BETWEEN $since AND $until AND {_OF_GROUP} AND causes IS NULL
          AND error IS NULL
)
SELECT "group", cause, about, sure, count(DISTINCT log_offset) AS rebalances, max(as_of) AS last,
       arg_max(why, as_of) AS why
FROM told GROUP BY "group", cause, about, sure
ORDER BY rebalances DESC, "group", cause, about, sure LIMIT 50
"""

#: Each promotion, with the time since its warm-up began.
_WARM_UPS = f"""
WITH steps AS (
    SELECT as_of, event, "group", plan, task, from_process, to_process, lag, reason,
           max(as_of) FILTER (event = 'planned') OVER (
               PARTITION BY "group", plan, task, to_process ORDER BY log_offset
               ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS planned,
           max(as_of) FILTER (event = 'warming') OVER (
               PARTITION BY "group", plan, task, to_process ORDER BY log_offset
               ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS warming
    FROM movements
    WHERE {_DAYS} AND as_of BETWEEN $since AND $until AND {_OF_GROUP} AND task IS NOT NULL
)
SELECT as_of AS promoted, "group", task, plan, to_process, lag,
       round(epoch(as_of - warming), 1) AS seconds, planned
FROM steps WHERE event = 'promoted' AND warming >= planned
ORDER BY seconds DESC, promoted LIMIT 50
"""

QUESTIONS = {
    one.name: one
    for one in (
        Question("lag", "the lag of a group over time", ("lag",), _LAG, "lag", needs_group=True),
        Question(
            "deployments",
            "which deployments cost the most copies",
            ("decisions",),
            _DEPLOYMENTS,
            "kafka_copies",
        ),
        Question("commits", "commits a second by group", ("commits",), _COMMITS, "per_second"),
        Question(
            "rebalances",
            "what caused rebalances, and how sure that is",
            ("rebalances",),
            _REBALANCES,
            "rebalances",
        ),
        Question("warm-ups", "the slowest warm-ups", ("movements",), _WARM_UPS, "seconds"),
    )
}
