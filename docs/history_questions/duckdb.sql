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
WITH generations AS (
  SELECT "group", generation, as_of, list_sort(list_distinct(list_transform(
           members, lambda m: regexp_replace(m.client_id, '-StreamThread-.*', '')))) AS clients
  FROM group_generations
  WHERE date BETWEEN CAST(getvariable('since') AS DATE) AND CAST(getvariable('until') AS DATE)
    AND as_of BETWEEN getvariable('since') AND getvariable('until')
), changes AS (
  SELECT "group", clients, lag(clients) OVER (PARTITION BY "group" ORDER BY generation, as_of) AS before
  FROM generations QUALIFY before IS NOT NULL
), causes AS (
  SELECT "group", unnest(list_filter(clients, lambda c: NOT list_contains(before, c))) AS client,
         'joined' AS what FROM changes
  UNION ALL
  SELECT "group", unnest(list_filter(before, lambda c: NOT list_contains(clients, c))), 'left' FROM changes
  UNION ALL
  SELECT "group", '(no client: it was due, or requested)', 'due' FROM changes WHERE clients = before
)
SELECT "group", client, count(*) AS rebalances,
       count(*) FILTER (what = 'joined') AS joined, count(*) FILTER (what = 'left') AS "left"
FROM causes GROUP BY "group", client ORDER BY rebalances DESC, "group", client LIMIT 50;

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
