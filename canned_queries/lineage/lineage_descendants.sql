-- ---
-- title: Descendants of a session
-- description: The session and all that came from it, nearest first; each once, also where links loop.
-- parameters:
--   - session
-- columns:
--   - distance
--   - session_id
--   - kind
--   - trouble
--   - segment
--   - depth
--   - title
--   - source
--   - started_at
--   - last_active
--   - end_reason
--   - message_count
--   - cost_usd
--   - processed_tokens
-- ---
WITH RECURSIVE l AS MATERIALIZED (
  SELECT of_session_id, session_id, link_session_id, kind, trouble, segment, depth FROM ledger_family
  WHERE of_session_id = coalesce(nullif(:session, ''), (SELECT session_id FROM ledger_session_facts ORDER BY started_at DESC, session_id DESC LIMIT 1))
),
t AS (
  SELECT l.session_id, l.link_session_id, 0 AS distance FROM l WHERE l.session_id = l.of_session_id
  UNION ALL
  SELECT l.session_id, l.link_session_id, t.distance + 1 FROM t JOIN l ON l.link_session_id = t.session_id
)
SELECT t.distance, l.session_id, l.kind, l.trouble, l.segment, l.depth, f.title, f.source, f.started_at, f.last_active, f.end_reason,
       f.message_count, u.cost_usd, u.processed_tokens
FROM t
JOIN l ON l.session_id = t.session_id
JOIN ledger_session_facts AS f ON f.session_id = t.session_id
LEFT JOIN ledger_session_sums AS u ON u.session_id = t.session_id
ORDER BY t.distance, f.started_at, l.session_id
