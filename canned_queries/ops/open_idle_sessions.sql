-- ---
-- title: Open and idle sessions
-- description: Sessions that never ended and have been idle for some days. Only ended sessions can be pruned; `state-ledger sweep` ends idle ones.
-- parameters:
--   - idle_days: {type: integer, default: 1, label: 'Idle for at least this many days'}
--   - source
--   - profile
--   - now: {type: integer, default: 0, label: 'Moment from which ages count, epoch seconds; 0 for this moment'}
--   - tz
--   - limit
-- columns:
--   - session_id
--   - title
--   - source
--   - profile
--   - kind
--   - started_at
--   - idle_since
--   - last_day: " | calendar day in the chosen zone since which it is idle"
--   - message_count
--   - idle_days: "days | days since the last activity"
-- ---
WITH moment AS (
  SELECT CASE WHEN :now > 0 THEN :now ELSE CAST(strftime('%s', 'now') AS INTEGER) END AS at
)
SELECT f.session_id, f.title, f.source, f.profile, f.kind, f.started_at, f.idle_since,
       local_day(f.idle_since, :tz) AS last_day, f.message_count, (t0.at - f.idle_since) / 86400.0 AS idle_days
FROM ledger_session_facts AS f
CROSS JOIN moment AS t0
WHERE f.is_open = 1
  AND f.idle_since <= t0.at - 86400.0 * :idle_days
  AND (:source = '' OR f.source = :source)
  AND (:profile = '' OR f.profile = :profile)
ORDER BY f.idle_since, f.session_id
LIMIT :limit
