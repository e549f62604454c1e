-- ---
-- title: Hosts
-- description: Each host with its stores, how much is in them, and when they were pushed; the one that has not pushed for longest comes first.
-- parameters:
--   - limit
-- columns:
--   - host
--   - stores: "stores | stores that the host pushed"
--   - sessions
--   - messages
--   - last_active
--   - oldest_push: "epoch seconds | last push of the store that was not pushed for longest"
--   - newest_push: "epoch seconds | last push of any of its stores"
-- ---
SELECT host AS host, count(*) AS stores, sum(sessions) AS sessions, sum(messages) AS messages,
       max(last_active) AS last_active, min(pushed_at) AS oldest_push, max(pushed_at) AS newest_push
FROM ledger_stores
GROUP BY ledger_stores.host
ORDER BY min(pushed_at), host
LIMIT :limit
