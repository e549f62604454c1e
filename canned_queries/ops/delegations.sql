-- ---
-- title: Delegations in the background
-- description: Work that was handed to other sessions, how far it is and whether its result was delivered; what is under way first.
-- parameters:
--   - limit: {default: 200}
-- columns:
--   - delegation_id
--   - session_id: " | session the work belongs to"
--   - title
--   - delegation_state
--   - dispatched_at
--   - completed_at
--   - delivery_state
--   - delivery_attempts
--   - delivered_at
--   - owner_pid
-- ---
SELECT d.delegation_id, d.session_id, f.title, d.delegation_state, d.dispatched_at, d.completed_at,
       d.delivery_state, d.delivery_attempts, d.delivered_at, d.owner_pid
FROM ledger_delegations AS d
LEFT JOIN ledger_session_facts AS f ON f.session_id = d.session_id
ORDER BY CASE WHEN d.completed_at IS NULL THEN 0 WHEN d.delivery_state = 'pending' THEN 1 ELSE 2 END,
         d.dispatched_at DESC, d.delegation_id
LIMIT :limit
