-- ---
-- title: Longest conversations
-- description: Conversations by number of messages, a chain of continuations counting as one.
-- parameters:
--   - source
--   - limit: {default: 50}
-- columns:
--   - conversation_id
--   - tip_session_id
--   - title: " | title of the last session, else of the first"
--   - source
--   - segments
--   - message_count
--   - started_at
--   - last_active
--   - cost_usd
--   - processed_tokens
-- chart: {kind: bars, label: title, value: message_count}
-- ---
SELECT conversation_id, tip_session_id, coalesce(tip_title, first_title) AS title, source, segments, message_count,
       started_at, last_active, cost_usd, processed_tokens
FROM ledger_conversations
WHERE (:source = '' OR source = :source)
ORDER BY message_count DESC, segments DESC, conversation_id
LIMIT :limit
