-- ---
-- title: Cost drivers
-- description: "What made a session, a conversation, a piece of work or a day expensive, against the median of its kind: one row per driver. Without any of the four, the session that cost most."
-- parameters:
--   - session: {label: 'Session id'}
--   - conversation: {type: text, label: 'Any session of a conversation'}
--   - work: {type: text, label: 'Any session of a piece of work'}
--   - day: {type: date, label: 'A day; goes before the others'}
--   - tz
--   - day_rule
--   - min_compared: {type: integer, label: 'No median of fewer than this many', default: 5, minimum: 1}
--   - min_repeats: {type: integer, label: 'A loop is the same call at least this many times', default: 5, minimum: 2}
-- columns:
--   - driver: " | cost, calls, prompt_per_call, context_growth, cache_read_ratio, sent_differently, helper_calls, delegates, tool_output, loop or largest_session"
--   - value: " | the figure, in the unit beside it"
--   - unit: " | unit of value, part_of and typical"
--   - part_of: " | what the value is a part of; for prompt_per_call all prompts, for cache_read_ratio their tokens"
--   - typical: " | median of the same source and model (of days: of the 90 that end with it); NULL where there are too few"
--   - compared: "number | how many the median is of, this one included"
--   - count: " | calls, messages, results or sessions behind the value; for cost the calls of unknown cost"
--   - name: " | tool, task or title that stands out"
--   - session_id
--   - message_id
--   - certainty: " | known from counters or stored rows, or estimate"
--   - unit_id: " | what is explained: the session, the first session of the conversation or work, or the day"
--   - source
--   - canonical_model
-- ---
WITH l AS MATERIALIZED (
  SELECT session_id, link_session_id, kind, conversation_id, work_id, depth FROM ledger_lineage
),
-- Each name below is used once or twice: SQLite compiles a common table once for every place that names it.
own AS MATERIALIZED (
  SELECT CASE WHEN :day <> '' THEN :day
              WHEN :session <> '' THEN :session
              WHEN :conversation <> '' THEN (SELECT conversation_id FROM l WHERE session_id = :conversation)
              WHEN :work <> '' THEN (SELECT work_id FROM l WHERE session_id = :work)
              ELSE (SELECT u.session_id FROM ledger_session_usage AS u JOIN l ON l.session_id = u.session_id
                    ORDER BY u.cost_usd DESC, u.session_id LIMIT 1) END AS unit_id,
         CASE WHEN :day <> '' OR (:session = '' AND :conversation = '' AND :work <> '') THEN 1 ELSE 0 END AS has_delegates
),
used AS MATERIALIZED (
  SELECT CASE WHEN :day <> '' THEN local_day(t.bucket, :tz)
              WHEN :session <> '' THEN t.session_id
              WHEN :conversation <> '' THEN coalesce(l.conversation_id, t.session_id)
              WHEN :work <> '' THEN coalesce(l.work_id, t.session_id)
              ELSE t.session_id END AS unit_id,
         t.session_id, t.task, CASE WHEN max(l.depth) > 0 THEN 1 ELSE 0 END AS delegated,
         sum(t.cost_usd) AS cost_usd, sum(t.unknown_calls) AS unknown_calls, sum(t.api_call_count) AS calls,
         sum(t.prompt_tokens) AS prompt_tokens,
         sum(CASE WHEN t.api_call_count > 0 THEN t.prompt_tokens END) AS counted_tokens,
         sum(CASE WHEN t.prompt_tokens IS NOT NULL THEN t.cache_read_tokens END) AS cached_tokens
  FROM ledger_time AS t
  LEFT JOIN l ON l.session_id = t.session_id
  WHERE t.day_rule = CASE WHEN :day = '' THEN 'all_time' ELSE :day_rule END
    AND (:day = '' OR t.last_bucket >= day_start(local_day(day_start(:day, :tz) - 7646400, :tz), :tz))
    AND (:day = '' OR t.first_bucket < day_end(:day, :tz))
    AND (:day = '' OR t.bucket >= day_start(local_day(day_start(:day, :tz) - 7646400, :tz), :tz))
    AND (:day = '' OR t.bucket < day_end(:day, :tz))
  GROUP BY 1, t.session_id, t.task
),
summed AS (
  SELECT *, sum(cost_usd) OVER (PARTITION BY unit_id, session_id) AS session_usd,
         sum(cost_usd) OVER (PARTITION BY unit_id, task) AS task_usd
  FROM used
),
ranked AS (
  SELECT *, row_number() OVER (PARTITION BY unit_id ORDER BY session_usd DESC, session_id) AS session_place,
         row_number() OVER (PARTITION BY unit_id ORDER BY task <> '' DESC, task_usd DESC, task) AS task_place,
         row_number() OVER (PARTITION BY unit_id ORDER BY delegated DESC, session_usd DESC, session_id) AS delegate_place
  FROM summed
),
units AS (
  SELECT unit_id, sum(cost_usd) AS cost_usd, sum(unknown_calls) AS unknown_calls,
         sum(CASE WHEN task = '' THEN calls END) AS calls,
         sum(CASE WHEN task = '' THEN prompt_tokens END) AS prompt_tokens,
         sum(CASE WHEN task = '' THEN counted_tokens END) AS counted_tokens,
         sum(CASE WHEN task = '' THEN cached_tokens END) AS cached_tokens,
         count(DISTINCT session_id) AS sessions,
         max(CASE WHEN session_place = 1 THEN session_id END) AS largest_session_id,
         max(CASE WHEN session_place = 1 THEN session_usd END) AS largest_usd,
         max(CASE WHEN task_place = 1 THEN task END) AS helper,
         sum(CASE WHEN task <> '' THEN calls END) AS helper_calls,
         sum(CASE WHEN task <> '' THEN cost_usd END) AS helper_usd,
         count(DISTINCT CASE WHEN delegated = 1 THEN session_id END) AS delegates,
         sum(CASE WHEN delegated = 1 THEN cost_usd END) AS delegates_usd,
         max(CASE WHEN delegate_place = 1 AND delegated = 1 THEN session_id END) AS delegate_session_id
  FROM ranked GROUP BY unit_id
),
described AS (
  SELECT u.*, f.source, f.canonical_model, CASE WHEN u.unit_id = o.own_id THEN 1 ELSE 0 END AS is_own
  FROM units AS u CROSS JOIN (SELECT unit_id AS own_id FROM own) AS o
  LEFT JOIN ledger_session_facts AS f ON f.session_id = u.unit_id
),
beside AS (
  SELECT *, max(CASE WHEN is_own = 1 THEN coalesce(source, '') END) OVER () AS own_source,
         max(CASE WHEN is_own = 1 THEN coalesce(canonical_model, '') END) OVER () AS own_model
  FROM described
),
peers AS MATERIALIZED (
  SELECT * FROM beside WHERE coalesce(source, '') = own_source AND coalesce(canonical_model, '') = own_model
),
measured AS (
  SELECT n.figure, CASE n.figure WHEN 'cost' THEN nullif(p.cost_usd, 0) WHEN 'calls' THEN nullif(p.calls, 0)
                                 WHEN 'prompt' THEN p.counted_tokens * 1.0 / nullif(p.calls, 0)
                                 ELSE p.cached_tokens * 1.0 / nullif(p.prompt_tokens, 0) END AS value
  FROM peers AS p
  CROSS JOIN (SELECT 'cost' AS figure UNION ALL SELECT 'calls' UNION ALL SELECT 'prompt' UNION ALL SELECT 'cache') AS n
),
placed AS (
  SELECT figure, value, row_number() OVER (PARTITION BY figure ORDER BY value) AS place,
         count(*) OVER (PARTITION BY figure) AS compared
  FROM measured WHERE value IS NOT NULL
),
medians AS MATERIALIZED (
  SELECT avg(CASE WHEN figure = 'cost' AND compared >= :min_compared THEN value END) AS cost_typical,
         avg(CASE WHEN figure = 'calls' AND compared >= :min_compared THEN value END) AS calls_typical,
         avg(CASE WHEN figure = 'prompt' AND compared >= :min_compared THEN value END) AS prompt_typical,
         avg(CASE WHEN figure = 'cache' AND compared >= :min_compared THEN value END) AS cache_typical,
         max(CASE WHEN figure = 'cost' THEN compared END) AS cost_compared,
         max(CASE WHEN figure = 'calls' THEN compared END) AS calls_compared,
         max(CASE WHEN figure = 'prompt' THEN compared END) AS prompt_compared,
         max(CASE WHEN figure = 'cache' THEN compared END) AS cache_compared
  FROM placed WHERE 2 * place BETWEEN compared AND compared + 2
),
chosen AS MATERIALIZED (
  SELECT l.session_id FROM l JOIN own ON own.unit_id = CASE WHEN :session <> '' THEN l.session_id
    WHEN :conversation <> '' THEN l.conversation_id WHEN :work <> '' THEN l.work_id ELSE l.session_id END
  WHERE :day = ''
  UNION
  SELECT session_id FROM ledger_session_facts
  WHERE :day <> '' AND last_active >= day_start(:day, :tz) AND first_active < day_end(:day, :tz)
),
texts AS (
  SELECT m.session_id, m.id, m.timestamp, m.role, m.tool_name, m.state, m.sent_verbatim,
         length(CAST(m.text AS BLOB)) AS bytes
  FROM chosen AS c CROSS JOIN ledger_messages AS m ON m.session_id = c.session_id
  WHERE m.state <> 'taken back'
    AND (:day = '' OR m.timestamp >= day_start(:day, :tz)) AND (:day = '' OR m.timestamp < day_end(:day, :tz))
),
walked AS (
  SELECT *, sum(bytes) OVER (PARTITION BY session_id, state ORDER BY timestamp, id
                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before,
         sum(bytes) OVER (PARTITION BY role, tool_name) AS tool_bytes
  FROM texts
),
outstanding AS (
  SELECT *, row_number() OVER (ORDER BY role = 'assistant' DESC, before DESC, id) AS grown_place,
         row_number() OVER (ORDER BY role = 'tool' DESC, bytes DESC, id) AS result_place,
         row_number() OVER (ORDER BY role = 'tool' DESC, tool_bytes DESC, tool_name) AS tool_place,
         row_number() OVER (ORDER BY coalesce(sent_verbatim, 1), timestamp, id) AS differing_place
  FROM walked
),
spoken AS MATERIALIZED (
  SELECT count(*) AS messages, sum(bytes) AS bytes,
         sum(CASE WHEN role = 'assistant' AND :day = '' THEN before END) AS sent_bytes,
         sum(CASE WHEN role = 'assistant' THEN 1 ELSE 0 END) AS replies,
         max(CASE WHEN grown_place = 1 THEN session_id END) AS grown_session_id,
         max(CASE WHEN grown_place = 1 THEN id END) AS grown_id,
         sum(CASE WHEN role = 'tool' THEN bytes END) AS tool_bytes,
         sum(CASE WHEN role = 'tool' THEN 1 ELSE 0 END) AS tool_results,
         max(CASE WHEN tool_place = 1 THEN tool_name END) AS tool_name,
         max(CASE WHEN result_place = 1 THEN session_id END) AS result_session_id,
         max(CASE WHEN result_place = 1 THEN id END) AS result_id,
         sum(CASE WHEN sent_verbatim = 0 THEN 1 ELSE 0 END) AS differing,
         max(CASE WHEN differing_place = 1 THEN session_id END) AS differing_session_id,
         max(CASE WHEN differing_place = 1 THEN id END) AS differing_id
  FROM outstanding
),
called AS MATERIALIZED (
  SELECT count(*) AS delegates, sum(cost_usd) AS delegates_usd, max(CASE WHEN place = 1 THEN session_id END) AS session_id
  FROM (SELECT l.session_id, u.cost_usd, row_number() OVER (ORDER BY u.cost_usd DESC, l.session_id) AS place
        FROM chosen AS c JOIN l ON l.link_session_id = c.session_id
        LEFT JOIN ledger_session_usage AS u ON u.session_id = l.session_id
        WHERE l.kind = 'delegate' AND (SELECT has_delegates FROM own) = 0)
),
names AS (
  SELECT 1 AS place, 'cost' AS driver, 'dollars' AS unit
  UNION ALL SELECT 2, 'largest_session', 'dollars' UNION ALL SELECT 3, 'calls', 'calls'
  UNION ALL SELECT 4, 'prompt_per_call', 'tokens' UNION ALL SELECT 5, 'context_growth', 'bytes'
  UNION ALL SELECT 6, 'cache_read_ratio', '0 to 1' UNION ALL SELECT 7, 'sent_differently', 'messages'
  UNION ALL SELECT 8, 'helper_calls', 'dollars' UNION ALL SELECT 9, 'delegates', 'dollars'
  UNION ALL SELECT 10, 'tool_output', 'bytes'
),
found AS (
  SELECT n.place, n.driver,
         CASE n.driver WHEN 'cost' THEN t.cost_usd WHEN 'largest_session' THEN t.largest_usd WHEN 'calls' THEN t.calls
           WHEN 'prompt_per_call' THEN t.counted_tokens * 1.0 / t.calls WHEN 'context_growth' THEN s.sent_bytes
           WHEN 'cache_read_ratio' THEN t.cached_tokens * 1.0 / t.prompt_tokens WHEN 'sent_differently' THEN s.differing
           WHEN 'helper_calls' THEN t.helper_usd
           WHEN 'delegates' THEN CASE WHEN own.has_delegates = 1 THEN t.delegates_usd ELSE d.delegates_usd END
           ELSE s.tool_bytes END AS value,
         n.unit,
         CASE n.driver WHEN 'largest_session' THEN t.cost_usd WHEN 'prompt_per_call' THEN t.counted_tokens
           WHEN 'context_growth' THEN s.bytes WHEN 'cache_read_ratio' THEN t.prompt_tokens
           WHEN 'sent_differently' THEN s.messages WHEN 'helper_calls' THEN t.cost_usd
           WHEN 'delegates' THEN CASE WHEN own.has_delegates = 1 THEN t.cost_usd END
           WHEN 'tool_output' THEN s.bytes END AS part_of,
         CASE n.driver WHEN 'cost' THEN m.cost_typical WHEN 'calls' THEN m.calls_typical
           WHEN 'prompt_per_call' THEN m.prompt_typical WHEN 'cache_read_ratio' THEN m.cache_typical END AS typical,
         CASE n.driver WHEN 'cost' THEN m.cost_compared WHEN 'calls' THEN m.calls_compared
           WHEN 'prompt_per_call' THEN m.prompt_compared WHEN 'cache_read_ratio' THEN m.cache_compared END AS compared,
         CASE n.driver WHEN 'cost' THEN t.unknown_calls WHEN 'largest_session' THEN t.sessions
           WHEN 'prompt_per_call' THEN t.calls WHEN 'context_growth' THEN s.replies
           WHEN 'sent_differently' THEN s.differing WHEN 'helper_calls' THEN t.helper_calls
           WHEN 'delegates' THEN CASE WHEN own.has_delegates = 1 THEN t.delegates ELSE d.delegates END
           WHEN 'tool_output' THEN s.tool_results END AS count,
         CASE n.driver WHEN 'helper_calls' THEN t.helper WHEN 'tool_output' THEN s.tool_name END AS name,
         CASE n.driver WHEN 'largest_session' THEN t.largest_session_id WHEN 'context_growth' THEN s.grown_session_id
           WHEN 'sent_differently' THEN s.differing_session_id WHEN 'tool_output' THEN s.result_session_id
           WHEN 'delegates' THEN CASE WHEN own.has_delegates = 1 THEN t.delegate_session_id ELSE d.session_id END
           END AS session_id,
         CASE n.driver WHEN 'context_growth' THEN s.grown_id WHEN 'sent_differently' THEN s.differing_id
           WHEN 'tool_output' THEN s.result_id END AS message_id,
         CASE WHEN n.driver = 'context_growth' THEN 'estimate'
           WHEN n.driver IN ('sent_differently', 'tool_output') OR :day = '' THEN 'known' ELSE 'estimate' END AS certainty,
         t.unit_id, t.source, t.canonical_model
  FROM names AS n
  CROSS JOIN own
  LEFT JOIN peers AS t ON t.is_own = 1
  LEFT JOIN medians AS m ON 1 = 1
  LEFT JOIN spoken AS s ON 1 = 1
  LEFT JOIN called AS d ON 1 = 1
  WHERE CASE n.driver WHEN 'cost' THEN t.unit_id IS NOT NULL
          WHEN 'largest_session' THEN t.sessions > 1 AND t.largest_usd > 0 WHEN 'calls' THEN t.calls > 0
          WHEN 'prompt_per_call' THEN t.calls > 0 AND t.counted_tokens > 0
          WHEN 'context_growth' THEN s.replies > 1 AND s.sent_bytes > 0
          WHEN 'cache_read_ratio' THEN t.prompt_tokens > 0 WHEN 'sent_differently' THEN s.differing > 0
          WHEN 'helper_calls' THEN t.helper <> ''
          WHEN 'delegates' THEN CASE WHEN own.has_delegates = 1 THEN t.delegates > 0 ELSE d.delegates > 0 END
          ELSE s.tool_results > 0 END
  UNION ALL
  SELECT 11, 'loop', times, 'calls', NULL, NULL, NULL, times, tool_name, session_id, message_id, 'known', NULL, NULL, NULL
  FROM (SELECT t.session_id, t.tool_name, min(t.message_id) AS message_id, count(*) AS times
        FROM chosen AS c CROSS JOIN ledger_tool_calls AS t ON t.session_id = c.session_id
        WHERE (:day = '' OR t.timestamp >= day_start(:day, :tz)) AND (:day = '' OR t.timestamp < day_end(:day, :tz))
        GROUP BY t.session_id, t.tool_name, t.arguments
        HAVING count(*) >= :min_repeats
        ORDER BY count(*) DESC, min(t.message_id)
        LIMIT 3)
)
SELECT f.driver, f.value, f.unit, f.part_of, f.typical, f.compared, f.count,
       CASE WHEN f.driver IN ('largest_session', 'delegates')
            THEN (SELECT g.title FROM ledger_session_facts AS g WHERE g.session_id = f.session_id) ELSE f.name END AS name,
       f.session_id, f.message_id, f.certainty, f.unit_id, f.source, f.canonical_model
FROM found AS f
ORDER BY f.place, f.value DESC, f.message_id
