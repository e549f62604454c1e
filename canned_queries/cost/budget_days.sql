-- ---
-- title: Spending per day
-- description: "What a budget counts, per day: cost and processed tokens, also of one cron job alone, with the continuations and delegates of its runs."
-- parameters:
--   - since
--   - until
--   - tz
--   - day_rule
--   - source
--   - model
--   - profile
--   - cron_job: {type: text, label: 'Only this cron job'}
--   - limit: {default: 1000}
-- columns:
--   - day
--   - cost_usd
--   - actual_usd
--   - estimated_usd
--   - unknown_calls
--   - unknown_tokens
--   - processed_tokens
--   - api_call_count
-- chart: {kind: days, label: day, value: cost_usd}
-- ---
WITH runs AS MATERIALIZED (
  SELECT l.session_id FROM ledger_lineage AS l
  JOIN ledger_session_facts AS f ON f.session_id = l.work_id
  WHERE :cron_job <> '' AND f.cron_job = :cron_job
)
SELECT local_day(bucket, :tz) AS day, sum(cost_usd) AS cost_usd, sum(actual_usd) AS actual_usd,
       sum(estimated_usd) AS estimated_usd, sum(unknown_calls) AS unknown_calls,
       sum(unknown_tokens) AS unknown_tokens, sum(processed_tokens) AS processed_tokens,
       sum(api_call_count) AS api_call_count
FROM ledger_time
WHERE day_rule = :day_rule
  AND (:since = '' OR last_bucket >= day_start(:since, :tz))
  AND (:until = '' OR first_bucket < day_end(:until, :tz))
  AND (:since = '' OR bucket >= day_start(:since, :tz))
  AND (:until = '' OR bucket < day_end(:until, :tz))
  AND (:source = '' OR source = :source)
  AND (:profile = '' OR profile = :profile)
  AND (:model = '' OR canonical_model = canonical_model(:model))
  AND (:cron_job = '' OR session_id IN (SELECT session_id FROM runs))
GROUP BY local_day(bucket, :tz)
ORDER BY day DESC
LIMIT :limit
