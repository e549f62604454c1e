-- ---
-- title: Sessions behind a cost
-- description: "The sessions whose cost makes up a bar or a row: the same filters, one line per session."
-- parameters:
--   - since
--   - until
--   - tz
--   - day_rule
--   - source
--   - model
--   - profile
--   - task: {type: text, label: 'Only this task; main for the main conversation'}
--   - basis: {type: text, label: 'Only this basis: actual, estimated, included or unknown'}
--   - provider: {type: text, label: Only what this provider billed}
--   - limit
-- columns:
--   - session_id
--   - title
--   - source
--   - profile
--   - started_at
--   - last_active
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
    AND (:task = '' OR task = CASE WHEN :task = 'main' THEN '' ELSE :task END)
    AND (:basis = '' OR basis = :basis)
    AND (:provider = '' OR billing_provider = :provider)
  GROUP BY session_id
)
SELECT s.session_id, f.title, s.source, f.profile, f.started_at, f.last_active,
s.api_call_count, s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.reasoning_tokens, s.cost_usd, s.actual_usd, s.estimated_usd, s.included_calls, s.unknown_calls, s.unknown_tokens,
       s.prompt_tokens,
       s.cache_read_tokens * 1.0 / nullif(s.prompt_tokens, 0) AS cache_read_ratio
FROM (SELECT * FROM spent ORDER BY cost_usd DESC, processed_tokens DESC, session_id LIMIT :limit) AS s
LEFT JOIN ledger_session_facts AS f ON f.session_id = s.session_id
ORDER BY s.cost_usd DESC, s.processed_tokens DESC, s.session_id
