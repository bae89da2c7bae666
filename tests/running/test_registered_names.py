"""The names of Delta tables in a metastore: which commands look at them, and when they follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.declare.shop import INFOLD, SHOP, write
from tests.lake.delta.made import Made
from tests.lake.made_up_hive import MadeUpHive, connected
from tests.running.commands import said

from infold import api
from infold.api import building
from infold.api.doctor import examine
from infold.core.ports import Lake
from infold.core.project import Project
from infold.core.report import Check
from infold.messages.errors import InfoldError

TARGET = """
  lake:
    warehouse: lake
    storage: delta
    ledger: 'sqlite:///l.db'
    catalog: {type: hive, uri: 'thrift://hms:9083', namespace: Sales}
"""


@pytest.fixture
def hive(monkeypatch: pytest.MonkeyPatch) -> MadeUpHive:
    """A metastore without tables."""
    return connected(monkeypatch)


@pytest.fixture
def shop(tmp_path: Path, hive: MadeUpHive) -> Project:
    """A project without models, so that a run has nothing to do, with a table of before."""
    return _project(tmp_path, hive, {})


def _project(root: Path, hive: MadeUpHive, files: Mapping[str, str]) -> Project:
    assert not hive.tables
    write(root, {**files, "infold.yml": INFOLD.rstrip() + TARGET})
    (root / "models").mkdir(exist_ok=True)
    (root / "landing" / "clicks").mkdir(parents=True)
    (root / "countries.csv").write_text("code,country\n", encoding="utf-8")
    found = api.open_project(root, "lake")
    Made(found.warehouse).write("former", {"n": [1]}, "r0-1")
    return found


@pytest.fixture
def whole(tmp_path: Path, hive: MadeUpHive) -> Project:
    """The declared shop, of which nothing was built."""
    return _project(tmp_path, hive, SHOP)


def register_daily(shop: Project) -> None:
    """The table of one model is built, and has its name."""
    Made(shop.warehouse).write("daily", {"n": [1]}, "r0-2")
    api.lake_of(shop).register()


def test_a_run_with_nothing_to_do_registers(shop: Project, hive: MadeUpHive) -> None:
    """In the metastore's namespace, without a word; who only looks does not need it."""
    assert (shop.namespace, shop.catalog_namespace) == ("shop", "Sales")
    assert api.lake_of(shop).metadata("former") is not None
    printed = said(shop, "run")

    assert "Nothing to do" in printed
    assert "registered" not in printed
    assert hive.paths("sales") == {"former": f"file:{shop.warehouse}/shop/former"}
    hive.down = True
    for command in ("plan", "status", "history"):
        said(shop, command)


def test_what_a_run_drops_last_has_no_name(
    shop: Project, hive: MadeUpHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As tables that were kept for a rollback until then. A name that is taken meanwhile is a note:
    the run did its work, and who has the name keeps it.
    """
    hive.before_change = lambda: hive.put("sales", "former", "file:/theirs")
    taken = "former is not registered: the metastore has something else under its name"
    assert taken in said(shop, "run")
    hive.tables.clear()
    hive.before_change = lambda: None
    api.lake_of(shop).register()

    def drop(_: object, lake: Lake, *__: object, **___: object) -> Iterator[str]:
        assert lake.drop("former")
        yield "former is over"

    monkeypatch.setattr(building, "drop_what_is_over", drop)

    assert "former is over" in said(shop, "run")
    assert hive.paths("sales") == {}


@pytest.mark.parametrize("words", ["run", "run --env dev", "repair --yes", "teardown --yes"])
def test_one_that_cannot_be_reached_is_told_before_all(
    shop: Project, hive: MadeUpHive, words: str
) -> None:
    """Of every command that may change tables: nothing is changed."""
    hive.down = True

    assert "catalog-unreachable" in said(shop, *words.split(), code=1)
    assert api.lake_of(shop).metadata("former") is not None


@pytest.mark.parametrize("words", ["run", "repair --dry-run"])
def test_a_taken_name_is_told_before_all(whole: Project, hive: MadeUpHive, words: str) -> None:
    """Also that of a model that was never built; other names are not registered either."""
    hive.put("sales", "daily", "file:/theirs")

    printed = said(whole, *words.split(), code=2)

    assert "catalog-name-taken" in printed
    assert "daily (file:/theirs)" in printed
    assert hive.paths("sales") == {"daily": "file:/theirs"}
    assert hive.asked == []


def test_one_that_fails_at_the_end(shop: Project, hive: MadeUpHive) -> None:
    """The run says so; the table is as it was, and the next run gives it its name."""

    def fail() -> None:
        hive.down = True
        raise OSError("connection reset by peer")

    hive.before_change = fail

    printed = said(shop, "run", code=1)

    assert "catalog-not-registered" in printed
    assert "catalog-answer-lost" in printed
    assert api.lake_of(shop).rows("former").num_rows == 1
    hive.down, hive.before_change = False, lambda: None
    said(shop, "run")
    assert set(hive.paths("sales")) == {"former"}


def test_repair_makes_names_right(shop: Project, hive: MadeUpHive) -> None:
    """Those that are missing, those that lead elsewhere, and those of tables that it drops."""
    missing = "In the metastore, missing or not as the tables are: former"
    assert missing in said(shop, "repair", "--dry-run")
    assert hive.asked == []
    assert "Made right in the metastore: former." in said(shop, "repair", "--yes")
    hive.tables["sales", "former"].sd.serdeInfo.parameters["path"] = "file:/elsewhere"
    said(shop, "repair", "--yes")
    assert hive.paths("sales") == {"former": f"file:{shop.warehouse}/shop/former"}
    assert "there is nothing to repair" in said(shop, "repair", "--yes")

    said(shop, "repair", "--drop-orphans", "--yes")

    assert hive.paths("sales") == {}  # though the namespace may be that of other projects, too
    assert api.lake_of(shop).metadata("former") is None


def test_a_forgotten_model_has_no_name(whole: Project, hive: MadeUpHive) -> None:
    """It is gone with the table, and the others stay. A teardown takes out the names of tables that
    are gone, and of none that it leaves, or that somebody else has.
    """
    register_daily(whole)
    hive.put("sales", "sessions", "file:/theirs")
    assert "catalog-name-taken" in said(whole, "forget", "daily", "--yes", code=2)
    assert api.lake_of(whole).metadata("daily") is not None
    del hive.tables["sales", "sessions"]
    said(whole, "forget", "daily", "--yes")
    assert set(hive.paths("sales")) == {"former"}

    register_daily(whole)
    hive.put("sales", "weekly", "file:/theirs")
    assert set(hive.paths("sales")) == {"daily", "former", "weekly"}
    said(whole, "teardown", "--yes")
    assert set(hive.paths("sales")) == {"former", "weekly"}


def test_doctor_says_whether_it_is_reached(whole: Project, hive: MadeUpHive) -> None:
    """With where it is, and how many of the models' tables it has; and by name why not."""

    def found() -> Check:
        return next(one for one in examine(whole.root, "lake") if one.name == "metastore")

    assert found().found == "thrift://hms:9083, namespace Sales: 0 tables registered"
    register_daily(whole)
    assert found().found.endswith(": 1 table registered")
    hive.put("sales", "sessions", "file:/theirs")
    assert [error.slug for error in found().errors] == ["catalog-name-taken"]
    hive.down = True
    assert [error.slug for error in found().errors] == ["catalog-unreachable"]


def test_thrift_that_is_not_installed_is_told(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to install, before anything is written."""
    monkeypatch.setitem(__import__("sys").modules, "hive_metastore.ttypes", None)

    with pytest.raises(InfoldError, match="catalog-driver-missing"):
        api.run(shop)
