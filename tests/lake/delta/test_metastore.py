"""
The names of Delta tables in a metastore that is made up.

What a real one does is in ``tests/servers/test_delta_in_hive.py``.
"""

from __future__ import annotations

import shutil

import pytest
from tests.lake.delta.made import SPACE, Named
from tests.lake.made_up_hive import MadeUpHive

from infold.core.swap import Renaming
from infold.lake.delta.metastore import FOLDER, location_of
from infold.lake.delta.tables import DeltaLake
from infold.messages.errors import InfoldError


def test_an_entry_has_the_form_of_sparks(
    named: Named, hive: MadeUpHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    An external table of Delta's with the path of its folder, which Hadoop does not escape. It has
    an owner also where the user has no name, as in a container.
    """

    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr("getpass.getuser", nobody)
    named.make("daily")

    assert named.lake.register() == []

    table = hive.tables[SPACE, "daily"]
    assert (table.tableType, table.owner) == ("EXTERNAL_TABLE", "infold")
    assert table.sd.location == table.sd.serdeInfo.parameters["path"] == named.at_folder("daily")
    assert "%20" not in table.sd.location
    assert [(one.name, one.type) for one in table.sd.cols] == [("col", "array<string>")]
    assert table.parameters == {
        "EXTERNAL": "TRUE",
        "spark.sql.sources.provider": "delta",
        "spark.sql.partitionProvider": "catalog",
        "spark.sql.sources.schema": '{"type":"struct","fields":[]}',
        FOLDER: named.at_folder("daily"),
    }


@pytest.mark.parametrize(
    ("folder", "location"),
    [
        ("/srv/w/shop/daily", "file:/srv/w/shop/daily"),
        ("s3://lake/w/shop/daily", "s3a://lake/w/shop/daily"),
        ("s3a://lake/w/shop/daily/", "s3a://lake/w/shop/daily"),
    ],
)
def test_a_folder_is_named_as_engines_find_it(folder: str, location: str) -> None:
    """With the scheme, as without one an engine looks where its own default is."""
    assert location_of(folder) == location


def test_they_follow_their_tables(named: Named, hive: MadeUpHive) -> None:
    """They come with a table and go with it; what is right is not written again."""
    named.make("Daily", "weekly")
    named.write("theirs", {"n": [1]}, None)  # a table that infold did not make
    (named.warehouse / "shop" / "no table").mkdir()

    named.lake.register()

    assert hive.databases == {SPACE}
    assert hive.paths(SPACE) == {
        "daily": named.at_folder("Daily"),
        "weekly": named.at_folder("weekly"),
    }
    hive.asked.clear()
    named.write("weekly", {"n": [2]}, "r2-1")
    assert named.lake.register() == []
    assert hive.asked == []
    named.lake.drop("Daily")
    named.lake.register()
    assert hive.asked == [f"drop {SPACE}.daily"]
    shutil.rmtree(named.warehouse)
    named.lake.register()
    assert hive.paths(SPACE) == {}


def test_a_rename_leaves_the_names_right(named: Named, hive: MadeUpHive) -> None:
    """
    A name leads to the folder of that name, which has another table in it then. Who makes something
    of the name between look and change keeps it, and it is told, unless it is right.
    """
    named.make("daily", "daily__b")
    lake = named.lake
    lake.register()
    moves = (("daily", "daily__a"), ("daily__b", "daily"))
    lake.rename([Renaming(name, to, lake.location(name) or "") for name, to in moves])
    assert hive.paths(SPACE)["daily"] == named.at_folder("daily")
    hive.before_change = lambda: hive.put(SPACE, "daily__a", "file:/theirs")
    assert lake.register() == ["daily__a"]
    assert hive.paths(SPACE)["daily__a"] == "file:/theirs"
    del hive.tables[SPACE, "daily__a"]
    hive.before_change = lambda: hive.put(SPACE, "daily__a", named.at_folder("daily__a"))

    assert lake.register() == []

    assert hive.paths(SPACE) == {name: named.at_folder(name) for name in ("daily", "daily__a")}
    assert named.numbers("daily") == [1]


def test_a_name_that_leads_elsewhere_is_corrected(named: Named, hive: MadeUpHive) -> None:
    """If infold had made it; what else is known of the entry stays."""
    named.make("daily", "weekly")
    named.lake.register()
    daily, weekly = hive.tables[SPACE, "daily"], hive.tables[SPACE, "weekly"]
    daily.sd.serdeInfo.parameters["path"] = "file:/elsewhere"
    daily.parameters["comment"] = "days of March"
    weekly.parameters["spark.sql.sources.provider"] = "parquet"
    assert named.lake.check_names(["daily", "weekly"]) == []
    hive.asked.clear()

    assert named.lake.register() == []

    assert hive.asked == [f"alter {SPACE}.daily", f"alter {SPACE}.weekly"]
    assert hive.paths(SPACE)["daily"] == named.at_folder("daily")
    assert hive.tables[SPACE, "daily"].parameters["comment"] == "days of March"
    assert "DO_NOT_UPDATE_STATS" not in hive.tables[SPACE, "daily"].parameters
    assert hive.tables[SPACE, "weekly"].parameters["spark.sql.sources.provider"] == "delta"
    assert named.lake.check_names(["daily", "weekly"]) == ["daily", "weekly"]


@pytest.mark.parametrize(
    ("path", "given", "shown"),
    [
        ("file:/theirs/daily", {}, "file:/theirs/daily"),
        ("file:/theirs/daily", {FOLDER: "file:/theirs/daily"}, "file:/theirs/daily"),
        ("", {}, "virtual_view"),
    ],
    ids=["by hand", "another target's", "a view"],
)
def test_a_name_of_somebody_else_is_an_error(
    named: Named, hive: MadeUpHive, path: str, given: dict[str, str], shown: str
) -> None:
    """Before anything is written it is raised; a look afterwards leaves the entry as it is."""
    hive.put(SPACE, "daily", path, **given)
    named.make("daily", "weekly")
    before = hive.tables[SPACE, "daily"]

    with pytest.raises(InfoldError, match="catalog-name-taken") as caught:
        named.lake.check_names(["Daily", "weekly", "never built"])

    assert f"daily ({shown})" in str(caught.value)
    assert hive.asked == []
    assert named.lake.register() == ["daily"]
    assert hive.tables[SPACE, "daily"] == before
    assert hive.paths(SPACE)["weekly"] == named.at_folder("weekly")
    named.lake.drop("daily")
    named.lake.register()
    assert hive.tables[SPACE, "daily"] == before


def test_what_somebody_registered_rightly_is_right(named: Named, hive: MadeUpHive) -> None:
    """
    It is taken as it is, with whatever spelling of the place; it is not infold's to drop. Nor is an
    entry of infold's that others renamed: the table gets its name again.
    """
    named.make("daily", "weekly")
    named.lake.register()
    hive.tables[SPACE, "sales"] = hive.tables.pop((SPACE, "weekly"))
    hive.tables[SPACE, "sales"].tableName = "sales"
    hive.put(SPACE, "daily", f"file://{named.folder('daily')}/")
    hive.put(SPACE, "alias", named.at_folder("daily"))
    hive.asked.clear()

    assert named.lake.check_names(["daily"]) == ["daily"]
    assert named.lake.register() == []
    named.lake.drop("daily")
    assert named.lake.register() == []
    assert hive.asked == [f"create {SPACE}.weekly"]
    assert {*hive.paths(SPACE)} == {"alias", "daily", "sales", "weekly"}


def test_one_that_cannot_be_reached(named: Named, hive: MadeUpHive) -> None:
    """Before the first write it is named; at the end it is said that no row was lost. A target that
    names none has its tables in folders, and that is all.
    """
    named.make("daily")
    hive.down = True

    for check in (named.lake.check_names, named.lake.check_views):
        with pytest.raises(InfoldError, match="catalog-unreachable"):
            check([])
    for tables in ([], ["daily"]):
        with pytest.raises(InfoldError, match="catalog-not-registered"):
            named.lake.refresh_views(tables)
    with pytest.raises(InfoldError, match="catalog-not-registered") as caught:
        named.lake.register()

    assert "catalog-unreachable: connection refused" in str(caught.value)
    assert caught.value.exit_code == 1
    assert named.numbers("daily") == [0]
    lake = DeltaLake(named.at, "shop")
    lake.check_views(None)
    found = lake.check_names(["daily"]), lake.register(), lake.refresh_views([])
    assert found == ((), (), ())
