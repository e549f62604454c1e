-- ---
-- title: Sessions with the worst cache
-- description: "Sessions with long prompts of which little came from the cache: where a prompt cache broke."
-- parameters:
--   - since
--   - until
--   - tz
--   - day_rule
--   - source
--   - model
--   - profile
--   - min_prompt_tokens: {type: integer, label: 'Only sessions with at least this many prompt tokens', default: 20000}
--   - limit: {default: 50}
-- columns:
--   - session_id
--   - title
--   - source
--   - canonical_model
--   - api_call_count
--   - prompt_tokens
--   - input_tokens
--   - cache_read_tokens
--   - cache_write_tokens
--   - cache_read_ratio
--   - cost_usd
--   - started_at
--   - last_active
-- chart: {kind: bars, label: session_id, value: cache_read_ratio}
-- ---
WITH spent AS (
  SELECT session_id, canonical_model, max(source) AS source, sum(api_call_count) AS api_call_count,
         sum(prompt_tokens) AS prompt_tokens, sum(input_tokens) AS input_tokens,
         sum(CASE WHEN prompt_tokens IS NOT NULL THEN cache_read_tokens END) AS cache_read_tokens,
         sum(cache_write_tokens) AS cache_write_tokens, sum(cost_usd) AS cost_usd
  FROM ledger_time
  WHERE day_rule = CASE WHEN :since = '' AND :until = '' THEN 'all_time' ELSE :day_rule END
    AND (:since = '' OR last_bucket >= day_start(:since, :tz))
    AND (:until = '' OR first_bucket < day_end(:until, :tz))
    AND (:since = '' OR bucket >= day_start(:since, :tz))
    AND (:until = '' OR bucket < day_end(:until, :tz))
    AND (:source = '' OR source = :source)
    AND (:profile = '' OR profile = :profile)
    AND (:model = '' OR canonical_model = canonical_model(:model))
    AND task = ''
  GROUP BY session_id, canonical_model
  HAVING sum(prompt_tokens) >= :min_prompt_tokens
  ORDER BY sum(cache_read_tokens) * 1.0 / sum(prompt_tokens), sum(input_tokens) DESC, session_id, canonical_model
  LIMIT :limit
)
SELECT s.session_id, f.title, s.source, s.canonical_model, s.api_call_count, s.prompt_tokens, s.input_tokens,
       s.cache_read_tokens, s.cache_write_tokens, s.cache_read_tokens * 1.0 / nullif(s.prompt_tokens, 0) AS cache_read_ratio,
       s.cost_usd, f.started_at, f.last_active
FROM spent AS s
LEFT JOIN ledger_session_facts AS f ON f.session_id = s.session_id
ORDER BY cache_read_ratio, s.input_tokens DESC, s.session_id, s.canonical_model
