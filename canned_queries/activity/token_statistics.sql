-- ---
-- title: Token statistics
-- description: Tokens of each model in all four buckets, with fresh, processed and the mean per session.
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
--   - sessions
--   - api_call_count
--   - input_tokens
--   - output_tokens
--   - cache_read_tokens
--   - cache_write_tokens
--   - reasoning_tokens
--   - prompt_tokens
--   - fresh_tokens
--   - processed_tokens
--   - processed_per_session: "tokens | processed_tokens / sessions"
--   - cache_read_ratio
-- chart: {kind: bars, label: model, value: processed_tokens}
-- ---
SELECT canonical_model AS model,
       count(DISTINCT session_id) AS sessions,
       sum(api_call_count) AS api_call_count,
       sum(input_tokens) AS input_tokens,
       sum(output_tokens) AS output_tokens,
       sum(cache_read_tokens) AS cache_read_tokens,
       sum(cache_write_tokens) AS cache_write_tokens,
       sum(reasoning_tokens) AS reasoning_tokens,
       sum(prompt_tokens) AS prompt_tokens,
       sum(fresh_tokens) AS fresh_tokens,
       sum(processed_tokens) AS processed_tokens,
       sum(processed_tokens) * 1.0 / count(DISTINCT session_id) AS processed_per_session,
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
GROUP BY canonical_model
ORDER BY sum(processed_tokens) DESC, model
LIMIT :limit
