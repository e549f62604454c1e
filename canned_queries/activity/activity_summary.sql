-- ---
-- title: Activity in a period
-- description: How many sessions were active in a period, how many began in it, and the messages stored in it.
-- parameters:
--   - since
--   - until
--   - tz
--   - source
--   - profile
-- columns:
--   - sessions: "sessions | sessions with a message in the period; without messages, started in it"
--   - sessions_started: "sessions | sessions that began in the period"
--   - messages: "messages | message rows stored in the period"
-- ---
WITH active AS MATERIALIZED (
  SELECT f.session_id,
         (:since = '' OR f.started_at >= day_start(:since, :tz)) AND (:until = '' OR f.started_at < day_end(:until, :tz)) AS started
  FROM ledger_session_facts AS f
  WHERE (:since = '' OR f.last_active >= day_start(:since, :tz))
    AND (:until = '' OR f.first_active < day_end(:until, :tz))
    AND (:source = '' OR f.source = :source)
    AND (:profile = '' OR f.profile = :profile)
),
heard AS (
  SELECT a.session_id, count(*) AS messages
  FROM active AS a CROSS JOIN ledger_message_times AS t ON t.session_id = a.session_id
  WHERE (:since = '' OR t.timestamp >= day_start(:since, :tz))
    AND (:until = '' OR t.timestamp < day_end(:until, :tz))
  GROUP BY a.session_id
)
SELECT count(*) AS sessions,
       coalesce(sum(a.started), 0) AS sessions_started,
       coalesce(sum(h.messages), 0) AS messages
FROM active AS a
LEFT JOIN heard AS h ON h.session_id = a.session_id
WHERE h.messages > 0 OR a.started
