-- ---
-- title: Open and idle sessions
-- description: Sessions that never ended and have been idle for some days; only ended sessions can be pruned.
-- parameters:
--   - idle_days: {type: integer, default: 1, label: 'Idle for at least this many days'}
--   - source
--   - profile
--   - limit
-- columns:
--   - session_id
--   - title
--   - source
--   - profile
--   - kind
--   - started_at
--   - last_active
--   - message_count
--   - idle_days: "days | days since the last activity"
-- ---
SELECT session_id, title, source, profile, kind, started_at, last_active, message_count,
       (CAST(strftime('%s', 'now') AS INTEGER) - last_active) / 86400.0 AS idle_days
FROM ledger_session_facts
WHERE ended_at IS NULL
  AND last_active <= CAST(strftime('%s', 'now') AS INTEGER) - 86400.0 * :idle_days
  AND (:source = '' OR source = :source)
  AND (:profile = '' OR profile = :profile)
ORDER BY last_active, session_id
LIMIT :limit
