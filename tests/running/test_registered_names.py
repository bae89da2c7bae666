"""The names of Delta tables in a metastore: which commands look at them, and when they follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.declare.shop import INFOLD, SHOP, write
from tests.lake.delta.made import Made
from tests.lake.made_up_hive import MadeUpHive, connected
from tests.running.commands import infold

from infold import api
from infold.api import building
from infold.api.doctor import examine
from infold.core.checkup import Check
from infold.core.ports import Lake
from infold.core.project import Project
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


@pytest.fixture
def whole(tmp_path: Path, hive: MadeUpHive) -> Project:
    """The declared shop, of which nothing was built."""
    return _project(tmp_path, hive, SHOP)


def _project(root: Path, hive: MadeUpHive, files: Mapping[str, str]) -> Project:
    assert not hive.tables
    write(root, {**files, "infold.yml": INFOLD.rstrip() + TARGET})
    (root / "models").mkdir(exist_ok=True)
    (root / "landing" / "clicks").mkdir(parents=True)
    (root / "countries.csv").write_text("code,country\n", encoding="utf-8")
    found = api.open_project(root, "lake")
    Made(found.warehouse).write("former", {"n": [1]}, "r0-1")
    return found


def test_the_folder_is_the_projects(shop: Project) -> None:
    """The namespace is that of the metastore: a target with tables can get one, or lose it."""
    assert (shop.namespace, shop.catalog_namespace) == ("shop", "Sales")
    assert api.lake(shop).metadata("former") is not None


def test_a_run_with_nothing_to_do_registers(shop: Project, hive: MadeUpHive) -> None:
    """What is missing is there then, and the run says nothing more than before."""
    code, printed = infold(shop, "run")

    assert (code, "Nothing to do" in printed) == (0, True), printed
    assert hive.paths("sales") == {"former": f"file:{shop.warehouse}/shop/former"}
    assert "registered" not in printed


def test_what_a_run_drops_last_has_no_name(
    shop: Project, hive: MadeUpHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As tables that were kept for a rollback until then."""
    api.lake(shop).register()

    def drop(_: object, lake: Lake, *__: object, **___: object) -> Iterator[str]:
        assert lake.drop("former")
        yield "former is over"

    monkeypatch.setattr(building, "drop_what_is_over", drop)

    code, printed = infold(shop, "run")

    assert (code, "former is over" in printed) == (0, True), printed
    assert hive.paths("sales") == {}


def test_commands_that_only_look_ask_nothing(shop: Project, hive: MadeUpHive) -> None:
    """They do not need the metastore."""
    hive.down = True
    for words in (("plan",), ("status",), ("history",)):
        code, printed = infold(shop, *words)
        assert code == 0, printed


@pytest.mark.parametrize(
    "words",
    [
        ("run",),
        ("run", "--env", "dev"),
        ("repair", "--yes"),
        ("teardown", "--yes"),
    ],
    ids=" ".join,
)
def test_one_that_cannot_be_reached_is_told_before_all(
    shop: Project, hive: MadeUpHive, words: tuple[str, ...]
) -> None:
    """Of every command that may change tables: nothing is changed."""
    hive.down = True

    code, printed = infold(shop, *words)

    assert (code, "catalog-unreachable" in printed) == (1, True), printed
    assert api.lake(shop).metadata("former") is not None


@pytest.mark.parametrize(
    "words",
    [("run",), ("repair", "--dry-run")],
    ids=" ".join,
)
def test_a_taken_name_is_told_before_all(
    whole: Project, hive: MadeUpHive, words: tuple[str, ...]
) -> None:
    """Also that of a model that was never built; other names are not registered either."""
    hive.put("sales", "daily", "file:/theirs")

    code, printed = infold(whole, *words)

    assert (code, "catalog-name-taken" in printed) == (2, True), printed
    assert "daily (file:/theirs)" in printed
    assert hive.paths("sales") == {"daily": "file:/theirs"}
    assert hive.asked == []


def test_a_name_that_is_taken_meanwhile_is_a_note(shop: Project, hive: MadeUpHive) -> None:
    """The run did its work; who has the name keeps it."""
    hive.before_change = lambda: hive.put("sales", "former", "file:/theirs")

    code, printed = infold(shop, "run")

    assert code == 0, printed
    assert "former is not registered: the metastore has something else under its name" in printed


def test_one_that_fails_at_the_end(shop: Project, hive: MadeUpHive) -> None:
    """The run says so; the table is as it was, and the next run gives it its name."""

    def fail() -> None:
        hive.down = True
        raise OSError("connection reset by peer")

    hive.before_change = fail

    code, printed = infold(shop, "run")

    assert (code, "catalog-not-registered" in printed) == (1, True), printed
    assert "catalog-answer-lost" in printed
    assert api.lake(shop).rows("former").num_rows == 1
    hive.down, hive.before_change = False, lambda: None
    assert infold(shop, "run")[0] == 0
    assert set(hive.paths("sales")) == {"former"}


def test_repair_makes_names_right(shop: Project, hive: MadeUpHive) -> None:
    """Those that are missing, those that lead elsewhere, and those of tables that it drops."""
    code, printed = infold(shop, "repair", "--dry-run")
    assert (code, hive.asked) == (0, []), printed
    assert "In the metastore, missing or not as the tables are: former" in printed
    code, printed = infold(shop, "repair", "--yes")
    assert (code, "Made right in the metastore: former." in printed) == (0, True), printed
    hive.tables["sales", "former"].sd.serdeInfo.parameters["path"] = "file:/elsewhere"
    assert infold(shop, "repair", "--yes")[0] == 0
    assert hive.paths("sales") == {"former": f"file:{shop.warehouse}/shop/former"}
    assert "there is nothing to repair" in infold(shop, "repair", "--yes")[1]

    code, printed = infold(shop, "repair", "--drop-orphans", "--yes")

    assert code == 0, printed  # though the namespace may be that of other projects, too
    assert hive.paths("sales") == {}
    assert api.lake(shop).metadata("former") is None


def test_a_teardown_takes_names_out(whole: Project, hive: MadeUpHive) -> None:
    """Of tables that are gone, and of none that it leaves, or that somebody else has."""
    Made(whole.warehouse).write("daily", {"n": [1]}, "r0-2")
    api.lake(whole).register()
    hive.put("sales", "weekly", "file:/theirs")
    assert set(hive.paths("sales")) == {"daily", "former", "weekly"}

    code, printed = infold(whole, "teardown", "--yes")

    assert code == 0, printed
    assert set(hive.paths("sales")) == {"former", "weekly"}


def test_a_forgotten_model_has_no_name(whole: Project, hive: MadeUpHive) -> None:
    """It is gone with the table, and the others stay."""
    Made(whole.warehouse).write("daily", {"n": [1]}, "r0-2")
    api.lake(whole).register()
    hive.put("sales", "sessions", "file:/theirs")
    code, printed = infold(whole, "forget", "daily", "--yes")
    assert (code, "catalog-name-taken" in printed) == (2, True), printed
    assert api.lake(whole).metadata("daily") is not None
    del hive.tables["sales", "sessions"]

    code, printed = infold(whole, "forget", "daily", "--yes")

    assert code == 0, printed
    assert set(hive.paths("sales")) == {"former"}


def _until_the_metastore(shop: Project) -> Iterator[Check]:
    for check in examine(shop.root, "lake"):
        yield check
        if check.name == "metastore":
            return


def test_doctor_says_whether_it_is_reached(whole: Project, hive: MadeUpHive) -> None:
    """With where it is, and how many of the models' tables it has; and by name why not."""
    *_, found = _until_the_metastore(whole)
    assert found.found == "thrift://hms:9083, namespace Sales: 0 tables registered"
    Made(whole.warehouse).write("daily", {"n": [1]}, "r0-2")
    api.lake(whole).register()
    *_, found = _until_the_metastore(whole)
    assert found.found.endswith(": 1 table registered")
    hive.put("sales", "sessions", "file:/theirs")
    *_, found = _until_the_metastore(whole)
    assert [error.slug for error in found.errors] == ["catalog-name-taken"]
    hive.down = True
    *_, found = _until_the_metastore(whole)
    assert [error.slug for error in found.errors] == ["catalog-unreachable"]


def test_thrift_that_is_not_installed_is_told(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to install, before anything is written."""
    monkeypatch.setitem(__import__("sys").modules, "hive_metastore.ttypes", None)

    with pytest.raises(InfoldError, match="catalog-driver-missing"):
        api.run(shop)
