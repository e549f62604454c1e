-- ---
-- title: Costs that look wrong
-- description: "Stored costs far from the list price of the same tokens on the day of use, a factor of 1,000 or 1,000,000 named as such, and rows that are set aside because they cannot be true. Nothing is corrected."
-- parameters:
--   - source
--   - model
--   - profile
--   - times: {type: integer, label: "How many times the list price, or what part of it, is far", default: 3, minimum: 2}
--   - from_cents: {type: integer, label: "Cents that the stored or the list price must come to", default: 1}
--   - limit
-- columns:
--   - session_id
--   - source
--   - model: " | model name without provider prefix, case and date suffix"
--   - billing_provider
--   - task
--   - processed_tokens
--   - stored_usd: "dollars | cost as stored: actual, else estimated"
--   - list_price_usd: "dollars | the same tokens at list prices of the day of use; empty where a price is missing"
--   - ratio: "times | stored_usd / list_price_usd"
--   - stored_usd_per_million: "dollars | stored cost per million tokens processed"
--   - finding: " | what is wrong with it"
--   - in_sums: "0 or 1 | 0 where the row is set aside, and in no sum"
--   - priced_as: " | what it was compared with, how that was matched, and by which price list"
-- ---
WITH claimed AS (
  SELECT session_id, source, profile, model, canonical_model, billing_provider, billing_base_url, task,
         coalesce(input_tokens, 0) AS input_tokens, coalesce(output_tokens, 0) AS output_tokens, coalesce(cache_read_tokens, 0) AS cache_read_tokens, coalesce(cache_write_tokens, 0) AS cache_write_tokens, processed_tokens,
         cost_usd AS stored_usd, partial, coalesce(last_seen, 0) AS at, NULL AS reason
  FROM ledger_usage
  WHERE basis IN ('actual', 'estimated') AND cost_usd > 0 AND processed_tokens > 0
  UNION ALL
  SELECT r.session_id, f.source, f.profile, r.model, canonical_model(CAST(r.model AS BLOB)), r.billing_provider,
         r.billing_base_url, r.task, coalesce(r.input_tokens, 0) AS input_tokens, coalesce(r.output_tokens, 0) AS output_tokens, coalesce(r.cache_read_tokens, 0) AS cache_read_tokens, coalesce(r.cache_write_tokens, 0) AS cache_write_tokens, r.tokens,
         CASE WHEN coalesce(r.actual_cost_usd, 0) > coalesce(r.estimated_cost_usd, 0)
              THEN r.actual_cost_usd ELSE r.estimated_cost_usd END,
         0, coalesce(r.last_seen, f.last_active, 0), r.problem
  FROM ledger_usage_rows AS r
  LEFT JOIN ledger_session_facts AS f ON f.session_id = r.session_id
  WHERE r.problem LIKE 'cost above%'
  UNION ALL
  SELECT r.session_id, f.source, f.profile, f.model, f.canonical_model, f.billing_provider, '', '',
         coalesce(r.input_tokens, 0) AS input_tokens, coalesce(r.output_tokens, 0) AS output_tokens, coalesce(r.cache_read_tokens, 0) AS cache_read_tokens, coalesce(r.cache_write_tokens, 0) AS cache_write_tokens, r.tokens,
         CASE WHEN coalesce(r.actual_cost_usd, 0) > coalesce(r.estimated_cost_usd, 0)
              THEN r.actual_cost_usd ELSE r.estimated_cost_usd END,
         0, coalesce(f.last_active, 0), r.problem
  FROM ledger_session_rest AS r
  JOIN ledger_session_facts AS f ON f.session_id = r.session_id
  WHERE r.problem IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM ledger_usage_rows AS a WHERE a.session_id = r.session_id AND a.problem IS NOT NULL)
),
priced AS MATERIALIZED (
  SELECT *,
         list_price(CAST(model AS BLOB), billing_provider, billing_base_url, 'input', at) AS input_price,
         list_price(CAST(model AS BLOB), billing_provider, billing_base_url, 'output', at) AS output_price,
         list_price(CAST(model AS BLOB), billing_provider, billing_base_url, 'cache_read', at) AS cache_read_price,
         list_price(CAST(model AS BLOB), billing_provider, billing_base_url, 'cache_write', at) AS cache_write_price
  FROM claimed
  WHERE (:source = '' OR source = :source)
    AND (:profile = '' OR profile = :profile)
    AND (:model = '' OR canonical_model = canonical_model(:model))
),
compared AS MATERIALIZED (
  SELECT *,
         CASE WHEN (input_tokens = 0 OR input_price IS NOT NULL) AND (output_tokens = 0 OR output_price IS NOT NULL) AND (cache_read_tokens = 0 OR cache_read_price IS NOT NULL) AND (cache_write_tokens = 0 OR cache_write_price IS NOT NULL)
              THEN nullif((coalesce(input_tokens * input_price, 0) + coalesce(output_tokens * output_price, 0) + coalesce(cache_read_tokens * cache_read_price, 0) + coalesce(cache_write_tokens * cache_write_price, 0)) / 1000000.0, 0) END AS list_price_usd
  FROM priced
),
judged AS (
  SELECT *, stored_usd / list_price_usd AS ratio,
         CASE WHEN stored_usd / list_price_usd BETWEEN 500000 AND 2000000
              THEN 'about 1,000,000 times the list price: a price per million tokens taken for one per token'
              WHEN stored_usd / list_price_usd BETWEEN 500 AND 2000
              THEN 'about 1,000 times the list price: a price per million tokens taken for one per thousand'
              WHEN stored_usd / list_price_usd BETWEEN 0.0005 AND 0.002 AND partial = 0
              THEN 'about a thousandth of the list price'
              WHEN stored_usd / list_price_usd BETWEEN 0.0000005 AND 0.000002 AND partial = 0
              THEN 'about a millionth of the list price'
              WHEN stored_usd / list_price_usd > :times THEN 'far above the list price'
              WHEN stored_usd / list_price_usd < 1.0 / :times AND partial = 0 THEN 'far below the list price'
              ELSE reason END AS finding
  FROM compared
)
SELECT session_id, source, canonical_model AS model, billing_provider, task, processed_tokens, stored_usd,
       list_price_usd, ratio, stored_usd * 1000000.0 / nullif(processed_tokens, 0) AS stored_usd_per_million,
       finding, CASE WHEN reason IS NULL THEN 1 ELSE 0 END AS in_sums,
       priced_as(CAST(model AS BLOB), billing_provider, billing_base_url, at) AS priced_as
FROM judged
WHERE finding IS NOT NULL
  AND (reason IS NOT NULL OR stored_usd * 100 >= :from_cents OR list_price_usd * 100 >= :from_cents)
ORDER BY abs(stored_usd - coalesce(list_price_usd, 0)) DESC, session_id, task
LIMIT :limit
