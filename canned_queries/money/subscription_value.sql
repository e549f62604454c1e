-- ---
-- title: Value of what subscriptions cover
-- description: "Calls that a subscription covers cost nothing on the bill; this is what they would cost at list prices."
-- parameters:
--   - since
--   - until
--   - tz
--   - day_rule
--   - source
--   - model
--   - profile
--   - by: {type: choice, label: Sum by, default: model, choices: [model, day, month, source, provider, profile]}
--   - prices: {type: choice, label: Prices of today or of the day of use, default: day, choices: [now, day]}
--   - limit: {default: 1000}
-- columns:
--   - name: " | the model, day, month, source, provider or profile"
--   - included_calls
--   - input_tokens
--   - output_tokens
--   - cache_read_tokens
--   - cache_write_tokens
--   - list_price_usd: "dollars | what the included usage costs at list prices; empty where no price is known"
--   - incomplete_tokens: "tokens | tokens of buckets without a price, in models that have one for others; in no amount"
--   - incomplete_buckets: " | the buckets these tokens are in; empty where the amount is complete"
--   - unpriced_tokens: "tokens | processed tokens of models without any price; in no amount"
--   - priced_as
--   - price_match
--   - price_source
--   - price_date
--   - price_note
-- chart: {kind: bars, label: name, value: list_price_usd}
-- ---
WITH used AS MATERIALIZED (
  SELECT CASE :by WHEN 'day' THEN coalesce(local_day(bucket, :tz), 'no day')
                  WHEN 'month' THEN coalesce(substr(local_day(bucket, :tz), 1, 7), 'no day')
                  WHEN 'source' THEN source
                  WHEN 'provider' THEN billing_provider
                  WHEN 'profile' THEN profile
                  ELSE canonical_model END AS name,
         coalesce(model, '') AS model,
         coalesce(billing_provider, '') AS billing_provider,
         coalesce(billing_base_url, '') AS billing_base_url,
         coalesce(CASE :prices WHEN 'day' THEN bucket END, day_start(days_ago(0, 'UTC'), 'UTC')) AS priced_at,
         coalesce(input_tokens, 0) AS input_tokens,
         coalesce(output_tokens, 0) AS output_tokens,
         coalesce(cache_read_tokens, 0) AS cache_read_tokens,
         coalesce(cache_write_tokens, 0) AS cache_write_tokens,
         processed_tokens,
         included_calls
  FROM ledger_time
  WHERE day_rule = CASE WHEN :since = '' AND :until = '' AND :prices = 'now' AND :by NOT IN ('day', 'month')
                        THEN 'all_time' ELSE :day_rule END
    AND (:since = '' OR last_bucket >= day_start(:since, :tz))
    AND (:until = '' OR first_bucket < day_end(:until, :tz))
    AND (:since = '' OR bucket >= day_start(:since, :tz))
    AND (:until = '' OR bucket < day_end(:until, :tz))
    AND (:source = '' OR source = :source)
    AND (:profile = '' OR profile = :profile)
    AND (:model = '' OR canonical_model = canonical_model(:model))
    AND basis = 'included'
),
listed AS MATERIALIZED (SELECT * FROM ledger_prices),
priced AS (
  SELECT u.*, p.input_price, p.output_price, p.cache_read_price, p.cache_write_price, p.priced_as, p.price_match, p.price_source, p.price_date, p.price_note
  FROM used AS u
  LEFT JOIN listed AS p ON p.model = u.model
    AND p.billing_provider = u.billing_provider AND p.billing_base_url = u.billing_base_url
    AND u.priced_at >= p.from_epoch AND u.priced_at < p.until_epoch
),
valued AS MATERIALIZED (
  SELECT name, included_calls, priced_as, price_match, price_source, price_date, price_note,
         input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
         CASE WHEN coalesce(input_price, output_price, cache_read_price, cache_write_price) IS NOT NULL
              THEN (coalesce(input_tokens * input_price, 0) + coalesce(output_tokens * output_price, 0) + coalesce(cache_read_tokens * cache_read_price, 0) + coalesce(cache_write_tokens * cache_write_price, 0)) / 1000000.0 END AS list_usd,
         CASE WHEN coalesce(input_price, output_price, cache_read_price, cache_write_price) IS NOT NULL THEN 0 ELSE processed_tokens END AS unpriced_tokens,
         CASE WHEN input_price IS NULL AND coalesce(input_price, output_price, cache_read_price, cache_write_price) IS NOT NULL THEN input_tokens ELSE 0 END AS input_missing,
         CASE WHEN output_price IS NULL AND coalesce(input_price, output_price, cache_read_price, cache_write_price) IS NOT NULL THEN output_tokens ELSE 0 END AS output_missing,
         CASE WHEN cache_read_price IS NULL AND coalesce(input_price, output_price, cache_read_price, cache_write_price) IS NOT NULL THEN cache_read_tokens ELSE 0 END AS cache_read_missing,
         CASE WHEN cache_write_price IS NULL AND coalesce(input_price, output_price, cache_read_price, cache_write_price) IS NOT NULL THEN cache_write_tokens ELSE 0 END AS cache_write_missing
  FROM priced
)
SELECT name,
       sum(included_calls) AS included_calls,
       sum(input_tokens) AS input_tokens,
       sum(output_tokens) AS output_tokens,
       sum(cache_read_tokens) AS cache_read_tokens,
       sum(cache_write_tokens) AS cache_write_tokens,
       sum(list_usd) AS list_price_usd,
       sum(input_missing + output_missing + cache_read_missing + cache_write_missing) AS incomplete_tokens,
       nullif(trim(CASE WHEN sum(input_missing) > 0 THEN 'input ' ELSE '' END || CASE WHEN sum(output_missing) > 0 THEN 'output ' ELSE '' END || CASE WHEN sum(cache_read_missing) > 0 THEN 'cache_read ' ELSE '' END || CASE WHEN sum(cache_write_missing) > 0 THEN 'cache_write ' ELSE '' END), '') AS incomplete_buckets,
       sum(unpriced_tokens) AS unpriced_tokens,
       group_concat(DISTINCT priced_as) AS priced_as,
       group_concat(DISTINCT price_match) AS price_match,
       group_concat(DISTINCT price_source) AS price_source,
       max(price_date) AS price_date,
       group_concat(DISTINCT price_note) AS price_note
FROM valued
GROUP BY name
ORDER BY CASE WHEN :by IN ('day', 'month') THEN name END DESC, list_price_usd DESC, name
LIMIT :limit
