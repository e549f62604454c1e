-- ---
-- title: Stores
-- description: Each store that was read, with its profile, how much is in it, and how many of its sessions count here.
-- parameters:
--   - limit
-- columns:
--   - store
--   - profile: " | the profile that the store's folder names"
--   - sessions
--   - sessions_counted: "sessions | those of which no other store has more of a record"
--   - messages
--   - last_active
-- ---
SELECT store, profile, sessions, counted AS sessions_counted, messages, last_active
FROM ledger_stores
ORDER BY store
LIMIT :limit
