---
materialization: sessions
description: One row per stretch of a person's work without a pause of more than 30 minutes.
sessions: {user: user_id, gap: 30 minutes}
---
SELECT
  count(*) AS files,
  count_if(path LIKE '%test%') AS test_files,
  first(path) AS first_path,
  last(path) AS last_path,
  max(received_ts) AS complete_at
FROM events
