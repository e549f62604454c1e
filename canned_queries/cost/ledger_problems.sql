-- ---
-- title: Rows set aside and figures that disagree
-- description: Rows that are in no sum and why, and figures of the store that contradict each other, without the totals of the audit.
-- parameters: []
-- columns:
--   - section
--   - item: " | what is wrong"
--   - figure: " | column or table concerned"
--   - rows: "rows | rows concerned"
--   - sessions
-- ---
SELECT 'set aside' AS section, reason AS item, source_table AS figure, count(*) AS rows,
       count(DISTINCT session_id) AS sessions
FROM ledger_set_aside GROUP BY reason, source_table
UNION ALL
SELECT 'discrepancy', kind, figure, count(*), count(DISTINCT session_id)
FROM ledger_discrepancies GROUP BY kind, figure
ORDER BY section DESC, item, figure
