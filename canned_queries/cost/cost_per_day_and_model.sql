-- ---
-- title: Cost per day and model
-- description: "What each model cost on each calendar day: the stacked bars of the home and cost pages."
-- parameters:
--   - since
--   - until
--   - tz
--   - day_rule
--   - source
--   - model
--   - profile
--   - limit: {default: 5000}
-- columns:
--   - day
--   - model: " | model name without provider prefix, case and date suffix"
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
--   - prompt_tokens
--   - cache_read_ratio
-- chart: {kind: days, label: day, value: cost_usd, series: model}
-- ---
SELECT local_day(bucket, :tz) AS day,
       canonical_model AS model,
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
       sum(CASE WHEN prompt_tokens IS NOT NULL THEN cache_read_tokens END) * 1.0 / nullif(sum(prompt_tokens), 0) AS cache_read_ratio
FROM ledger_time
WHERE day_rule = :day_rule
  AND (:since = '' OR last_bucket >= day_start(:since, :tz))
  AND (:until = '' OR first_bucket < day_end(:until, :tz))
  AND (:since = '' OR bucket >= day_start(:since, :tz))
  AND (:until = '' OR bucket < day_end(:until, :tz))
  AND (:source = '' OR source = :source)
  AND (:profile = '' OR profile = :profile)
  AND (:model = '' OR canonical_model = canonical_model(:model))
GROUP BY local_day(bucket, :tz), canonical_model
ORDER BY day DESC, cost_usd DESC, model
LIMIT :limit
