-- ---
-- title: Expensive days
-- description: "Days by what they cost, against the median of the days with usage in the period, each with the session that cost most on it. The last 90 days unless a first day is given."
-- parameters:
--   - since: {default: 89 days ago}
--   - until
--   - tz
--   - day_rule
--   - source
--   - model
--   - profile
--   - min_compared: {type: integer, label: 'No median of fewer than this many days', default: 5, minimum: 1}
--   - limit: {default: 30}
-- columns:
--   - day
--   - cost_usd
--   - unknown_calls
--   - median_cost_usd: "dollars | median of the days of the period that cost something"
--   - times_median: "times | cost_usd / median_cost_usd"
--   - compared: "days | days that the median is of, this one included"
--   - api_call_count
--   - sessions
--   - session_id: " | the session that cost most on the day"
--   - title
--   - session_cost_usd: "dollars | what that session cost on the day"
-- chart: {kind: days, label: day, value: cost_usd}
-- ---
WITH spent AS MATERIALIZED (
  SELECT local_day(bucket, :tz) AS day, session_id, sum(cost_usd) AS cost_usd,
         sum(unknown_calls) AS unknown_calls, sum(api_call_count) AS api_call_count
  FROM ledger_time
  WHERE day_rule = :day_rule
    AND last_bucket >= day_start(:since, :tz)
    AND (:until = '' OR first_bucket < day_end(:until, :tz))
    AND bucket >= day_start(:since, :tz)
    AND (:until = '' OR bucket < day_end(:until, :tz))
    AND (:source = '' OR source = :source)
    AND (:profile = '' OR profile = :profile)
    AND (:model = '' OR canonical_model = canonical_model(:model))
  GROUP BY local_day(bucket, :tz), session_id
),
days AS MATERIALIZED (
  SELECT day, sum(cost_usd) AS cost_usd, sum(unknown_calls) AS unknown_calls,
         sum(api_call_count) AS api_call_count, count(*) AS sessions
  FROM spent GROUP BY day
),
placed AS (
  SELECT cost_usd, row_number() OVER (ORDER BY cost_usd) AS place, count(*) OVER () AS compared
  FROM days WHERE cost_usd > 0
),
middle AS MATERIALIZED (
  SELECT CASE WHEN max(compared) >= :min_compared THEN avg(cost_usd) END AS median, max(compared) AS compared
  FROM placed WHERE 2 * place BETWEEN compared AND compared + 2
),
largest AS MATERIALIZED (
  SELECT day, session_id, cost_usd, row_number() OVER (PARTITION BY day ORDER BY cost_usd DESC, session_id) AS place
  FROM spent WHERE cost_usd > 0
)
SELECT d.day, d.cost_usd, d.unknown_calls, m.median AS median_cost_usd, d.cost_usd / m.median AS times_median,
       m.compared, d.api_call_count, d.sessions, g.session_id, f.title, g.cost_usd AS session_cost_usd
FROM days AS d
CROSS JOIN middle AS m
LEFT JOIN largest AS g ON g.day = d.day AND g.place = 1
LEFT JOIN ledger_session_facts AS f ON f.session_id = g.session_id
ORDER BY d.cost_usd DESC, d.day
LIMIT :limit
