-- ---
-- title: Tool calls
-- description: How often each tool was called, in how many sessions. The last 30 days unless a first day is given.
-- parameters:
--   - since: {default: 29 days ago}
--   - until
--   - tz
--   - source
--   - profile
--   - limit
-- columns:
--   - tool_name
--   - tool_calls: "calls | calls that assistant messages made"
--   - sessions
--   - last_called: "epoch seconds | newest call"
-- chart: {kind: bars, label: tool_name, value: tool_calls}
-- ---
WITH active AS MATERIALIZED (
  SELECT session_id FROM ledger_session_facts
  WHERE last_active >= day_start(:since, :tz)
    AND (:until = '' OR first_active < day_end(:until, :tz))
    AND (:source = '' OR source = :source)
    AND (:profile = '' OR profile = :profile)
)
SELECT coalesce(c.tool_name, 'unknown') AS tool_name, count(*) AS tool_calls,
       count(DISTINCT c.session_id) AS sessions, max(c.timestamp) AS last_called
FROM active AS a CROSS JOIN ledger_tool_calls AS c ON c.session_id = a.session_id
WHERE c.timestamp >= day_start(:since, :tz) AND (:until = '' OR c.timestamp < day_end(:until, :tz))
GROUP BY coalesce(c.tool_name, 'unknown')
ORDER BY count(*) DESC, 1
LIMIT :limit
