-- ---
-- title: Cache ratio per host
-- description: "Cache reads over whole prompts, host by host: the ratio of the sums."
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
--   - prompt_tokens
--   - input_tokens
--   - cache_read_tokens
--   - cache_write_tokens
--   - cache_read_ratio
--   - cost_usd
-- chart: {kind: bars, label: host, value: cache_read_ratio}
-- ---
SELECT host AS host,
       count(DISTINCT session_id) AS sessions,
       sum(prompt_tokens) AS prompt_tokens,
       sum(input_tokens) AS input_tokens,
       sum(cache_read_tokens) AS cache_read_tokens,
       sum(cache_write_tokens) AS cache_write_tokens,
       sum(CASE WHEN prompt_tokens IS NOT NULL THEN cache_read_tokens END) * 1.0 / nullif(sum(prompt_tokens), 0) AS cache_read_ratio,
       sum(cost_usd) AS cost_usd
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
ORDER BY sum(prompt_tokens) DESC, host
LIMIT :limit
