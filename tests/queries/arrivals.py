"""Random rows for the tables of ``world``, which arrive in rounds.

The first round brings most of them. In the second there are late rows, copies,
corrections, moved orders, a deleted and a replaced file, all of three days, so that
whatever is built too narrowly around them is not found. Times are drawn from few, so
that many tie, are at midnight, or where the clocks of Berlin and New York change.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

Row = dict[str, Any]

DAYS = [
    *("2023-03-01", "2024-02-26", "2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"),
    *("2024-03-03", "2024-03-09", "2024-03-10", "2024-03-11", "2024-03-29", "2024-03-30"),
    *("2024-03-31", "2024-04-01"),
]
CLOCKS = [
    *("00:00:00", "00:00:00", "00:20:00", "00:59:59.999999", "01:00:00", "01:30:00", "06:59:59"),
    *("07:00:00", "12:00:00", "12:00:00", "12:29:59.999999", "12:30:00", "12:31:00", "22:30:00"),
    *("23:00:00", "23:59:59.999999"),
]
USERS = ["ann", "ann", "bob", "bob", "eve", "zoe", None]
URLS = ["/", "/", "/item", "/item/7?utm=x", "/cart", "/pay"]
SKUS = ["pen", "ink", "cup"]

LOOKUPS: dict[str, list[Row]] = {
    "countries": [
        {"code": "DE", "name": "Germany", "region": "EU", "zone": "Europe/Berlin"},
        {"code": "FR", "name": "France", "region": "EU", "zone": "Europe/Paris"},
        {"code": "US", "name": "States", "region": "NA", "zone": "America/New_York"},
        {"code": "XX", "name": "elsewhere", "region": None, "zone": "UTC"},
    ],
    "users": [
        {"user_id": "ann", "signup": date(2024, 2, 28), "plan": "paid", "home": "DE"},
        {"user_id": "bob", "signup": date(2024, 3, 10), "plan": "free", "home": "US"},
        {"user_id": "joe", "signup": date(2024, 3, 10), "plan": None, "home": None},
    ],
    "calendar": [
        {"day": date(2024, 2, 29), "holiday": True, "name": "leap day"},
        {"day": date(2024, 3, 1), "holiday": False, "name": None},
        {"day": date(2024, 3, 31), "holiday": True, "name": "easter"},
        {"day": date(2024, 12, 25), "holiday": True, "name": "christmas"},
    ],
    "rates": [{"currency": "EUR", "rate": 1.0}, {"currency": "USD", "rate": 0.9}],
}
EVENTS = ("clicks", "orders", "prices")
TIME = {"clicks": "ts", "orders": "ordered_at", "prices": "valid_from"}
KEYS = {
    "clicks": ("event_id", "ts"),
    "orders": ("order_id",),  # wherever it is: this stream is deduplicated everywhere
    "prices": ("sku", "valid_from"),
}


@dataclass
class Arrivals:
    """What lies in the landing folder, by file; and what comes next."""

    draw: Random
    files: dict[str, list[Row]] = field(default_factory=dict)
    lookups: dict[str, list[Row]] = field(
        default_factory=lambda: {name: list(rows) for name, rows in LOOKUPS.items()}
    )
    hot: list[str] = field(default_factory=list)
    ids: int = 0

    def first(self) -> None:
        """Most of it: two files for each stream, and one that will leave or be replaced."""
        self.hot = self.draw.sample(DAYS, 3)
        for source, many in (("clicks", 90), ("orders", 36), ("prices", 14)):
            for part in "ab":
                self.files[f"{source}/{part}"] = [self._row(source) for _ in range(many // 2)]
            self.files[f"{source}/short"] = [self._row(source, self.hot) for _ in range(4)]

    def later(self) -> None:
        """What can happen to rows afterwards, on three days; and at times another lookup."""
        for source, many in (("clicks", 3), ("orders", 2), ("prices", 1)):
            late = [self._row(source, self.hot) for _ in range(many)]
            copies = [dict(row) for row in self.draw.sample(self.files[f"{source}/a"], 2)]
            self.files[f"{source}/late"] = late + copies
        for source in ("clicks", "orders"):
            row = self.draw.choice(self.files[f"{source}/short"])
            self.files[f"{source}/again"] = [self._corrected(source, row)]
        del self.files["prices/short"]
        self.files["clicks/short"] = self.files["clicks/short"][:2]
        self.files["orders/short"] = self.files["orders/short"][2:]
        if self.draw.random() < 0.5:
            self.lookups["users"].append(
                {"user_id": "eve", "signup": date(2024, 3, 1), "plan": "free", "home": "FR"}
            )
        else:
            self.lookups["countries"][1] = self.lookups["countries"][1] | {"region": "FR"}

    def _corrected(self, source: str, row: Row) -> Row:
        changed = row | {"revision": 2, "user_id": self.draw.choice(USERS)}
        if source == "orders":  # one key anywhere: the newest revision is where it happened
            changed[TIME[source]] = self._time(self.hot)
        return changed

    def _row(self, source: str, days: list[str] = DAYS) -> Row:
        self.ids += 1
        draw, at = self.draw, self._time(days)
        if source == "prices":
            sku = draw.choice(SKUS)  # one price at one instant
            return {
                "sku": sku,
                "valid_from": at,
                "price": Decimal(ord(sku[0]) + at.hour if at else 1),
            }
        if source == "orders":
            day = at.date() if at else date(2024, 3, 1)
            return {
                "order_id": self.ids,
                "user_id": draw.choice(USERS),
                "ordered_at": at,
                "sku": draw.choice(SKUS),
                "qty": draw.randint(1, 3),
                "price": self._money() or Decimal("1.00"),
                "status": draw.choice(["paid", "paid", "cancelled"]),
                "currency": draw.choice(["EUR", "USD", "GBP"]),
                "due": draw.choice([None, day + timedelta(days=draw.randint(-1, 12))]),
                "revision": 1,
            }
        os = draw.choice(["linux", "ios", None])
        return {
            "event_id": f"e{self.ids}",
            "user_id": draw.choice(USERS),
            "ts": at,
            "url": draw.choice(URLS),
            "country": draw.choice(["DE", "DE", "FR", "US", "QQ", None]),
            "amount": self._money(),
            "score": draw.choice([None, 0.1, 0.2, 0.7, 1.5, -3.25, 1e9]),
            "tags": draw.choice([None, [], ["new"], ["new", "old"]]),
            "props": draw.choice([None, '{"plan": "a", "depth": 3}', '{"depth": null}', "{}"]),
            "device": draw.choice([None, {"os": os, "version": draw.randint(1, 3)}]),
            "sent_at": draw.choice([None, "2024-03-01 10:00:00", "2024-03-31 02:30:00"]),
            "revision": 1,
        }

    def _time(self, days: list[str]) -> datetime | None:
        if self.draw.random() < 0.02:
            return None
        text = f"{self.draw.choice(days)}T{self.draw.choice(CLOCKS)}"
        return datetime.fromisoformat(text).replace(tzinfo=UTC)

    def _money(self) -> Decimal | None:
        if self.draw.random() < 0.15:
            return None
        return Decimal(self.draw.choice([100, 250, 500, 500, 999, 1000, 1999])) / 100

    def write(self, landing: Path) -> None:
        """Make the landing folder hold exactly these files."""
        wanted = {landing / f"{name}{self._ending(name)}": rows for name, rows in self._all()}
        for path in landing.rglob("*.*"):
            if path not in wanted:
                path.unlink()
        for path, rows in wanted.items():
            text = _json(rows) if path.suffix == ".json" else _csv(rows)
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")

    def _all(self) -> list[tuple[str, list[Row]]]:
        return [*self.files.items(), *self.lookups.items()]

    def _ending(self, name: str) -> str:
        return ".json" if name.startswith("clicks") else ".csv"

    def landed(self, source: str) -> list[Row]:
        """The rows of a stream that have a time, copies among them."""
        named = [rows for name, rows in self.files.items() if name.startswith(source)]
        return [row for rows in named for row in rows if row[TIME[source]] is not None]

    def events(self, source: str) -> list[Row]:
        """The rows of a stream by its definition: one for each key, of the newest revision."""
        best: dict[Any, Row] = {}
        for row in self.landed(source):
            key = tuple(row[column] for column in KEYS[source])
            known = best.get(key)
            if known is None or _better(row, known):
                best[key] = row
        return list(best.values())


def _better(row: Row, known: Row) -> bool:
    """Whether a copy goes before the known one; prices have no revision, nor conflicts."""
    return "revision" in row and bool(row["revision"] > known["revision"])


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return str(value) if isinstance(value, date) else value


def _json(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        amount = row["amount"]
        shown = {name: _shown(value) for name, value in row.items() if name != "amount"}
        number = "null" if amount is None else f"{amount:.2f}"
        lines.append(f'{json.dumps(shown)[:-1]}, "amount": {number}}}')
    return "\n".join(lines) + "\n"


def _csv(rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        shown = [_shown(value) for value in row.values()]
        writer.writerow([str(one).lower() if isinstance(one, bool) else one for one in shown])
    return text.getvalue()
