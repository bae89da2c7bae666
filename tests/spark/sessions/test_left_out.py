"""Rows that sessions leave out are set aside: listed once, unchanged, with file and reason."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from infold import api
from infold.core import interval
from infold.core.record import Receipt
from infold.core.report import RunFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Row = Mapping[str, Any]

_numbers = itertools.count()

SOURCE = """  raw.{name}:
    path: {name}/*.json
    event_time_column: at
    columns: {{id: string, at: timestamp, u: string, o: string, k: string}}
"""
LOOKUP = """  raw.n:
    path: n/*.json
    columns: {k: string, name: string}
"""
EVENTS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT * FROM raw.c"""
SESSIONS = """---
materialization: sessions
sessions: {%s}
---
SELECT count(*) AS events FROM %s"""

MODELS = {
    # Columns of a table.
    "a_users": ("user: u, gap: 30 minutes", "c"),
    "b_paid": ("user: u, gap: 1 hour", "c WHERE k = 'pay'"),
    "c_orders": ("identifier: [o], user: u", "c"),
    # An expression, and a view that shows more users than there are, or fewer.
    "d_named": ("user: 'nullif(u, ''x'')', gap: 30 minutes", "c"),
    "e_seen": ("user: who, gap: 30 minutes", "seen"),
    # Two landed sources, without a key, as one.
    "f_both": ("user: who, gap: 30 minutes", "both"),
    # A user that a lookup knows, at times.
    "g_known": ("user: who, gap: 30 minutes", "known"),
}
VIEWS = {
    "seen": "SELECT at, id, coalesce(u, o) AS who FROM c WHERE k IS NOT NULL",
    "known": "SELECT at, id, coalesce(u, name) AS who FROM c LEFT JOIN raw.n ON c.k = n.k",
    "both": "SELECT at, upper(u) AS who, o FROM raw.w WHERE k = 'pay' "
    "UNION ALL SELECT at, u, o FROM raw.m",
}
TESTS: Mapping[str, tuple[str, str, Callable[[Row], bool]]] = {
    "a_users": ("c", "null user", lambda row: row["u"] is None),
    "b_paid": ("c", "null user", lambda row: row["u"] is None and row["k"] == "pay"),
    "c_orders": ("c", "null identifier", lambda row: row["o"] is None),
    "d_named": ("c", "null user", lambda row: row["u"] in (None, "x")),
    "e_seen": (
        "c",
        "null user",
        lambda row: row["u"] is None and row["o"] is None and row["k"] is not None,
    ),
    "f_both": ("wm", "null user", lambda row: row["u"] is None),
    "g_known": ("c", "null user", lambda row: row["u"] is None),
}
"""Of each model the sources whose rows it reads, why it leaves rows out, and which."""


class LeftOutProject:
    """A project of some of the models, and the files of its sources."""

    def __init__(self, root: Path, warehouse: Path, *models: str) -> None:
        self.root, self.models = root, models
        (root / "models").mkdir(parents=True)
        for name in "cwmn":
            (root / name).mkdir()
        sources = "".join(SOURCE.format(name=name) for name in "cwm") + LOOKUP
        (root / "infold.yml").write_text(
            f"name: out{next(_numbers)}\nsources:\n{sources}"
            f"targets:\n  dev: {{storage: iceberg, warehouse: '{warehouse}'}}\n"
        )
        self.model("c", EVENTS)
        for name, sql in VIEWS.items() if "f_both" in models else ():
            self.model(name, f"---\nmaterialization: view\n---\n{sql}")
        for name in models:
            self.model(name, SESSIONS % MODELS[name])
        self.files: dict[tuple[str, str], list[Row]] = {}

    def model(self, name: str, text: str) -> None:
        """A model."""
        (self.root / "models" / f"{name}.sql").write_text(text)

    def put(self, source: str, name: str, rows: list[Row]) -> None:
        """A file, new or in the place of another."""
        self.files[source, name] = rows
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.root / source / name).write_text(text)

    def drop(self, source: str, name: str) -> None:
        """A file goes."""
        del self.files[source, name]
        (self.root / source / name).unlink()

    def run(self, **how: Any) -> Receipt:
        """One run; its receipt."""
        project = api.open_project(self.root)
        return api.run(project, as_of=interval.parse_instant_text("2025-01-01"), **how).receipt

    def shown(self, **how: Any) -> list[Row]:
        """What ``show set_aside`` shows."""
        rows: list[Row] = api.show(api.open_project(self.root), "set_aside", **how).to_pylist()
        return rows

    def counted(self) -> dict[str, int]:
        """What ``status`` says of the sessions."""
        found = api.status(api.open_project(self.root))
        return {one.model: one.set_aside for one in found if one.model in self.models}

    def there(self, source: str) -> list[tuple[str, Row]]:
        """The rows of a source, with their files; of copies of one event in c any one."""
        every = [
            (f"{source}/{name}", row)
            for (of, name), rows in sorted(self.files.items())
            for row in rows
            if of == source and row.get("id", "") is not None
        ]
        once = {row["id"]: (file, row) for file, row in every} if source == "c" else {}
        return list(once.values()) or every

    def expected(self) -> Counter[tuple[str, str, str]]:
        """The rows left out, by brute force: models, reasons, and what the row says."""
        found: Counter[tuple[str, str, str]] = Counter()
        for source in "cwm":
            for _, row in self.there(source):
                out = [
                    m for m in self.models if source in TESTS[m][0] and self.left(m, source, row)
                ]
                if out:
                    reasons = ", ".join(dict.fromkeys(TESTS[model][1] for model in out))
                    found[", ".join(out), reasons, as_json(row)] += 1
        return found

    def left(self, model: str, source: str, row: Row) -> bool:
        """Whether a model leaves a row of a source out."""
        if source == "w" and row["k"] != "pay":
            return False
        if model == "g_known" and row["k"] is not None:
            names = {one["k"]: one["name"] for _, one in self.there("n")}
            return row["u"] is None and names.get(row["k"]) is None
        return TESTS[model][2](row)

    def check(self) -> list[Row]:
        """What is shown is what is left out, each row once and in a file that has it."""
        shown = [row for row in self.shown() if row["model"] != "c"]
        assert Counter((r["model"], r["reason"], r["raw"]) for r in shown) == self.expected()
        for row in shown:
            source, _, name = row["file"].partition("/")
            assert row["source"] == f"raw.{source}"
            assert row["raw"] in [as_json(one) for one in self.files[source, name]]
            assert row["event_time"].isoformat() == json.loads(row["raw"])["at"][:-1] + "+00:00"
        counted = self.counted()
        for model in self.models:
            names = [row["model"].split(", ") for row in shown]
            assert counted[model] == sum(model in some for some in names), model
        return shown


def as_json(row: Row) -> str:
    """A row as it is shown."""
    return json.dumps(row)


def event(random: Random, number: int, source: str) -> Row:
    """An event; few instants and few values, so that many agree in much."""
    pick = random.choice
    return {
        "id": f"{source}{number}",
        "at": f"2024-03-0{pick('12')}T0{pick('12')}:00:00Z",
        "u": pick([None, None, "x", "ann", "bob"]),
        "o": pick([None, "o1", "o2"]),
        "k": pick([None, "pay", "see"]),
    }


def test_rows_that_several_models_leave_out_are_listed_once(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """A row left out by several models is listed once;
    status counts it for each model, the receipt once.

    A model that was never built lists no rows; after a changed definition the new one counts.
    """
    land = LeftOutProject(tmp_path, warehouse, "a_users", "b_paid", "c_orders", "d_named")
    row = {"id": "1", "at": "2024-03-01T01:00:00Z", "u": None, "o": None, "k": "pay"}
    more = [event(Random(number), number, "c") for number in range(4, 20)]
    land.put("c", "a.json", [row, {**row, "id": "2", "o": "o1"}, {**row, "id": None}])
    land.put("c", "b.json", [*more, more[0], row])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infold.spark.sessions.build._build", None)
        with pytest.raises(RunFailed):
            land.run()
    [bad] = land.shown()
    assert (bad["reason"], bad["file"], bad["file_id"]) == ("null key: id", "c/a.json", 1)
    assert set(land.counted().values()) == {0}

    total, shown = land.run(), land.check()
    assert total.set_aside == sum(rows for _, rows in total.set_aside_by) == len(shown)
    assert {(one["model"], one["reason"]) for one in shown} >= {
        ("a_users, b_paid, c_orders, d_named", "null user, null identifier"),
        ("a_users, b_paid, d_named", "null user"),
    }
    assert len(land.shown(limit=2)) == 2
    where = "reason = 'null user' and model = 'a_users, b_paid, d_named'"
    found = land.shown(where=where, limit=99, columns=["raw"])
    assert {"o1", "o2"} >= {json.loads(one["raw"])["o"] for one in found} >= {"o1"}
    land.put("c", "c.json", [{**row, "id": "20", "k": "see"}])
    assert (land.run().set_aside, len(land.check())) == (1, len(shown) + 1)

    land.drop("c", "a.json")
    land.drop("c", "b.json")
    land.model("d_named", SESSIONS % ("user: k, gap: 30 minutes", "c"))
    assert land.run().set_aside == 1  # the tables are built anew, and count all that there are
    [last] = land.shown()
    assert (json.loads(last["raw"])["id"], last["model"]) == ("20", "a_users, c_orders")
    assert land.counted() == {"a_users": 1, "b_paid": 0, "c_orders": 1, "d_named": 0}


def test_exactly_the_rows_left_out_are_listed(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """Exactly the rows left out are listed, by expressions
    and views, while files arrive, change and leave.
    """
    seed = Random().randrange(2**32)
    random, numbers = Random(seed), itertools.count()
    land = LeftOutProject(tmp_path / f"seed {seed}", warehouse, "e_seen", "f_both", "g_known")
    known: list[Row] = []
    for step in range(2):
        for source in "cwm":
            rows = [event(random, next(numbers), source) for _ in range(12)]
            if source == "c":
                rows += random.sample(known, min(4, len(known)))
                known += rows
            else:
                rows += rows[:3]
            land.put(source, f"{step}.json", rows)
            if step:
                land.put(source, "0.json", land.files[source, "0.json"][::2])
                land.drop(source, "gone.json")
            else:
                land.put(source, "gone.json", [event(random, next(numbers), source)] * 3)
        names = {"pay": random.choice([None, "eve"]), "see": random.choice([None, "mia"])}
        land.put("n", "n.json", [{"k": kind, "name": name} for kind, name in names.items()])
        land.run()
        assert land.check()
