-- The five questions in DuckDB, over tables that the page's opening registers.

-- %%
-- lag
WITH changes AS (
  SELECT as_of AS moment, topic, partition, lag FROM lag
  WHERE date BETWEEN CAST(getvariable('since') AS DATE) - 7 AND CAST(getvariable('until') AS DATE)
    AND "group" = 'orders'
), asked AS (
  SELECT moment, topic, partition
  FROM generate_series(getvariable('since'), getvariable('until'), INTERVAL 30 MINUTE) AS moments(moment)
  CROSS JOIN (SELECT DISTINCT topic, partition FROM changes)
)
SELECT moment, sum(lag) AS lag, max(lag) AS worst
FROM asked ASOF LEFT JOIN changes USING (topic, partition, moment)
GROUP BY moment ORDER BY moment;

-- %%
-- deployments
SELECT as_of, "group", generation, copies, kafka_copies, seconds, kafka_seconds
FROM decisions
WHERE date BETWEEN CAST(getvariable('since') AS DATE) AND CAST(getvariable('until') AS DATE)
  AND as_of BETWEEN getvariable('since') AND getvariable('until')
  AND present AND (copies > 0 OR kafka_copies > 0)
ORDER BY kafka_copies DESC, as_of LIMIT 50;

-- %%
-- commits
SELECT "group", count(*) AS commits, max(commit_timestamp) AS last_commit,
       round(count(*) / epoch(getvariable('until') - getvariable('since')), 3) AS per_second
FROM commits
WHERE date BETWEEN CAST(getvariable('since') AS DATE) AND CAST(getvariable('until') AS DATE)
  AND commit_timestamp BETWEEN getvariable('since') AND getvariable('until') AND present
GROUP BY "group" ORDER BY commits DESC, "group" LIMIT 50;

-- %%
-- rebalances
WITH seen AS (
  SELECT * FROM rebalances
  WHERE date BETWEEN CAST(getvariable('since') AS DATE) AND CAST(getvariable('until') AS DATE)
    AND as_of BETWEEN getvariable('since') AND getvariable('until') AND error IS NULL
), causes AS (
  SELECT "group", log_offset, unnest(causes) AS of FROM seen
), told AS (
  SELECT "group", log_offset, of.kind AS cause, of.sure AS sure,
         coalesce(regexp_replace(of.client, '-StreamThread-.*', ''), of.topic, '') AS about
  FROM causes
  UNION ALL
  SELECT "group", log_offset, 'unknown', 'unknown', '' FROM seen WHERE causes IS NULL
)
SELECT "group", cause, about, sure, count(DISTINCT log_offset) AS rebalances
FROM told GROUP BY "group", cause, about, sure
ORDER BY rebalances DESC, "group", cause, about, sure LIMIT 50;

-- %%
-- warm-ups
WITH steps AS (
  SELECT *, max(as_of) FILTER (event = 'planned') OVER before AS planned,
         max(as_of) FILTER (event = 'warming') OVER before AS warming
  FROM movements
  WHERE date BETWEEN CAST(getvariable('since') AS DATE) AND CAST(getvariable('until') AS DATE)
    AND as_of BETWEEN getvariable('since') AND getvariable('until') AND task IS NOT NULL
  WINDOW before AS (PARTITION BY "group", plan, task, to_process ORDER BY log_offset)
)
SELECT as_of AS promoted, "group", task, to_process, lag, epoch(as_of - warming) AS seconds
FROM steps WHERE event = 'promoted' AND warming >= planned
ORDER BY seconds DESC, promoted LIMIT 50;
