"""What is applied, and cannot be found any more: a model's file, and the text of a definition."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.running.commands import infold
from tests.running.production import applied, shop_in_production
from tests.running.promoted import QUERY, at, with_environment

from infold import api
from infold.core.project import Project


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """The shop in production; the first run has recorded what is applied."""
    return shop_in_production(tmp_path / "shop")


def test_a_lost_file_takes_nothing_along(shop: Project) -> None:
    """Without its file a model is built, shown and explained by what is applied; an apply of the
    rest is refused as it would lose the table, and an environment does without the model.
    """
    before = (applied(shop), at(shop, ("daily",)))
    (shop.root / "models" / "daily.sql").unlink()

    for words in (("run",), ("status",), ("explain", "daily"), ("history", "daily")):
        code, printed = infold(shop, *words)
        assert code == 0, printed
    code, printed = infold(shop, "apply", "--yes")
    assert (code, "destructive-change" in printed) == (3, True), printed
    code, printed = infold(shop, "plan", "--env", "dev")
    assert code == 0, printed

    assert (applied(shop), at(shop, ("daily",))) == before


def test_a_lost_text_stops_what_goes_by_it(shop: Project) -> None:
    """Where the ledger lacks an applied definition, runs, promotes and the way back are refused
    with its name, and write nothing; a plan shows what an `apply` of the files would do.
    """
    with_environment(shop, QUERY)
    digest = applied(shop)["daily"]
    with closing(sqlite3.connect(shop.root / "prod.db")) as book, book:
        book.execute("DELETE FROM definitions WHERE digest = ?", (digest,))
    before = (applied(shop), at(shop, ("daily",)))

    for words in (("run",), ("promote", "dev", "--yes"), ("rollback", "--yes")):
        code, printed = infold(shop, *words)
        assert (code, printed.split(":")[0]) == (3, "applied-unknown"), printed
        assert "daily" in printed
        assert "the ledger does not have them" in printed

    assert "`infold apply` carries this out" in infold(shop, "plan")[1]
    assert (applied(shop), at(shop, ("daily",))) == before
    assert api.ledger(shop).swaps() == ()
