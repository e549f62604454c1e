-- ---
-- title: Cache-read ratio per day
-- description: "How much of the prompts came from the cache: the ratio of the sums, never a mean of ratios; NULL is no data."
-- parameters:
--   - since
--   - until
--   - tz
--   - day_rule
--   - source
--   - model
--   - profile
--   - limit: {default: 1000}
-- columns:
--   - day
--   - sessions
--   - prompt_tokens
--   - input_tokens
--   - cache_read_tokens
--   - cache_write_tokens
--   - cache_read_ratio
--   - cost_usd
-- chart: {kind: days, label: day, value: cache_read_ratio}
-- ---
SELECT local_day(bucket, :tz) AS day,
       count(DISTINCT session_id) AS sessions,
       sum(prompt_tokens) AS prompt_tokens,
       sum(input_tokens) AS input_tokens,
       sum(cache_read_tokens) AS cache_read_tokens,
       sum(cache_write_tokens) AS cache_write_tokens,
       sum(CASE WHEN prompt_tokens IS NOT NULL THEN cache_read_tokens END) * 1.0 / nullif(sum(prompt_tokens), 0) AS cache_read_ratio,
       sum(cost_usd) AS cost_usd
FROM ledger_time
WHERE day_rule = :day_rule
  AND (:since = '' OR last_bucket >= day_start(:since, :tz))
  AND (:until = '' OR first_bucket < day_end(:until, :tz))
  AND (:since = '' OR bucket >= day_start(:since, :tz))
  AND (:until = '' OR bucket < day_end(:until, :tz))
  AND (:source = '' OR source = :source)
  AND (:profile = '' OR profile = :profile)
  AND (:model = '' OR canonical_model = canonical_model(:model))
GROUP BY local_day(bucket, :tz)
ORDER BY day DESC
LIMIT :limit
