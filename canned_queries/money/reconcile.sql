-- ---
-- title: The books beside a bill
-- description: "What the books say of each day and model, to lay beside a provider's bill; state-ledger reconcile and the page Reconcile do it. Providers bill by days of UTC."
-- parameters:
--   - since
--   - until
--   - tz
--   - day_rule
--   - provider: {type: text, label: Only what this provider billed}
--   - limit: {default: 10000}
-- columns:
--   - day
--   - model: " | model name without provider prefix, case and date suffix"
--   - sessions
--   - api_call_count
--   - cost_usd
--   - actual_usd
--   - estimated_usd
--   - included_calls
--   - unknown_calls
--   - unknown_tokens
-- ---
SELECT coalesce(local_day(bucket, :tz), 'no day') AS day,
       canonical_model AS model,
       count(DISTINCT session_id) AS sessions,
       sum(api_call_count) AS api_call_count,
       sum(cost_usd) AS cost_usd,
       sum(actual_usd) AS actual_usd,
       sum(estimated_usd) AS estimated_usd,
       sum(included_calls) AS included_calls,
       sum(unknown_calls) AS unknown_calls,
       sum(unknown_tokens) AS unknown_tokens
FROM ledger_time
WHERE day_rule = :day_rule
  AND (:since = '' OR last_bucket >= day_start(:since, :tz))
  AND (:until = '' OR first_bucket < day_end(:until, :tz))
  AND (:since = '' OR bucket >= day_start(:since, :tz))
  AND (:until = '' OR bucket < day_end(:until, :tz))
  AND (:provider = '' OR billing_provider = :provider)
GROUP BY coalesce(local_day(bucket, :tz), 'no day'), canonical_model
ORDER BY day, model
LIMIT :limit
