-- ---
-- title: Prices of the models of this store
-- description: "Every model that the store names, by provider, with its list price of a day and where that comes from; models without a price first."
-- parameters:
--   - day: {type: date, label: Prices of this day (UTC); empty for today}
--   - model
--   - limit: {default: 1000}
-- columns:
--   - model
--   - billing_provider
--   - billing_base_url
--   - sessions
--   - processed_tokens
--   - input_price
--   - output_price
--   - cache_read_price
--   - cache_write_price
--   - missing_buckets: " | buckets with tokens and without a price"
--   - priced_as
--   - price_match
--   - price_source
--   - price_date
--   - valid_from
--   - valid_until
--   - price_note
-- ---
WITH used AS (
  SELECT coalesce(model, '') AS model,
         coalesce(billing_provider, '') AS billing_provider,
         coalesce(billing_base_url, '') AS billing_base_url,
         count(DISTINCT session_id) AS sessions,
         sum(coalesce(input_tokens, 0)) AS input_tokens,
         sum(coalesce(output_tokens, 0)) AS output_tokens,
         sum(coalesce(cache_read_tokens, 0)) AS cache_read_tokens,
         sum(coalesce(cache_write_tokens, 0)) AS cache_write_tokens,
         sum(processed_tokens) AS processed_tokens
  FROM ledger_usage
  GROUP BY coalesce(model, ''), coalesce(billing_provider, ''), coalesce(billing_base_url, '')
)
SELECT p.model, p.billing_provider, p.billing_base_url,
       coalesce(u.sessions, 0) AS sessions,
       coalesce(u.processed_tokens, 0) AS processed_tokens,
       p.input_price, p.output_price, p.cache_read_price, p.cache_write_price,
       nullif(trim(CASE WHEN u.input_tokens > 0 AND p.input_price IS NULL THEN 'input ' ELSE '' END
         || CASE WHEN u.output_tokens > 0 AND p.output_price IS NULL THEN 'output ' ELSE '' END
         || CASE WHEN u.cache_read_tokens > 0 AND p.cache_read_price IS NULL THEN 'cache_read ' ELSE '' END
         || CASE WHEN u.cache_write_tokens > 0 AND p.cache_write_price IS NULL THEN 'cache_write ' ELSE '' END
       ), '') AS missing_buckets,
       p.priced_as, p.price_match, p.price_source, p.price_date, p.valid_from, p.valid_until, p.price_note
FROM ledger_prices AS p
LEFT JOIN used AS u
  ON u.model = p.model AND u.billing_provider = p.billing_provider AND u.billing_base_url = p.billing_base_url
WHERE coalesce(day_start(:day, 'UTC'), day_start(days_ago(0, 'UTC'), 'UTC')) >= p.from_epoch
  AND coalesce(day_start(:day, 'UTC'), day_start(days_ago(0, 'UTC'), 'UTC')) < p.until_epoch
  AND (u.model IS NOT NULL OR p.model NOT IN ('', 'unknown'))
  AND (:model = '' OR p.canonical_model = canonical_model(:model))
ORDER BY CASE WHEN p.price_match = 'none' THEN 0 ELSE 1 END, processed_tokens DESC, p.model, p.billing_provider, p.billing_base_url
LIMIT :limit
