-- ---
-- title: Sizes of tables and indexes
-- description: What takes the room in the file. The parts of a full-text index count as one.
-- parameters:
--   - limit: {default: 200}
-- columns:
--   - name: " | table, index or full-text index"
--   - storage_kind
--   - owner: " | table of an index, else the table or full-text index itself"
--   - bytes
--   - share: "0 to 1 | part of all that is listed"
--   - rows: "rows | rows of a table; empty where they were not counted"
--   - method
-- chart: {kind: bars, label: name, value: bytes}
-- ---
WITH parts AS (
  SELECT CASE WHEN storage_kind = 'full-text index' THEN owner ELSE name END AS name, storage_kind, owner, bytes,
         CASE WHEN storage_kind = 'table' THEN rows END AS rows, method
  FROM ledger_storage
)
SELECT name, storage_kind, owner, sum(bytes) AS bytes,
       sum(bytes) * 1.0 / nullif((SELECT sum(bytes) FROM parts), 0) AS share, max(rows) AS rows, method
FROM parts
GROUP BY name, storage_kind, owner, method
ORDER BY bytes DESC, name
LIMIT :limit
