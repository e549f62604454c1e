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
WITH active AS (
  SELECT f.session_id,
         (:since = '' OR f.started_at >= day_start(:since, :tz)) AND (:until = '' OR f.started_at < day_end(:until, :tz)) AS started,
         f.first_active,
         (SELECT count(*) FROM ledger_message_times AS t
          WHERE t.session_id = f.session_id
            AND (:since = '' OR t.timestamp >= day_start(:since, :tz))
            AND (:until = '' OR t.timestamp < day_end(:until, :tz))) AS messages
  FROM ledger_session_facts AS f
  WHERE (:since = '' OR f.last_active >= day_start(:since, :tz))
    AND (:until = '' OR f.first_active < day_end(:until, :tz))
    AND (:source = '' OR f.source = :source)
    AND (:profile = '' OR f.profile = :profile)
)
SELECT count(*) AS sessions,
       coalesce(sum(started), 0) AS sessions_started,
       coalesce(sum(messages), 0) AS messages
FROM active
WHERE messages > 0 OR started
