-- ---
-- title: Usage without a known price
-- description: Calls and tokens for which no price is known, and amounts that are only a part; never counted as 0 dollars.
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
--   - model: " | model name without provider prefix, case and date suffix"
--   - models_as_stored
--   - billing_provider
--   - cost_status
--   - cost_source
--   - partial
--   - sessions
--   - api_call_count
--   - input_tokens
--   - output_tokens
--   - cache_read_tokens
--   - cache_write_tokens
--   - processed_tokens
--   - cost_usd
--   - unknown_calls
--   - unknown_tokens
-- chart: {kind: bars, label: model, value: unknown_tokens}
-- ---
SELECT canonical_model AS model,
       group_concat(DISTINCT model) AS models_as_stored,
       billing_provider, cost_status, cost_source, partial,
       count(DISTINCT session_id) AS sessions,
       sum(api_call_count) AS api_call_count,
       sum(input_tokens) AS input_tokens,
       sum(output_tokens) AS output_tokens,
       sum(cache_read_tokens) AS cache_read_tokens,
       sum(cache_write_tokens) AS cache_write_tokens,
       sum(processed_tokens) AS processed_tokens,
       sum(cost_usd) AS cost_usd,
       sum(unknown_calls) AS unknown_calls,
       sum(unknown_tokens) AS unknown_tokens
FROM ledger_time
WHERE day_rule = CASE WHEN :since = '' AND :until = '' THEN 'all_time' ELSE :day_rule END
  AND (:since = '' OR last_bucket >= day_start(:since, :tz))
  AND (:until = '' OR first_bucket < day_end(:until, :tz))
  AND (:since = '' OR bucket >= day_start(:since, :tz))
  AND (:until = '' OR bucket < day_end(:until, :tz))
  AND (:source = '' OR source = :source)
  AND (:profile = '' OR profile = :profile)
  AND (:model = '' OR canonical_model = canonical_model(:model))
  AND (basis = 'unknown' OR partial = 1)
GROUP BY canonical_model, billing_provider, cost_status, cost_source, partial
ORDER BY unknown_tokens DESC, model
LIMIT :limit
