-- ---
-- title: Cost per cron job
-- description: What each scheduled job cost, with the continuations and delegates of its runs.
-- parameters:
--   - since
--   - until
--   - tz
--   - day_rule
--   - source
--   - model
--   - profile
--   - limit
-- columns:
--   - cron_job: " | job, from session ids named cron_<job>_…"
--   - runs: "runs | sessions that the scheduler started"
--   - sessions
--   - cost_per_run_usd: "dollars | cost_usd / runs"
--   - api_call_count
--   - input_tokens
--   - output_tokens
--   - cache_read_tokens
--   - cache_write_tokens
--   - reasoning_tokens
--   - cost_usd
--   - actual_usd
--   - estimated_usd
--   - included_calls
--   - unknown_calls
--   - unknown_tokens
-- chart: {kind: bars, label: cron_job, value: cost_usd}
-- ---
WITH spent AS (
  SELECT session_id, max(source) AS source,
         sum(api_call_count) AS api_call_count,
         sum(input_tokens) AS input_tokens,
         sum(output_tokens) AS output_tokens,
         sum(cache_read_tokens) AS cache_read_tokens,
         sum(cache_write_tokens) AS cache_write_tokens,
         sum(reasoning_tokens) AS reasoning_tokens,
         sum(cost_usd) AS cost_usd,
         sum(actual_usd) AS actual_usd,
         sum(estimated_usd) AS estimated_usd,
         sum(included_calls) AS included_calls,
         sum(unknown_calls) AS unknown_calls,
         sum(unknown_tokens) AS unknown_tokens,
         sum(prompt_tokens) AS prompt_tokens,
         sum(processed_tokens) AS processed_tokens
  FROM ledger_time
  WHERE day_rule = CASE WHEN :since = '' AND :until = '' THEN 'all_time' ELSE :day_rule END
    AND (:since = '' OR last_bucket >= day_start(:since, :tz))
    AND (:until = '' OR first_bucket < day_end(:until, :tz))
    AND (:since = '' OR bucket >= day_start(:since, :tz))
    AND (:until = '' OR bucket < day_end(:until, :tz))
    AND (:source = '' OR source = :source)
    AND (:profile = '' OR profile = :profile)
    AND (:model = '' OR canonical_model = canonical_model(:model))
  GROUP BY session_id
),
jobs AS (
  SELECT l.session_id, l.work_id, f.cron_job
  FROM ledger_lineage AS l
  JOIN ledger_session_facts AS f ON f.session_id = l.work_id
  WHERE f.cron_job IS NOT NULL
)
SELECT j.cron_job AS cron_job,
       count(DISTINCT j.work_id) AS runs,
       count(*) AS sessions,
       sum(s.cost_usd) / count(DISTINCT j.work_id) AS cost_per_run_usd,
       sum(s.api_call_count) AS api_call_count,
       sum(s.input_tokens) AS input_tokens,
       sum(s.output_tokens) AS output_tokens,
       sum(s.cache_read_tokens) AS cache_read_tokens,
       sum(s.cache_write_tokens) AS cache_write_tokens,
       sum(s.reasoning_tokens) AS reasoning_tokens,
       sum(s.cost_usd) AS cost_usd,
       sum(s.actual_usd) AS actual_usd,
       sum(s.estimated_usd) AS estimated_usd,
       sum(s.included_calls) AS included_calls,
       sum(s.unknown_calls) AS unknown_calls,
       sum(s.unknown_tokens) AS unknown_tokens
FROM spent AS s
JOIN jobs AS j ON j.session_id = s.session_id
GROUP BY j.cron_job
ORDER BY cost_usd DESC, cron_job
LIMIT :limit
