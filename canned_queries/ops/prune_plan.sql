-- ---
-- title: Prune plan
-- description: What `state-ledger prune` would delete per source, and what stays for which reason. Nothing is deleted here.
-- parameters:
--   - older_than_days: {type: integer, default: 90, label: 'Without activity for this many days; 0 for any age'}
--   - source
--   - now: {type: integer, default: 0, label: 'Moment from which ages count, epoch seconds; 0 for this moment'}
--   - limit: {default: 1000}
-- columns:
--   - source
--   - outcome: " | would be deleted, or why it would stay; the first reason that holds"
--   - sessions
--   - messages
--   - text_bytes
--   - usage_rows
--   - idle_since: "epoch seconds | since when the one that is idle longest is"
-- ---
WITH RECURSIVE moment AS (
  SELECT CASE WHEN :now > 0 THEN :now ELSE CAST(strftime('%s', 'now') AS INTEGER) END AS at
),
facts AS (
  SELECT f.session_id, f.source, f.is_open, f.idle_since, coalesce(f.pinned, 0) <> 0 AS is_pinned,
         EXISTS (SELECT 1 FROM ledger_locks AS l WHERE l.session_id = f.session_id AND l.expires_at > t0.at) AS is_locked,
         CASE WHEN :older_than_days = 0 THEN 1
              WHEN f.idle_since < t0.at - 86400.0 * :older_than_days THEN 1
              ELSE 0 END AS is_old
  FROM ledger_session_facts AS f
  CROSS JOIN moment AS t0
),
continued AS (
  SELECT c.continues_session_id AS session_id
  FROM ledger_continuations AS c
  JOIN facts AS f ON f.session_id = c.session_id
  WHERE f.is_open = 1 OR f.is_old = 0 OR f.is_pinned = 1 OR f.is_locked = 1
  UNION
  SELECT c.continues_session_id
  FROM continued AS u
  JOIN ledger_continuations AS c ON c.session_id = u.session_id
),
judged AS (
  SELECT f.session_id, f.source, f.idle_since,
         CASE WHEN f.is_old = 0 AND f.idle_since IS NULL THEN 'without a time that can be read'
              WHEN f.is_old = 0 THEN 'active too recently'
              WHEN f.is_open = 1 THEN 'never ended'
              WHEN f.is_locked = 1 THEN 'locked, most often by a compression that is under way'
              WHEN f.is_pinned = 1 THEN 'pinned'
              WHEN f.session_id IN (SELECT session_id FROM continued) THEN 'part of a conversation still in use'
              ELSE 'would be deleted' END AS outcome
  FROM facts AS f
  WHERE (:source = '' OR f.source = :source)
),
texts AS (
  SELECT session_id, count(*) AS messages, sum(text_bytes) AS text_bytes
  FROM ledger_message_sizes
  GROUP BY session_id
),
calls AS (
  SELECT session_id, count(*) AS usage_rows
  FROM ledger_usage_rows
  GROUP BY session_id
)
SELECT j.source, j.outcome, count(*) AS sessions, coalesce(sum(t.messages), 0) AS messages,
       coalesce(sum(t.text_bytes), 0) AS text_bytes, coalesce(sum(c.usage_rows), 0) AS usage_rows,
       min(j.idle_since) AS idle_since
FROM judged AS j
LEFT JOIN texts AS t ON t.session_id = j.session_id
LEFT JOIN calls AS c ON c.session_id = j.session_id
GROUP BY j.source, j.outcome
ORDER BY CASE WHEN j.outcome = 'would be deleted' THEN 0 ELSE 1 END, sessions DESC, j.source, j.outcome
LIMIT :limit
