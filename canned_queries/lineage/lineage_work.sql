-- ---
-- title: The work of a session
-- description: "All sessions of the piece of work that a session belongs to: its conversation and all delegates."
-- parameters:
--   - session
-- columns:
--   - work_id
--   - link_session_id
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
WITH family AS MATERIALIZED (
  SELECT of_session_id, session_id, link_session_id, work_id, kind, trouble, segment, depth FROM ledger_family
  WHERE of_session_id = coalesce(nullif(:session, ''), (SELECT session_id FROM ledger_session_facts ORDER BY started_at DESC, session_id DESC LIMIT 1))
),
l AS MATERIALIZED (
  SELECT * FROM family
  WHERE work_id = (SELECT o.work_id FROM family AS o WHERE o.session_id = o.of_session_id)
)
SELECT l.work_id, l.link_session_id, l.session_id, l.kind, l.trouble, l.segment, l.depth, f.title, f.source, f.started_at, f.last_active, f.end_reason,
       f.message_count, u.cost_usd, u.processed_tokens
FROM l
JOIN ledger_session_facts AS f ON f.session_id = l.session_id
LEFT JOIN ledger_session_sums AS u ON u.session_id = l.session_id
ORDER BY l.depth, f.started_at, l.session_id
