-- ---
-- title: Lineage problems
-- description: Sessions whose parent links loop or point at a session that is not in the store.
-- parameters:
--   - limit
-- columns:
--   - session_id
--   - parent_session_id
--   - trouble
--   - kind
--   - title
--   - source
--   - started_at
-- ---
SELECT l.session_id, l.parent_session_id, l.trouble, l.kind, f.title, f.source, f.started_at
FROM ledger_lineage AS l
JOIN ledger_session_facts AS f ON f.session_id = l.session_id
WHERE l.trouble IS NOT NULL
ORDER BY l.trouble, l.session_id
LIMIT :limit
