---
materialization: sessions
description: One row per visit; half an hour of silence ends it.
sessions: {user: user_id, gap: 30 minutes}
---
-- Aggregates range over the events of one session, in order.
SELECT
  count(*) AS events,
  count_if(url LIKE '/pay%') AS payments,
  sum(amount) AS revenue,
  first(url) AS entry_url,
  last(url) AS exit_url
FROM clicks
