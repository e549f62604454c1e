-- ---
-- title: Messages of a session
-- description: "Every logical message of a session in order, decoded; taken-back ones only when asked for."
-- parameters:
--   - session
--   - after: {type: integer, label: 'Only messages after this id', default: 0}
--   - taken_back: {type: choice, label: 'Taken-back messages', default: 'without', choices: ['without', 'with']}
--   - limit: {default: 100}
-- columns:
--   - id
--   - session_id
--   - timestamp
--   - role
--   - state
--   - text
--   - tool_name
--   - tool_call_id
--   - tool_calls
--   - reasoning
--   - finish_reason
--   - sent_verbatim
--   - api_content
--   - problem
-- ---
SELECT m.id, m.session_id, m.timestamp, m.role, m.state, m.text, m.tool_name, m.tool_call_id, m.tool_calls, m.reasoning,
       m.finish_reason, m.sent_verbatim, m.api_content, m.problem
FROM (
  SELECT id, session_id
  FROM ledger_messages
  WHERE session_id = coalesce(nullif(:session, ''), (SELECT session_id FROM ledger_session_facts ORDER BY started_at DESC, session_id DESC LIMIT 1))
    AND id > :after
    AND (:taken_back = 'with' OR state <> 'taken back')
  ORDER BY id
  LIMIT :limit
) AS k
JOIN ledger_messages AS m ON m.id = k.id AND m.session_id = k.session_id
ORDER BY m.id
