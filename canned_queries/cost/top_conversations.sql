-- ---
-- title: Top conversations
-- description: The conversations that cost most; a chain of continuations is one conversation, under its last title.
-- parameters:
--   - since
--   - until
--   - tz
--   - day_rule
--   - source
--   - model
--   - profile
--   - limit: {default: 50}
-- columns:
--   - conversation_id
--   - tip_session_id
--   - title
--   - source
--   - segments
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
-- chart: {kind: bars, label: title, value: cost_usd}
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
  GROUP BY session_id
),
l AS MATERIALIZED (
  SELECT session_id, conversation_id, work_id, tip_session_id, kind FROM ledger_lineage
),
ranked AS (
  SELECT coalesce(l.conversation_id, s.session_id) AS conversation_id,
         max(l.tip_session_id) AS tip_session_id,
         count(DISTINCT s.session_id) AS segments_in_period,
         sum(s.api_call_count) AS api_call_count,
         sum(s.input_tokens) AS input_tokens,
         sum(s.output_tokens) AS output_tokens,
         sum(s.cache_read_tokens) AS cache_read_tokens,
         sum(s.cache_write_tokens) AS cache_write_tokens,
         sum(s.reasoning_tokens) AS reasoning_tokens,
         sum(s.cost_usd) AS cost_usd,
         sum(s.actual_usd) AS actual_usd,
         sum(s.estimated_usd) AS estimated_usd,
         sum(s.included_calls) AS included_calls,
         sum(s.unknown_calls) AS unknown_calls,
         sum(s.unknown_tokens) AS unknown_tokens,
         sum(s.prompt_tokens) AS prompt_tokens
  FROM spent AS s
  LEFT JOIN l ON l.session_id = s.session_id
  GROUP BY coalesce(l.conversation_id, s.session_id)
  ORDER BY sum(s.cost_usd) DESC, sum(s.processed_tokens) DESC, 1
  LIMIT :limit
)
SELECT r.conversation_id, r.tip_session_id,
       coalesce(t.title, f.title) AS title,
       f.source AS source,
       coalesce(c.segments, 0) AS segments,
       f.started_at AS started_at,
       t.last_active AS last_active,
r.api_call_count, r.input_tokens, r.output_tokens, r.cache_read_tokens, r.cache_write_tokens, r.reasoning_tokens, r.cost_usd, r.actual_usd, r.estimated_usd, r.included_calls, r.unknown_calls, r.unknown_tokens,
       r.prompt_tokens,
       r.cache_read_tokens * 1.0 / nullif(r.prompt_tokens, 0) AS cache_read_ratio
FROM ranked AS r
LEFT JOIN ledger_session_facts AS f ON f.session_id = r.conversation_id
LEFT JOIN ledger_session_facts AS t ON t.session_id = r.tip_session_id
LEFT JOIN (SELECT conversation_id, count(*) AS segments FROM l GROUP BY conversation_id) AS c
  ON c.conversation_id = r.conversation_id
ORDER BY r.cost_usd DESC, r.conversation_id
