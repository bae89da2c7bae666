"""A project with one event and one country in its source files."""

from __future__ import annotations

import json

from tests.declare.shop import SHOP

EVENT = {"event_id": "a", "user_id": "u", "event_ts": "2024-03-01T10:00:00Z", "url": "/"}
LANDED = {
    **SHOP,
    "landing/clicks/a.json": json.dumps(EVENT | {"seen_at": EVENT["event_ts"], "amount": 1}),
    "countries.csv": "code,country\nDE,Germany\n",
}
