-- ---
-- title: Search in messages
-- description: "Messages that contain what you type, newest first, with the matches marked. Words must all occur; \"exact phrase\", OR, NOT, prefix* and parentheses work, all else is literal text."
-- parameters:
--   - q: {type: words, label: "What to look for"}
--   - source: {label: "Only these sources, separated by commas"}
--   - exclude_source: {type: text, label: "None of these sources, separated by commas"}
--   - role: {type: text, label: "Only these roles, separated by commas: user, assistant, tool, …"}
--   - model: {label: "Only these models, separated by commas"}
--   - since
--   - until
--   - tz
--   - sort: {type: choice, label: "Order; best ranks the newest 2,000 matches", choices: [newest, oldest, best], default: newest}
--   - before: {type: integer, label: "Go on after this message (its id), the last of the page before"}
--   - limit: {default: 20}
-- columns:
--   - id
--   - session_id
--   - role
--   - snippet
--   - timestamp
--   - tool_name
--   - source
--   - model
--   - title
--   - matches
--   - route
--   - complete
-- ---
SELECT json_extract(found.value, '$.id') AS id, json_extract(found.value, '$.session_id') AS session_id,
       json_extract(found.value, '$.role') AS role, json_extract(found.value, '$.snippet') AS snippet,
       json_extract(found.value, '$.timestamp') AS timestamp, json_extract(found.value, '$.tool_name') AS tool_name,
       json_extract(found.value, '$.source') AS source, json_extract(found.value, '$.model') AS model,
       json_extract(found.value, '$.title') AS title, json_extract(found.value, '$.matches') AS matches,
       json_extract(found.value, '$.route') AS route, json_extract(found.value, '$.complete') AS complete
FROM json_each(ledger_search(CAST(:q AS BLOB), :source, :exclude_source, :role, :model, day_start(:since, :tz), day_end(:until, :tz), :sort, nullif(:before, 0), :limit)) AS found
ORDER BY found.key
