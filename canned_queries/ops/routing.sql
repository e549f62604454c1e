-- ---
-- title: Gateway routing
-- description: Which session each chat of a messaging gateway goes to. The chats' own ids and names are left out.
-- parameters:
--   - limit: {default: 200}
-- columns:
--   - scope
--   - platform
--   - session_id: " | session the chat goes to"
--   - is_known
--   - title
--   - last_active
--   - updated_at
-- ---
SELECT r.scope, r.platform, r.session_id, r.is_known, f.title, f.last_active, r.updated_at
FROM ledger_routing AS r
LEFT JOIN ledger_session_facts AS f ON f.session_id = r.session_id
ORDER BY r.updated_at DESC, r.session_id
LIMIT :limit
