-- ---
-- title: Recent sessions
-- description: Sessions by their last activity, with the beginning of the first user message.
-- parameters:
--   - source
--   - model
--   - profile
--   - limit: {default: 50}
-- columns:
--   - session_id
--   - title
--   - preview
--   - source
--   - profile
--   - model
--   - kind
--   - started_at
--   - ended_at
--   - end_reason
--   - last_active
--   - message_count
--   - api_call_count
--   - fresh_tokens
--   - processed_tokens
--   - cost_usd
--   - actual_usd
--   - estimated_usd
--   - included_calls
--   - unknown_calls
-- ---
WITH picked AS (
  SELECT session_id, last_active
  FROM ledger_session_facts
  WHERE (:source = '' OR source = :source)
    AND (:model = '' OR canonical_model = canonical_model(:model))
    AND (:profile = '' OR profile = :profile)
  ORDER BY last_active DESC, session_id
  LIMIT :limit
)
SELECT f.session_id, f.title, f.preview, f.source, f.profile, f.model, f.kind, f.started_at, f.ended_at, f.end_reason,
       f.last_active, f.message_count, u.api_call_count, u.fresh_tokens, u.processed_tokens, u.cost_usd, u.actual_usd, u.estimated_usd, u.included_calls, u.unknown_calls
FROM picked AS p
JOIN ledger_session_facts AS f ON f.session_id = p.session_id
LEFT JOIN ledger_session_sums AS u ON u.session_id = p.session_id
ORDER BY p.last_active DESC, p.session_id
