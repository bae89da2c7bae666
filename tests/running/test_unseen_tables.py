"""A table that cannot be looked at is refused, with what reads it; all others are built."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import pytest
from tests.running.standing_tables import leased

from infold import api
from infold.core.project import Project
from infold.core.report import RunFailed, RunResult
from infold.core.stored_table import FORBIDDEN
from infold.lake.iceberg.sql_catalog import SqlCatalog
from infold.lake.iceberg.table_catalog import Key
from infold.messages import catalog_errors
from infold.messages.errors import InfoldError

OF_TABLES = ["sessions", "daily"]
"""The models that read no files, as there are none."""


def begin_steps(shop: Project, *models: str) -> None:
    """A run that died in a step of each of these models."""
    with leased(shop) as book:
        book.begin_run("r2", "run", 0, {})
        for number, name in enumerate(models, 1):
            book.begin_step("r2", f"r2-{number}", number, name, "build", {})


def open_steps(shop: Project) -> list[str]:
    """The models with a step that is open."""
    book = api.ledger(shop)
    found = [record.model for record in book.unfinished()]
    book.close()
    return found


def failed_run(shop: Project) -> RunResult:
    """What a run did that could not do all."""
    with pytest.raises(RunFailed) as caught:
        api.run(shop, select=OF_TABLES)
    return caught.value.result


@contextmanager
def forbidden(name: str) -> Iterator[None]:
    """A catalog that does not let anybody look at one table, as a server may."""
    find = SqlCatalog.find

    def refuse(catalog: SqlCatalog, tables: Collection[Key]) -> Mapping[Key, str]:
        if any(table == name for _, table in tables):
            raise catalog_errors.not_permitted(key="catalog", at="here", why="403 not you")
        return find(catalog, tables)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqlCatalog, "find", refuse)
        yield


class TestDeadSteps:
    """A run died in a step of a table with metadata that cannot be read now."""

    def test_its_model_is_refused_and_the_other_steps_are_recovered(self, shop: Project) -> None:
        """The step stays open until the file is there again."""
        begin_steps(shop, "sessions", "clicks")
        file = shop.warehouse / "shop" / "sessions" / "metadata" / "1.metadata.json"
        kept = file.read_bytes()
        file.unlink()

        done = failed_run(shop)

        assert [(one.model, one.error.slug) for one in done.failures] == [
            ("sessions", "metadata-missing")
        ]
        assert "clicks: a step that a dead run had begun is done again" in done.notes
        assert open_steps(shop) == ["sessions"]
        file.write_bytes(kept)
        assert "sessions: a step that a dead run had begun is done again" in (
            api.run(shop, select=OF_TABLES).notes
        )
        assert open_steps(shop) == []

    def test_it_can_be_forgotten(self, shop: Project) -> None:
        """Which the error says; then the next run is done with the step, too."""
        begin_steps(shop, "daily")
        (shop.warehouse / "shop" / "daily" / "metadata" / "1.metadata.json").unlink()

        assert api.forget(shop, ["daily"]).models == ("daily",)

        assert api.lake(shop).location("daily") is None
        assert [step.model for step in api.plan(shop, select=["daily"]).steps] == ["daily"]


class TestForbiddenTables:
    """The catalog lets nobody look at one table."""

    def test_its_model_is_refused(self, shop: Project) -> None:
        """Plan, status and run say so of it; with a step of a dead run, too."""
        begin_steps(shop, "sessions")
        with forbidden("sessions"):
            refused = {**api.plan(shop).refused}
            done = failed_run(shop)
            [stood] = [one for one in api.status(shop) if one.refused is not None]

        assert {name: error.slug for name, error in refused.items()} == {
            "sessions": "catalog-not-permitted"
        }
        assert [(one.model, one.error.slug) for one in done.failures] == [
            ("sessions", "catalog-not-permitted")
        ]
        assert stood.model == "sessions"
        assert open_steps(shop) == ["sessions"]

    def test_where_all_are_forbidden_nothing_is_known(self, shop: Project) -> None:
        """Then it is the whole catalog that nobody lets in."""
        lake = api.lake(shop)
        with forbidden("daily"):
            assert lake.moved_tables({"daily": "", "none": ""}) == {
                "daily": FORBIDDEN,
                "none": None,
            }
            with pytest.raises(InfoldError, match="catalog-not-permitted"):
                lake.moved_tables({"daily": ""})
