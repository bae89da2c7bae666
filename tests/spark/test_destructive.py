"""Changes of definitions in production: refused by what Spark and the stored tables know."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.spark.project import built
from tests.spark.time_range.daily_project import DAILY, ROLLING, Production, model

from infold import api
from infold.core.model import Kind, table_name
from infold.messages.errors import ExitCode, InfoldError

pytestmark = pytest.mark.spark


EVENTS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: ts}
---
SELECT id, who, ts, amount FROM raw.clicks"""
VISITS = """---
materialization: sessions
sessions: {user: who, gap: 30 minutes}
---
SELECT count(*) AS n, max(amount) AS most FROM events"""
SUMS = """---
materialization: cumulative_aggregate
---
SELECT who, sum(amount) AS amount FROM events GROUP BY who"""
WHOLE = "---\nmaterialization: table\n---\nSELECT max(n) AS most FROM visits"
VERSIONS = """---
materialization: scd_type_2
unique_key: [who]
scd_type_2: {updated_at: ts}
---
SELECT who, ts, id FROM events"""
NO_AMOUNT = DAILY.replace(", sum(amount) AS amount", "")


class Guarded(Production):
    """Production with a table of every kind."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.models(daily=model(DAILY), rolling=model(ROLLING))
        self.land("2024-03-01T10:00:00", "2024-03-02T10:00:00")
        self.models(events=EVENTS, visits=VISITS, sums=SUMS, whole=WHOLE, versions=VERSIONS)

    def state(self) -> Mapping[str, object]:
        """What is applied, every table's version and where its metadata is."""
        book, tables = api.ledger_of(self.project()), api.lake_of(self.project())
        heads = book.newest_versions()
        found = {name: tables.metadata(table_name(name)) for name in heads}
        return {
            "applied": {name: one.digest for name, one in book.applied().items()},
            "versions": {name: head.number for name, head in heads.items()},
            "locations": {name: one.location for name, one in found.items() if one is not None},
        }

    def allow(self, *models: str) -> list[str]:
        """`infold apply` with ``--allow-destructive``; the models that it built."""
        return built(self.apply(allow_destructive=frozenset(models)))

    def refused(self, *allowed: str) -> str:
        """The facts of a refusal, which leaves everything as it was."""
        before = self.state()
        with pytest.raises(InfoldError, match="destructive-change") as raised:
            self.allow(*allowed)
        assert raised.value.exit_code == ExitCode.REFUSED
        assert self.state() == before
        return "; ".join(f"{name}: {text}" for name, text in raised.value.facts[1:])


def test_a_destructive_change_is_refused_before_anything_is_written_and_production_stays_whole(
    tmp_path: Path,
) -> None:
    """A dropped column, a type that only Spark knows, one that follows in a reader, and a column
    that somebody added by hand: each is refused for all models, and what is allowed is carried out.
    """
    shop = Guarded(tmp_path / "shop")
    shop.allow()
    project = shop.project()
    stored = {node.name: api.lake_of(project).columns(table_name(node.name)) for node in project}
    assert {kind for kind in Kind if kind is not Kind.VIEW} == {n.model.kind for n in project}
    assert {name: {*columns} for name, columns in stored.items()} == {
        node.name: {*node.columns} for node in project
    }

    shop.models(daily=model(NO_AMOUNT), sums=SUMS.replace("sum(amount)", "sum(amount) + 1"))
    assert shop.refused() == "daily: column amount is dropped (models/daily.sql:6)"

    shop.models(daily=model(DAILY.replace("sum(amount)", "sum(cast(amount AS double))")))
    lost = "daily: type of amount: decimal(28,2) → double (models/daily.sql:6)"
    assert shop.refused() == lost
    assert shop.refused("raw.clicks", "sums") == lost

    shop.models(daily=model(DAILY), sums=SUMS)
    shop.configure("decimal(18,2)", "decimal(12,2)")
    narrower = "type of amount: decimal(18,2) → decimal(12,2) (infold.yml:5)"
    assert shop.refused() == f"raw.clicks: {narrower}; events: {narrower}"
    follows = shop.refused("raw.clicks", "events")
    assert "daily: type of amount: decimal(28,2) → decimal(22,2)" in follows
    assert "visits: type of most: decimal(18,2) → decimal(12,2)" in follows
    shop.configure("decimal(12,2)", "decimal(18,2)")

    table = "infold.shop.daily"
    api.session(project).sql(f"ALTER TABLE {table} ADD COLUMN note string")
    shop.models(daily=model(DAILY.replace("count(*)", "count(*) + 100")))
    assert shop.refused() == "daily: column note is dropped (models/daily.sql:6)"

    shop.models(daily=model(NO_AMOUNT))
    assert shop.allow("daily") == ["daily"]
    assert {*api.lake_of(project).columns("daily")} == {"day", "n"}
    assert shop.rows("daily", "n") == [(1,), (1,)]


def test_what_spark_refuses_is_not_applied(tmp_path: Path) -> None:
    """A definition that Spark does not accept is refused before it is applied, and so is another
    one that was to be applied with it; runs go on as before.
    """
    shop = Production(tmp_path / "shop")
    shop.models(daily=model(DAILY), rolling=model(ROLLING))
    shop.land("2024-03-01T10:00:00", "2024-03-02T10:00:00")
    assert built(shop.apply()) == ["raw.clicks", "daily", "rolling"]
    before = api.ledger_of(shop.project()).applied()
    wrong = DAILY.replace("count(*) AS n", "length(ts, ts) AS n, count(*) AS m")
    shop.models(daily=model(wrong), rolling=model(ROLLING.replace("6 DAYS", "2 DAYS")))

    with pytest.raises(InfoldError) as caught:
        shop.apply()

    assert (caught.value.slug, caught.value.exit_code) == ("refused-by-spark", 2)
    assert "daily" in str(caught.value)
    assert api.ledger_of(shop.project()).applied() == before
    shop.land("2024-03-01T11:00:00")
    done = shop.go()
    assert (built(done), done.unapplied) == (
        ["raw.clicks", "daily", "rolling"],
        ("daily", "rolling"),
    )
    assert [row[1] for row in shop.rows("daily")] == [2, 1]
