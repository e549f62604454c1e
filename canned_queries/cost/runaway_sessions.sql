-- ---
-- title: Runaway sessions
-- description: "Sessions that cost or called several times the median of their source and model, with the call that they repeated most. Whole sessions that were active in the period; the last 30 days unless a first day is given."
-- parameters:
--   - since: {default: 29 days ago}
--   - until
--   - tz
--   - source
--   - model
--   - profile
--   - times: {type: integer, label: 'At least this many times the median of cost or calls', default: 3, minimum: 1}
--   - min_compared: {type: integer, label: 'No median of fewer than this many sessions', default: 5, minimum: 1}
--   - limit: {default: 50}
-- columns:
--   - session_id
--   - title
--   - source
--   - canonical_model
--   - last_active
--   - cost_usd
--   - unknown_calls
--   - median_cost_usd: "dollars | median of the sessions of this source and model that cost something"
--   - times_cost: "times | cost_usd / median_cost_usd"
--   - calls: "calls | calls of the main conversation, helpers apart"
--   - median_calls: "calls | median of the sessions of this source and model"
--   - times_calls: "times | calls / median_calls"
--   - compared: "sessions | sessions that the medians are of, this one included"
--   - repeated_tool: " | the tool that it called most often with the same arguments"
--   - repeats: "times | how often that very call was made"
-- chart: {kind: bars, label: session_id, value: cost_usd}
-- ---
WITH used AS MATERIALIZED (
  SELECT session_id, sum(cost_usd) AS cost_usd, sum(unknown_calls) AS unknown_calls,
         sum(CASE WHEN task = '' THEN api_call_count END) AS calls
  FROM ledger_usage GROUP BY session_id
),
whole AS MATERIALIZED (
  SELECT u.session_id, f.source, f.canonical_model, f.profile, f.title, f.first_active, f.last_active,
         u.cost_usd, u.unknown_calls, u.calls
  FROM used AS u JOIN ledger_session_facts AS f ON f.session_id = u.session_id
),
costs AS (
  SELECT source, canonical_model, cost_usd AS value,
         row_number() OVER (PARTITION BY source, canonical_model ORDER BY cost_usd) AS place,
         count(*) OVER (PARTITION BY source, canonical_model) AS compared
  FROM whole WHERE cost_usd > 0
),
called AS (
  SELECT source, canonical_model, calls AS value,
         row_number() OVER (PARTITION BY source, canonical_model ORDER BY calls) AS place,
         count(*) OVER (PARTITION BY source, canonical_model) AS compared
  FROM whole WHERE calls > 0
),
median_costs AS MATERIALIZED (
  SELECT source, canonical_model, avg(value) AS median, max(compared) AS compared FROM costs
  WHERE 2 * place BETWEEN compared AND compared + 2 AND compared >= :min_compared GROUP BY source, canonical_model
),
median_calls AS MATERIALIZED (
  SELECT source, canonical_model, avg(value) AS median, max(compared) AS compared FROM called
  WHERE 2 * place BETWEEN compared AND compared + 2 AND compared >= :min_compared GROUP BY source, canonical_model
),
suspects AS MATERIALIZED (
  SELECT w.session_id, w.title, w.source, w.canonical_model, w.last_active, w.cost_usd, w.unknown_calls,
         c.median AS median_cost_usd, w.cost_usd / c.median AS times_cost,
         w.calls, n.median AS median_calls, w.calls / n.median AS times_calls,
         coalesce(n.compared, c.compared) AS compared
  FROM whole AS w
  LEFT JOIN median_costs AS c
    ON c.source = w.source AND coalesce(c.canonical_model, '') = coalesce(w.canonical_model, '')
  LEFT JOIN median_calls AS n
    ON n.source = w.source AND coalesce(n.canonical_model, '') = coalesce(w.canonical_model, '')
  WHERE (w.cost_usd >= :times * c.median OR w.calls >= :times * n.median)
    AND w.last_active >= day_start(:since, :tz)
    AND (:until = '' OR w.first_active < day_end(:until, :tz))
    AND (:source = '' OR w.source = :source)
    AND (:profile = '' OR w.profile = :profile)
    AND (:model = '' OR w.canonical_model = canonical_model(:model))
  ORDER BY w.cost_usd DESC, w.calls DESC, w.session_id
  LIMIT :limit
),
repeated AS (
  SELECT t.session_id, t.tool_name, count(*) AS repeats,
         row_number() OVER (PARTITION BY t.session_id ORDER BY count(*) DESC, min(t.message_id)) AS place
  FROM suspects AS s CROSS JOIN ledger_tool_calls AS t ON t.session_id = s.session_id
  GROUP BY t.session_id, t.tool_name, t.arguments
  HAVING count(*) > 1
)
SELECT s.session_id, s.title, s.source, s.canonical_model, s.last_active, s.cost_usd, s.unknown_calls,
       s.median_cost_usd, s.times_cost, s.calls, s.median_calls, s.times_calls, s.compared,
       r.tool_name AS repeated_tool, r.repeats
FROM suspects AS s
LEFT JOIN repeated AS r ON r.session_id = s.session_id AND r.place = 1
ORDER BY s.cost_usd DESC, s.calls DESC, s.session_id
