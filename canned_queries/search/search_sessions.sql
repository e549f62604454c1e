-- ---
-- title: Search in titles and ids
-- description: "Sessions whose title or id contains what you type, newest first. Literal text; case does not count, and - _ and . are the same as a blank."
-- parameters:
--   - q: {type: words, label: "Part of a title or of an id; empty for every session"}
--   - source
--   - model
--   - profile
--   - before: {type: text, label: "Go on after this session (its id), the last of the page before"}
--   - limit: {default: 20}
-- columns:
--   - session_id
--   - title
--   - preview
--   - source
--   - profile
--   - model
--   - kind
--   - started_at
--   - last_active
--   - message_count
--   - cost_usd
-- ---
WITH picked AS (
  SELECT session_id, coalesce(last_active, 0) AS moment
  FROM ledger_session_facts
  WHERE (folded_name(CAST(:q AS BLOB)) = '' OR instr(folded_name(CAST(title AS BLOB)), folded_name(CAST(:q AS BLOB))) > 0 OR instr(folded_name(CAST(session_id AS BLOB)), folded_name(CAST(:q AS BLOB))) > 0)
    AND (:source = '' OR source = :source)
    AND (:model = '' OR canonical_model = canonical_model(:model))
    AND (:profile = '' OR profile = :profile)
),
listed AS (
  SELECT p.session_id, p.moment
  FROM picked AS p
  WHERE :before = ''
     OR p.moment < (SELECT coalesce(b.last_active, 0) FROM ledger_session_facts AS b WHERE b.session_id = :before)
     OR (p.moment = (SELECT coalesce(b.last_active, 0) FROM ledger_session_facts AS b WHERE b.session_id = :before) AND p.session_id < :before)
  ORDER BY p.moment DESC, p.session_id DESC
  LIMIT :limit
)
SELECT f.session_id, f.title, f.preview, f.source, f.profile, f.model, f.kind, f.started_at, f.last_active, f.message_count, u.cost_usd
FROM listed AS l
JOIN ledger_session_facts AS f ON f.session_id = l.session_id
LEFT JOIN ledger_session_sums AS u ON u.session_id = l.session_id
ORDER BY l.moment DESC, l.session_id DESC
