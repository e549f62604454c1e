-- ---
-- title: Sessions that stand in several stores
-- description: "Each copy that does not count, beside the one that does: the copy with more messages, then later activity, more tokens, a higher cost."
-- parameters:
--   - limit
-- columns:
--   - session_id
--   - store: " | the store whose copy counts"
--   - copy_in: " | the store of the copy that does not count"
--   - messages
--   - messages_of_copy: "messages | stored message rows of the copy"
--   - last_active
--   - last_active_of_copy: "epoch seconds | the same of the copy"
--   - processed_tokens
--   - processed_tokens_of_copy: "tokens | the same of the copy"
--   - cost_usd
--   - cost_usd_of_copy: "dollars | the same of the copy, in no sum"
-- ---
SELECT session_id, store, copy_in, messages, messages_of_copy, last_active, last_active_of_copy,
       processed_tokens, processed_tokens_of_copy, cost_usd, cost_usd_of_copy
FROM ledger_copies
ORDER BY coalesce(cost_usd_of_copy, 0) DESC, session_id, copy_in
LIMIT :limit
