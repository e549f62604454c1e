-- ---
-- title: Messages per day
-- description: Logical messages per calendar day and role, without those taken back. The last 30 days unless a first day is given.
-- parameters:
--   - since: {default: 29 days ago}
--   - until
--   - tz
--   - source
--   - profile
--   - limit: {default: 1000}
-- columns:
--   - day
--   - role
--   - messages
--   - sessions
-- chart: {kind: days, label: day, value: messages, series: role}
-- ---
WITH active AS MATERIALIZED (
  SELECT session_id FROM ledger_session_facts
  WHERE last_active >= day_start(:since, :tz)
    AND (:until = '' OR first_active < day_end(:until, :tz))
    AND (:source = '' OR source = :source)
    AND (:profile = '' OR profile = :profile)
)
SELECT local_day(m.timestamp, :tz) AS day, m.role, count(*) AS messages, count(DISTINCT m.session_id) AS sessions
FROM active AS a CROSS JOIN ledger_messages AS m ON m.session_id = a.session_id
WHERE m.timestamp >= day_start(:since, :tz) AND (:until = '' OR m.timestamp < day_end(:until, :tz))
  AND m.state <> 'taken back'
GROUP BY local_day(m.timestamp, :tz), m.role
ORDER BY day DESC, m.role
LIMIT :limit
