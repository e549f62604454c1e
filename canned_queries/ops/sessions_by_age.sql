-- ---
-- title: Sessions by age
-- description: How long sessions have been idle, and how much they hold. Age is inactivity, not the time since the start.
-- parameters:
--   - source
--   - profile
--   - now: {type: integer, default: 0, label: 'Moment from which ages count, epoch seconds; 0 for this moment'}
--   - limit: {default: 100}
-- columns:
--   - idle_for: " | age class by inactivity"
--   - sessions
--   - open_sessions: "sessions | those that never ended"
--   - messages
--   - text_bytes
--   - cost_usd
--   - unknown_calls
-- chart: {kind: bars, label: idle_for, value: text_bytes}
-- ---
WITH moment AS (
  SELECT CASE WHEN :now > 0 THEN :now ELSE CAST(strftime('%s', 'now') AS INTEGER) END AS at
),
aged AS (
  SELECT f.session_id, f.is_open, (t0.at - f.idle_since) / 86400.0 AS idle_days
  FROM ledger_session_facts AS f
  CROSS JOIN moment AS t0
  WHERE (:source = '' OR f.source = :source)
    AND (:profile = '' OR f.profile = :profile)
),
texts AS (
  SELECT session_id, count(*) AS messages, sum(text_bytes) AS text_bytes
  FROM ledger_message_sizes
  GROUP BY session_id
),
classed AS (
  SELECT a.session_id, a.is_open, a.idle_days,
         CASE WHEN a.idle_days IS NULL THEN 'unknown'
              WHEN a.idle_days < 1 THEN '0 to 1 days'
              WHEN a.idle_days < 7 THEN '1 to 7 days'
              WHEN a.idle_days < 30 THEN '7 to 30 days'
              WHEN a.idle_days < 90 THEN '30 to 90 days'
              WHEN a.idle_days < 180 THEN '90 to 180 days'
              WHEN a.idle_days < 365 THEN '180 to 365 days'
              ELSE '365 days and more' END AS idle_for
  FROM aged AS a
)
SELECT c.idle_for, count(*) AS sessions, sum(c.is_open) AS open_sessions, coalesce(sum(t.messages), 0) AS messages,
       coalesce(sum(t.text_bytes), 0) AS text_bytes, sum(u.cost_usd) AS cost_usd,
       coalesce(sum(u.unknown_calls), 0) AS unknown_calls
FROM classed AS c
LEFT JOIN texts AS t ON t.session_id = c.session_id
LEFT JOIN ledger_session_usage AS u ON u.session_id = c.session_id
GROUP BY c.idle_for
ORDER BY max(c.idle_days) IS NULL, max(c.idle_days)
LIMIT :limit
