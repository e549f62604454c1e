-- ---
-- title: Estimated against actual
-- description: Where an actual cost is known, how far the stored estimate was off, per model.
-- parameters:
--   - since
--   - until
--   - tz
--   - day_rule
--   - source
--   - model
--   - profile
--   - limit
-- columns:
--   - model: " | model name without provider prefix, case and date suffix"
--   - sessions
--   - api_call_count
--   - actual_usd: "dollars | actual cost"
--   - stored_estimate_usd: "dollars | stored estimate of the same calls"
--   - difference_usd: "dollars | actual less estimate"
--   - actual_to_estimate: "ratio | actual / estimate, NULL without an estimate"
-- chart: {kind: bars, label: model, value: actual_usd}
-- ---
SELECT canonical_model AS model,
       count(DISTINCT session_id) AS sessions,
       sum(api_call_count) AS api_call_count,
       sum(actual_usd) AS actual_usd,
       sum(stored_estimate_usd) AS stored_estimate_usd,
       sum(actual_usd) - sum(stored_estimate_usd) AS difference_usd,
       sum(actual_usd) * 1.0 / nullif(sum(stored_estimate_usd), 0) AS actual_to_estimate
FROM ledger_time
WHERE day_rule = CASE WHEN :since = '' AND :until = '' THEN 'all_time' ELSE :day_rule END
  AND (:since = '' OR last_bucket >= day_start(:since, :tz))
  AND (:until = '' OR first_bucket < day_end(:until, :tz))
  AND (:since = '' OR bucket >= day_start(:since, :tz))
  AND (:until = '' OR bucket < day_end(:until, :tz))
  AND (:source = '' OR source = :source)
  AND (:profile = '' OR profile = :profile)
  AND (:model = '' OR canonical_model = canonical_model(:model))
  AND basis = 'actual'
GROUP BY canonical_model
ORDER BY abs(sum(actual_usd) - sum(stored_estimate_usd)) DESC, model
LIMIT :limit
