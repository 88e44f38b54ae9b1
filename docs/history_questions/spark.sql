-- The five questions in Spark SQL: run the first cell, then any other.

-- %%
SET TIME ZONE 'UTC';
DECLARE OR REPLACE VARIABLE since = TIMESTAMP '2026-11-17 00:00:00Z';
DECLARE OR REPLACE VARIABLE until = TIMESTAMP '2026-11-18 00:00:00Z';
CREATE OR REPLACE TEMPORARY VIEW lag USING delta OPTIONS (path 'history/lag');
CREATE OR REPLACE TEMPORARY VIEW decisions USING delta OPTIONS (path 'history/decisions');
CREATE OR REPLACE TEMPORARY VIEW commits USING delta OPTIONS (path 'history/commits');
CREATE OR REPLACE TEMPORARY VIEW rebalances USING delta OPTIONS (path 'history/rebalances');
CREATE OR REPLACE TEMPORARY VIEW movements USING delta OPTIONS (path 'history/movements');

-- %%
-- lag
WITH changes AS (
  SELECT as_of, topic, partition, lag FROM lag
  WHERE date BETWEEN DATE(since) - INTERVAL 7 DAYS AND DATE(until) AND `group` = 'orders'
), latest AS (
  SELECT moment, max_by(lag, as_of) AS lag
  FROM (SELECT explode(sequence(since, until, INTERVAL 30 MINUTES)) AS moment)
  LEFT JOIN changes ON as_of <= moment
  GROUP BY moment, topic, partition
)
SELECT moment, sum(lag) AS lag, max(lag) AS worst FROM latest GROUP BY moment ORDER BY moment;

-- %%
-- deployments
SELECT as_of, `group`, generation, copies, kafka_copies, seconds, kafka_seconds
FROM decisions
WHERE date BETWEEN DATE(since) AND DATE(until) AND as_of BETWEEN since AND until
  AND present AND (copies > 0 OR kafka_copies > 0)
ORDER BY kafka_copies DESC, as_of LIMIT 50;

-- %%
-- commits
SELECT `group`, count(*) AS commits, max(commit_timestamp) AS last_commit,
       round(count(*) / timestampdiff(SECOND, since, until), 3) AS per_second
FROM commits
WHERE date BETWEEN DATE(since) AND DATE(until) AND commit_timestamp BETWEEN since AND until AND present
GROUP BY `group` ORDER BY commits DESC, `group` LIMIT 50;

-- %%
-- rebalances
WITH seen AS (
  SELECT * FROM rebalances
  WHERE date BETWEEN DATE(since) AND DATE(until) AND as_of BETWEEN since AND until AND error IS NULL
), causes AS (
  SELECT `group`, log_offset, explode(causes) AS of FROM seen
), told AS (
  SELECT `group`, log_offset, of.kind AS cause, of.sure AS sure,
         coalesce(regexp_replace(of.client, '-StreamThread-.*', ''), of.topic, '') AS about
  FROM causes
  UNION ALL
  SELECT `group`, log_offset, 'unknown', 'unknown', '' FROM seen WHERE causes IS NULL
)
SELECT `group`, cause, about, sure, count(DISTINCT log_offset) AS rebalances
FROM told GROUP BY `group`, cause, about, sure
ORDER BY rebalances DESC, `group`, cause, about, sure LIMIT 50;

-- %%
-- warm-ups
WITH steps AS (
  SELECT *, max(IF(event = 'planned', as_of, NULL)) OVER before AS planned,
         max(IF(event = 'warming', as_of, NULL)) OVER before AS warming
  FROM movements
  WHERE date BETWEEN DATE(since) AND DATE(until) AND as_of BETWEEN since AND until
    AND task IS NOT NULL
  WINDOW before AS (PARTITION BY `group`, plan, task, to_process ORDER BY log_offset)
)
SELECT as_of AS promoted, `group`, task, to_process, lag,
       timestampdiff(MILLISECOND, warming, as_of) / 1000 AS seconds
FROM steps WHERE event = 'promoted' AND warming >= planned
ORDER BY seconds DESC, promoted LIMIT 50;
