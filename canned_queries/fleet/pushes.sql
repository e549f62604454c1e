-- ---
-- title: Pushes
-- description: When each store was pushed last and how much is in it; the one that was not pushed for longest comes first.
-- parameters:
--   - limit
-- columns:
--   - store
--   - host
--   - profile: " | the profile under which the store is pushed"
--   - pushed_at
--   - sessions
--   - sessions_counted: "sessions | those of which no other store has more of a record"
--   - messages
--   - last_active
-- ---
SELECT store, host, profile, pushed_at, sessions, counted AS sessions_counted, messages, last_active
FROM ledger_stores
ORDER BY pushed_at, store
LIMIT :limit
