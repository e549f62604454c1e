-- ---
-- title: Audit of the ledger
-- description: The grand total by basis and attribution, what separates it from the naive sum of the sessions table, what was set aside and why.
-- parameters: []
-- columns:
--   - section
--   - item: " | line of the audit"
--   - basis
--   - attribution
--   - rows: "rows | rows concerned"
--   - sessions
--   - api_call_count
--   - processed_tokens
--   - cost_usd
--   - note
-- ---
WITH usage AS MATERIALIZED (
  SELECT session_id, basis, attribution, task, api_call_count, processed_tokens,
         coalesce(cost_usd, 0) AS cost, cost_usd, coalesce(stored_estimate_usd, 0) AS estimate
  FROM ledger_usage
),
naive AS (
  SELECT sum(CASE WHEN problem IS NULL THEN estimated_cost_usd END) AS sound,
         sum(CASE WHEN problem IS NOT NULL AND estimated_cost_usd BETWEEN -9e15 AND 9e15 THEN estimated_cost_usd END) AS set_aside,
         count(*) AS sessions
  FROM ledger_session_rows
),
mains AS (
  SELECT sum(r.problem IS NOT NULL) AS rows, sum(CASE WHEN r.problem IS NOT NULL THEN u.estimate END) AS unsound
  FROM usage AS u JOIN ledger_session_rows AS r ON r.session_id = u.session_id
  WHERE u.task = '' AND u.attribution = 'usage'
),
excess AS (
  SELECT count(*) AS rows, -sum(estimated_cost_usd) AS cost
  FROM ledger_session_rest
  WHERE estimated_cost_usd < 0
),
unseen AS (
  SELECT count(*) AS rows, sum(usage_value) AS cost
  FROM (SELECT session_id, sum(estimate) AS usage_value FROM usage WHERE task = '' AND attribution = 'usage' GROUP BY session_id)
  WHERE session_id IN (SELECT session_id FROM ledger_session_rest WHERE own_estimated_cost_usd IS NULL)
),
implausible AS (
  SELECT count(*) AS rows, sum(s.estimated_cost_usd) AS cost
  FROM ledger_session_rest AS s
  WHERE s.session_id IN (SELECT session_id FROM ledger_set_aside WHERE source_table = 'sessions' AND reason LIKE 'cost above%')
)
SELECT section, item, basis, attribution, rows, sessions, api_call_count, processed_tokens, cost_usd, note
FROM (
SELECT 1 AS place, 'basis' AS section, 'cost by basis and attribution' AS item, basis, attribution, count(*) AS rows,
       count(DISTINCT session_id) AS sessions, sum(api_call_count) AS api_call_count,
       sum(processed_tokens) AS processed_tokens, sum(cost_usd) AS cost_usd,
       CASE basis WHEN 'unknown' THEN 'no price is known: counted in calls and tokens'
                  WHEN 'included' THEN 'covered by a subscription: no bill'
                  ELSE NULL END AS note
FROM usage GROUP BY basis, attribution
UNION ALL
SELECT 2, 'total', 'grand total', NULL, NULL, count(*), count(DISTINCT session_id), sum(api_call_count),
       sum(processed_tokens), sum(cost_usd), 'every call once'
FROM usage
UNION ALL
SELECT 3, 'naive', 'sum of sessions.estimated_cost_usd', NULL, NULL, sessions, sessions, NULL, NULL,
       coalesce(sound, 0) + coalesce(set_aside, 0), 'what a plain sum over the sessions table would say'
FROM naive
UNION ALL
SELECT 4, 'cause', 'helper calls', NULL, NULL, count(*), count(DISTINCT session_id), sum(api_call_count),
       sum(processed_tokens), sum(estimate), 'titles, compression, vision and other tasks stand in usage rows only'
FROM usage WHERE task <> '' AND attribution <> 'orphan' HAVING count(*) > 0
UNION ALL
SELECT 5, 'cause', 'usage rows without a session', NULL, NULL, count(*), count(DISTINCT session_id), sum(api_call_count),
       sum(processed_tokens), sum(estimate), 'their session row was deleted'
FROM usage WHERE attribution = 'orphan' HAVING count(*) > 0
UNION ALL
SELECT 6, 'cause', 'usage rows exceed the session', NULL, NULL, rows, rows, NULL, NULL, cost,
       'the session row says less than its usage rows'
FROM excess WHERE rows > 0
UNION ALL
SELECT 7, 'cause', 'sessions without an amount of their own', NULL, NULL, rows, rows, NULL, NULL, cost,
       'the amount stands in usage rows only'
FROM unseen WHERE rows > 0 AND cost <> 0
UNION ALL
SELECT 8, 'cause', 'actual costs differ from estimates', NULL, NULL, count(*), count(DISTINCT session_id), NULL, NULL,
       sum(cost - estimate), 'an actual cost replaces the estimate of the same calls'
FROM usage WHERE basis = 'actual' HAVING count(*) > 0
UNION ALL
SELECT 9, 'cause', 'session rows set aside', NULL, NULL, rows, NULL, NULL, NULL, coalesce(unsound, 0) - coalesce(n.set_aside, 0),
       'their counters cannot be true; their usage rows still count'
FROM mains, naive AS n WHERE coalesce(unsound, 0) <> 0 OR coalesce(n.set_aside, 0) <> 0
UNION ALL
SELECT 10, 'cause', 'implausible amounts of session rows', NULL, NULL, rows, rows, NULL, NULL, -cost,
       'above the bound per token: set aside'
FROM implausible WHERE rows > 0
UNION ALL
SELECT 11, 'set aside', reason, NULL, source_table, count(*), count(DISTINCT session_id), NULL, NULL, sum(claimed_usd),
       'in no sum'
FROM ledger_set_aside GROUP BY reason, source_table
UNION ALL
SELECT 12, 'discrepancy', kind, NULL, figure, count(*), count(DISTINCT session_id), NULL, NULL,
       sum(CASE WHEN figure IN ('estimated_cost_usd', 'actual_cost_usd', 'cost_usd') THEN difference END),
       'reported, not corrected'
FROM ledger_discrepancies GROUP BY kind, figure
) AS told
ORDER BY place, item, basis, attribution
