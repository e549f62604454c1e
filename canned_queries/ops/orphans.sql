-- ---
-- title: Orphans
-- description: Sessions that are not in the store (any more) although rows refer to them, by kind of row.
-- parameters:
--   - limit: {default: 200}
-- columns:
--   - kind: " | what refers to the missing session"
--   - source_table
--   - session_id: " | id of the missing session"
--   - rows: "rows | rows that refer to it"
--   - last_active: "epoch seconds | newest of these rows"
-- ---
SELECT kind, source_table, session_id, rows, last_active
FROM ledger_orphans
ORDER BY rows DESC, kind, session_id
LIMIT :limit
