-- ---
-- title: Locks
-- description: Sessions that are being compressed and conversations in which a turn is taken, and who holds them.
-- parameters:
--   - limit: {default: 200}
-- columns:
--   - kind: " | compression (of a session) or turn (in a conversation)"
--   - session_id
--   - title
--   - holder
--   - lock_state
--   - acquired_at
--   - expires_at
-- ---
SELECT l.kind, l.session_id, f.title, l.holder, l.lock_state, l.acquired_at, l.expires_at
FROM ledger_locks AS l
LEFT JOIN ledger_session_facts AS f ON f.session_id = l.session_id
ORDER BY l.expires_at DESC, l.session_id
LIMIT :limit
