-- ---
-- title: What the prompt cache saved
-- description: "What cache reads saved and cache writes cost, at list prices, against the same prompts uncached. Where a price is missing there is no figure."
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
--   - prompt_tokens
--   - cache_read_tokens
--   - cache_write_tokens
--   - cache_read_ratio
--   - saved_by_reads_usd: "dollars | cache reads at the price of uncached input, less what they cost as reads"
--   - spent_on_writes_usd: "dollars | cache writes at their own price, less what they would cost as uncached input"
--   - saved_usd: "dollars | saved_by_reads_usd - spent_on_writes_usd; negative where the cache cost more than it saved"
--   - uncached_prompt_usd: "dollars | the prompts that could be priced, as if nothing had been cached"
--   - unpriced_tokens: "tokens | cache reads and writes without the prices to value them; in no amount"
--   - priced_as
--   - price_match
--   - price_source
--   - price_date
--   - price_note
-- chart: {kind: bars, label: name, value: saved_usd}
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
         prompt_tokens,
         CASE WHEN prompt_tokens IS NOT NULL THEN cache_read_tokens END AS cache_read_tokens,
         CASE WHEN prompt_tokens IS NOT NULL THEN cache_write_tokens END AS cache_write_tokens
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
),
listed AS MATERIALIZED (SELECT * FROM ledger_prices),
valued AS MATERIALIZED (
  SELECT u.name, u.prompt_tokens, u.cache_read_tokens, u.cache_write_tokens,
         CASE WHEN u.cache_read_tokens = 0 AND p.input_price IS NOT NULL THEN 0.0
              ELSE u.cache_read_tokens * (p.input_price - p.cache_read_price) / 1000000.0 END AS by_reads,
         CASE WHEN u.cache_write_tokens = 0 AND p.input_price IS NOT NULL THEN 0.0
              ELSE u.cache_write_tokens * (p.cache_write_price - p.input_price) / 1000000.0 END AS on_writes,
         u.prompt_tokens * p.input_price / 1000000.0 AS uncached,
         p.priced_as, p.price_match, p.price_source, p.price_date, p.price_note
  FROM used AS u
  LEFT JOIN listed AS p ON p.model = u.model
    AND p.billing_provider = u.billing_provider AND p.billing_base_url = u.billing_base_url
    AND u.priced_at >= p.from_epoch AND u.priced_at < p.until_epoch
)
SELECT name,
       sum(prompt_tokens) AS prompt_tokens,
       sum(cache_read_tokens) AS cache_read_tokens,
       sum(cache_write_tokens) AS cache_write_tokens,
       sum(cache_read_tokens) * 1.0 / nullif(sum(prompt_tokens), 0) AS cache_read_ratio,
       sum(by_reads) AS saved_by_reads_usd,
       sum(on_writes) AS spent_on_writes_usd,
       coalesce(sum(by_reads), 0) - coalesce(sum(on_writes), 0)
         + CASE WHEN count(by_reads) = 0 AND count(on_writes) = 0 THEN NULL ELSE 0 END AS saved_usd,
       sum(uncached) AS uncached_prompt_usd,
       sum(CASE WHEN by_reads IS NULL THEN coalesce(cache_read_tokens, 0) ELSE 0 END)
         + sum(CASE WHEN on_writes IS NULL THEN coalesce(cache_write_tokens, 0) ELSE 0 END) AS unpriced_tokens,
       group_concat(DISTINCT priced_as) AS priced_as,
       group_concat(DISTINCT price_match) AS price_match,
       group_concat(DISTINCT price_source) AS price_source,
       max(price_date) AS price_date,
       group_concat(DISTINCT price_note) AS price_note
FROM valued
GROUP BY name
ORDER BY CASE WHEN :by IN ('day', 'month') THEN name END DESC, saved_usd DESC, name
LIMIT :limit
