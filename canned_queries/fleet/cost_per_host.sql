-- ---
-- title: Cost per host
-- description: What the stores of each host cost; a session that stands in several stores counts in one of them.
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
--   - host
--   - sessions
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
-- chart: {kind: bars, label: host, value: cost_usd}
-- ---
SELECT host AS host,
       count(DISTINCT session_id) AS sessions,
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
WHERE day_rule = CASE WHEN :since = '' AND :until = '' THEN 'all_time' ELSE :day_rule END
  AND (:since = '' OR last_bucket >= day_start(:since, :tz))
  AND (:until = '' OR first_bucket < day_end(:until, :tz))
  AND (:since = '' OR bucket >= day_start(:since, :tz))
  AND (:until = '' OR bucket < day_end(:until, :tz))
  AND (:source = '' OR source = :source)
  AND (:profile = '' OR profile = :profile)
  AND (:model = '' OR canonical_model = canonical_model(:model))
GROUP BY ledger_time.host
ORDER BY cost_usd DESC, sum(processed_tokens) DESC, host
LIMIT :limit
