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
--   - typical: " | median of the same source and model (of days: of the 90 days before); NULL where there are too few"
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
used AS MATERIALIZED (
  SELECT CASE WHEN :day <> '' THEN local_day(t.bucket, :tz)
              WHEN :session <> '' THEN t.session_id
              WHEN :conversation <> '' THEN coalesce(l.conversation_id, t.session_id)
              WHEN :work <> '' THEN coalesce(l.work_id, t.session_id)
              ELSE t.session_id END AS unit_id,
         t.session_id, t.task, max(coalesce(l.depth, 0)) AS depth,
         sum(t.cost_usd) AS cost_usd, sum(t.unknown_calls) AS unknown_calls, sum(t.unknown_tokens) AS unknown_tokens,
         sum(t.api_call_count) AS calls, sum(t.prompt_tokens) AS prompt_tokens,
         sum(CASE WHEN t.api_call_count > 0 THEN t.prompt_tokens END) AS counted_prompt_tokens,
         sum(CASE WHEN t.prompt_tokens IS NOT NULL THEN t.cache_read_tokens END) AS cached_tokens
  FROM ledger_time AS t
  LEFT JOIN l ON l.session_id = t.session_id
  WHERE t.day_rule = CASE WHEN :day = '' THEN 'all_time' ELSE :day_rule END
    AND (:day = '' OR t.last_bucket >= day_start(local_day(day_start(:day, :tz) - 7732800, :tz), :tz))
    AND (:day = '' OR t.first_bucket < day_end(:day, :tz))
    AND (:day = '' OR t.bucket >= day_start(local_day(day_start(:day, :tz) - 7732800, :tz), :tz))
    AND (:day = '' OR t.bucket < day_end(:day, :tz))
  GROUP BY 1, t.session_id, t.task
),
own AS MATERIALIZED (
  SELECT CASE WHEN :day <> '' THEN :day
              WHEN :session <> '' THEN :session
              WHEN :conversation <> '' THEN (SELECT conversation_id FROM l WHERE session_id = :conversation)
              WHEN :work <> '' THEN (SELECT work_id FROM l WHERE session_id = :work)
              ELSE (SELECT u.session_id FROM used AS u JOIN l ON l.session_id = u.session_id
                    GROUP BY u.session_id ORDER BY sum(u.cost_usd) DESC, u.session_id LIMIT 1) END AS unit_id
),
units AS MATERIALIZED (
  SELECT u.unit_id, f.source, f.canonical_model, u.cost_usd, u.unknown_calls, u.unknown_tokens, u.calls,
         u.prompt_tokens, u.counted_prompt_tokens, u.cached_tokens
  FROM (SELECT unit_id, sum(cost_usd) AS cost_usd, sum(unknown_calls) AS unknown_calls,
               sum(unknown_tokens) AS unknown_tokens,
               sum(CASE WHEN task = '' THEN calls END) AS calls,
               sum(CASE WHEN task = '' THEN prompt_tokens END) AS prompt_tokens,
               sum(CASE WHEN task = '' THEN counted_prompt_tokens END) AS counted_prompt_tokens,
               sum(CASE WHEN task = '' THEN cached_tokens END) AS cached_tokens
        FROM used GROUP BY unit_id) AS u
  LEFT JOIN ledger_session_facts AS f ON f.session_id = u.unit_id
),
this AS MATERIALIZED (
  SELECT u.* FROM units AS u JOIN own ON own.unit_id = u.unit_id
),
peers AS MATERIALIZED (
  SELECT u.* FROM units AS u CROSS JOIN this
  WHERE coalesce(u.source, '') = coalesce(this.source, '')
    AND coalesce(u.canonical_model, '') = coalesce(this.canonical_model, '')
),
measured AS (
  SELECT 'cost' AS driver, cost_usd AS value FROM peers WHERE cost_usd > 0
  UNION ALL SELECT 'calls', calls FROM peers WHERE calls > 0
  UNION ALL SELECT 'prompt_per_call', counted_prompt_tokens * 1.0 / calls FROM peers
    WHERE calls > 0 AND counted_prompt_tokens > 0
  UNION ALL SELECT 'cache_read_ratio', cached_tokens * 1.0 / prompt_tokens FROM peers WHERE prompt_tokens > 0
),
placed AS (
  SELECT driver, value, row_number() OVER (PARTITION BY driver ORDER BY value) AS place,
         count(*) OVER (PARTITION BY driver) AS compared
  FROM measured
),
medians AS MATERIALIZED (
  SELECT driver, CASE WHEN max(compared) >= :min_compared THEN avg(value) END AS typical, max(compared) AS compared
  FROM placed WHERE 2 * place BETWEEN compared AND compared + 2
  GROUP BY driver
),
chosen AS MATERIALIZED (
  SELECT l.session_id FROM l JOIN own ON own.unit_id = CASE WHEN :session <> '' THEN l.session_id
    WHEN :conversation <> '' THEN l.conversation_id WHEN :work <> '' THEN l.work_id ELSE l.session_id END
  WHERE :day = ''
  UNION
  SELECT u.session_id FROM used AS u JOIN own ON own.unit_id = u.unit_id WHERE :day <> ''
),
texts AS MATERIALIZED (
  SELECT m.session_id, m.id, m.timestamp, m.role, m.tool_name, m.state, m.sent_verbatim,
         length(CAST(m.text AS BLOB)) AS bytes
  FROM chosen AS c CROSS JOIN ledger_messages AS m ON m.session_id = c.session_id
  WHERE m.state <> 'taken back'
    AND (:day = '' OR m.timestamp >= day_start(:day, :tz)) AND (:day = '' OR m.timestamp < day_end(:day, :tz))
),
walked AS MATERIALIZED (
  SELECT session_id, id, role,
         coalesce(sum(bytes) OVER (PARTITION BY session_id, state ORDER BY timestamp, id
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
  FROM texts WHERE :day = ''
),
results AS (
  SELECT tool_name, count(*) AS many, sum(bytes) AS bytes FROM texts WHERE role = 'tool' GROUP BY tool_name
),
helpers AS (
  SELECT u.task, sum(u.calls) AS calls, sum(u.cost_usd) AS cost_usd
  FROM used AS u JOIN own ON own.unit_id = u.unit_id WHERE u.task <> '' GROUP BY u.task
),
delegated AS MATERIALIZED (
  SELECT u.session_id, sum(u.cost_usd) AS cost_usd
  FROM used AS u JOIN own ON own.unit_id = u.unit_id
  WHERE (:day <> '' OR (:work <> '' AND :session = '' AND :conversation = '')) AND u.depth > 0 GROUP BY u.session_id
  UNION ALL
  SELECT l.session_id, (SELECT sum(u.cost_usd) FROM ledger_usage AS u WHERE u.session_id = l.session_id)
  FROM l JOIN chosen AS c ON c.session_id = l.link_session_id
  WHERE l.kind = 'delegate' AND :day = '' AND (:work = '' OR :session <> '' OR :conversation <> '')
),
loops AS (
  SELECT t.session_id, t.tool_name, min(t.message_id) AS message_id, count(*) AS times
  FROM chosen AS c CROSS JOIN ledger_tool_calls AS t ON t.session_id = c.session_id
  WHERE (:day = '' OR t.timestamp >= day_start(:day, :tz)) AND (:day = '' OR t.timestamp < day_end(:day, :tz))
  GROUP BY t.session_id, t.tool_name, t.arguments
  HAVING count(*) >= :min_repeats
  ORDER BY count(*) DESC, min(t.message_id)
  LIMIT 3
),
shares AS MATERIALIZED (
  SELECT u.session_id, sum(u.cost_usd) AS cost_usd
  FROM used AS u JOIN own ON own.unit_id = u.unit_id GROUP BY u.session_id
),
found AS (
  SELECT 1 AS place, 'cost' AS driver, t.cost_usd AS value, 'dollars' AS unit, NULL AS part_of, m.typical, m.compared,
         t.unknown_calls AS count, NULL AS name, NULL AS session_id, NULL AS message_id,
         CASE WHEN :day = '' THEN 'known' ELSE 'estimate' END AS certainty
  FROM this AS t LEFT JOIN medians AS m ON m.driver = 'cost'
  UNION ALL
  SELECT 2, 'largest_session', s.cost_usd, 'dollars', t.cost_usd, NULL, NULL,
         (SELECT count(*) FROM shares), f.title, s.session_id, NULL,
         CASE WHEN :day = '' THEN 'known' ELSE 'estimate' END
  FROM (SELECT * FROM shares WHERE cost_usd > 0 ORDER BY cost_usd DESC, session_id LIMIT 1) AS s
  CROSS JOIN this AS t
  LEFT JOIN ledger_session_facts AS f ON f.session_id = s.session_id
  WHERE (SELECT count(*) FROM shares) > 1
  UNION ALL
  SELECT 3, 'calls', t.calls, 'calls', NULL, m.typical, m.compared, NULL, NULL, NULL, NULL,
         CASE WHEN :day = '' THEN 'known' ELSE 'estimate' END
  FROM this AS t LEFT JOIN medians AS m ON m.driver = 'calls' WHERE t.calls > 0
  UNION ALL
  SELECT 4, 'prompt_per_call', t.counted_prompt_tokens * 1.0 / t.calls, 'tokens', t.counted_prompt_tokens,
         m.typical, m.compared, t.calls, NULL, NULL, NULL, CASE WHEN :day = '' THEN 'known' ELSE 'estimate' END
  FROM this AS t LEFT JOIN medians AS m ON m.driver = 'prompt_per_call'
  WHERE t.calls > 0 AND t.counted_prompt_tokens > 0
  UNION ALL
  SELECT 5, 'context_growth', g.sent, 'bytes', (SELECT sum(bytes) FROM texts), NULL, NULL, g.calls, NULL,
         w.session_id, w.id, 'estimate'
  FROM (SELECT sum(before) AS sent, count(*) AS calls FROM walked WHERE role = 'assistant') AS g
  CROSS JOIN (SELECT session_id, id FROM walked WHERE role = 'assistant' ORDER BY before DESC, id LIMIT 1) AS w
  WHERE g.calls > 1 AND g.sent > 0
  UNION ALL
  SELECT 6, 'cache_read_ratio', t.cached_tokens * 1.0 / t.prompt_tokens, '0 to 1', t.prompt_tokens,
         m.typical, m.compared, NULL, NULL, NULL, NULL, CASE WHEN :day = '' THEN 'known' ELSE 'estimate' END
  FROM this AS t LEFT JOIN medians AS m ON m.driver = 'cache_read_ratio' WHERE t.prompt_tokens > 0
  UNION ALL
  SELECT 7, 'sent_differently', d.many, 'messages', (SELECT count(*) FROM texts), NULL, NULL, d.many, NULL,
         w.session_id, w.id, 'known'
  FROM (SELECT count(*) AS many FROM texts WHERE sent_verbatim = 0) AS d
  CROSS JOIN (SELECT session_id, id FROM texts WHERE sent_verbatim = 0 ORDER BY timestamp, id LIMIT 1) AS w
  UNION ALL
  SELECT 8, 'helper_calls', (SELECT sum(cost_usd) FROM helpers), 'dollars', t.cost_usd, NULL, NULL,
         (SELECT sum(calls) FROM helpers), h.task, NULL, NULL, CASE WHEN :day = '' THEN 'known' ELSE 'estimate' END
  FROM (SELECT task FROM helpers ORDER BY cost_usd DESC, calls DESC, task LIMIT 1) AS h CROSS JOIN this AS t
  UNION ALL
  SELECT 9, 'delegates', (SELECT sum(cost_usd) FROM delegated), 'dollars',
         CASE WHEN :day <> '' OR (:work <> '' AND :session = '' AND :conversation = '') THEN t.cost_usd END, NULL, NULL,
         (SELECT count(*) FROM delegated), f.title, d.session_id, NULL,
         CASE WHEN :day = '' THEN 'known' ELSE 'estimate' END
  FROM (SELECT session_id FROM delegated ORDER BY cost_usd DESC, session_id LIMIT 1) AS d
  LEFT JOIN this AS t ON 1 = 1
  LEFT JOIN ledger_session_facts AS f ON f.session_id = d.session_id
  UNION ALL
  SELECT 10, 'tool_output', (SELECT sum(bytes) FROM results), 'bytes', (SELECT sum(bytes) FROM texts), NULL, NULL,
         (SELECT sum(many) FROM results), r.tool_name, w.session_id, w.id, 'known'
  FROM (SELECT tool_name FROM results ORDER BY bytes DESC, tool_name LIMIT 1) AS r
  CROSS JOIN (SELECT session_id, id FROM texts WHERE role = 'tool' ORDER BY bytes DESC, id LIMIT 1) AS w
  UNION ALL
  SELECT 11, 'loop', times, 'calls', NULL, NULL, NULL, times, tool_name, session_id, message_id, 'known' FROM loops
)
SELECT f.driver, f.value, f.unit, f.part_of, f.typical, f.compared, f.count, f.name, f.session_id, f.message_id,
       f.certainty, t.unit_id, t.source, t.canonical_model
FROM found AS f LEFT JOIN this AS t ON 1 = 1
ORDER BY f.place, f.value DESC, f.message_id
