-- ---
-- title: Sizes of stores
-- description: What the file of each store takes on its host, all tables and indexes together.
-- parameters:
--   - limit
-- columns:
--   - store
--   - host
--   - bytes
--   - share: "0 to 1 | part of all that is listed"
-- chart: {kind: bars, label: store, value: bytes}
-- ---
SELECT store AS store, host AS host, sum(bytes) AS bytes,
       sum(bytes) * 1.0 / nullif((SELECT sum(bytes) FROM ledger_storage), 0) AS share
FROM ledger_storage
GROUP BY ledger_storage.store, ledger_storage.host
ORDER BY sum(bytes) DESC, store
LIMIT :limit
