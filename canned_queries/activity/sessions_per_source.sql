-- ---
-- title: Sessions per source
-- description: How many sessions each source has, how many are open, and when it was last active.
-- parameters:
--   - profile
--   - limit
-- columns:
--   - source
--   - sessions
--   - open_sessions: "sessions | sessions that never ended"
--   - message_count
--   - last_active
-- chart: {kind: bars, label: source, value: sessions}
-- ---
SELECT source, count(*) AS sessions,
       sum(CASE WHEN ended_at IS NULL THEN 1 ELSE 0 END) AS open_sessions,
       sum(message_count) AS message_count,
       max(last_active) AS last_active
FROM ledger_session_facts
WHERE (:profile = '' OR profile = :profile)
GROUP BY source
ORDER BY sessions DESC, source
LIMIT :limit
