"""Columns that get other names: one commit of metadata for tables of every kind, exact after it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.spark.test_destructive import EVENTS, SUMS, VISITS, WHOLE
from tests.spark.time_range.daily_project import DAILY, ROLLING, DailyProject, model

from infold import api
from infold.core import write_points
from infold.core.model import table_name
from infold.core.plan import Action, PlanOptions
from infold.core.report import RunResult

pytestmark = pytest.mark.spark

Column = tuple[str, str]
LOOSE = (
    ("events", "day"),
    ("visits", "most"),
    ("sums", "amount"),
    ("whole", "most"),
    ("daily", "amount"),
)
"""Of each model a column that no other one reads, by its first name."""
READ = (("events", "amount"), ("daily", "n"))
"""Columns that others read: sessions and a cumulative aggregate, and a window over days."""


class Death(BaseException):
    """The end of a run that nothing may catch; the Java process stays for the next one."""


class Renaming(DailyProject):
    """Models of every kind, with columns whose names are drawn again and again."""

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(root)
        self.draw = random.Random(seed)
        self.names = {column: column[1] for column in (*LOOSE, *READ)}
        self.earlier: dict[Column, str] = {}

    def rename(self, *columns: Column) -> None:
        """Give some columns new names, and write the models with them."""
        self.earlier = {column: self.names[column] for column in columns}
        for column in columns:
            self.names[column] = f"c{self.draw.randrange(10**6)}"
        self.declare()

    def declare(self) -> None:
        """Write the models with the names that their columns have now."""
        of = self.names
        paid, n = of["events", "amount"], of["daily", "n"]
        read = f"amount AS {paid}, day AS {of['events', 'day']} FROM"
        daily = DAILY.replace("AS amount", f"AS {of['daily', 'amount']}").replace("AS n", f"AS {n}")
        files = {
            "events": EVENTS.replace("amount FROM", read),
            "visits": VISITS.replace(
                "max(amount) AS most", f"max({paid}) AS {of['visits', 'most']}"
            ),
            "sums": SUMS.replace("sum(amount) AS amount", f"sum({paid}) AS {of['sums', 'amount']}"),
            "whole": WHOLE.replace("AS most", f"AS {of['whole', 'most']}"),
            "daily": model(daily),
            "rolling": model(ROLLING.replace("n, sum(n)", f"{n} AS n, sum({n})")),
        }
        for name in {name for name, _ in self.earlier}:
            pairs = [f"{of[c]}: {was}" for c, was in self.earlier.items() if c[0] == name]
            front = f"---\nrenamed_from: {{{', '.join(pairs)}}}\n"
            files[name] = files[name].replace("---\n", front, 1)
        self.models(**files)

    def files_of(self, name: str) -> set[str]:
        """The files of rows that a table has now."""
        rows = api.session(self.project()).sql(
            f"SELECT file_path FROM infold.shop.{table_name(name)}.files"
        )
        return {row[0] for row in rows.collect()}


def actions(result: RunResult) -> dict[str, set[Action]]:
    """What a run did to each model."""
    found: dict[str, set[Action]] = {}
    for step, _ in result.steps:
        found.setdefault(step.model, set()).add(step.action)
    return found


def test_drawn_names_of_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Columns of all kinds of tables are renamed at once: no file of theirs changes and no reader is
    built, not even one that names such a column. With late and removed files before, between and
    after, all tables equal a rebuild.

    The step of a run that dies after the commit is finished by the next one.
    """
    shop = Renaming(tmp_path / "shop", 17)
    shop.declare()
    shop.land("2024-03-01T10:00:00", "2024-03-02T10:00:00", "2024-03-02T10:10:00")
    gone = shop.land("2024-03-01T10:20:00", "2024-03-04T10:00:00", who="bob")
    api.run(shop.project())
    every = {name for name, _ in LOOSE}
    before = {name: shop.files_of(name) for name in every}

    shop.rename(*LOOSE)
    done = api.run(shop.project())
    assert actions(done) == {name: {Action.EVOLVE} for name in every}
    assert {name: shop.files_of(name) for name in every} == before
    assert sum(receipt.read + receipt.written for _, receipt in done.steps) == 0
    assert done.notes == ()
    tables = api.lake(shop.project())
    assert all(shop.names[column] in tables.columns(column[0]) for column in LOOSE)

    shop.rename(*READ)
    assert actions(api.run(shop.project())) == {
        "events": {Action.EVOLVE},
        "daily": {Action.EVOLVE},
    }

    shop.land("2024-03-02T10:15:00", who="bob")
    (shop.root / "landing" / gone).unlink()
    some = PlanOptions(selected=frozenset({"raw.clicks", "events"}))
    assert Action.EVOLVE not in set().union(*actions(api.run(shop.project(), asked=some)).values())
    shop.rename(*READ, ("visits", "most"))
    shop.land("2024-03-02T10:20:00", "2024-03-05T10:00:00", who="bob")
    done = api.run(shop.project())
    assert Action.EVOLVE in actions(done)["events"] & actions(done)["visits"]
    assert actions(done)["daily"] == {Action.EVOLVE, Action.RECOMPUTE}

    def die(name: str) -> None:
        if name == "table visits: after commit":
            raise Death

    shop.rename(("visits", "most"))
    with monkeypatch.context() as dying:
        dying.setattr(write_points, "point", die)
        with pytest.raises(Death):
            api.run(shop.project())
    assert shop.names["visits", "most"] in api.lake(shop.project()).columns("visits")
    assert api.run(shop.project()).steps == ()
    shop.land("2024-03-01T10:05:00")
    shop.run()
