"""Names of Delta tables, and of views of them for readers, in a metastore."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.lake.delta.made import SPACE, Named
from tests.lake.made_up_hive import MadeUpHive

from infold.core import write_points
from infold.core.swap import Renaming
from infold.lake.delta.metastore import FOLDER, location_of
from infold.lake.delta.reader_views import VIEW_OF
from infold.lake.delta.tables import DeltaLake
from infold.messages.errors import InfoldError

VIEWS = f"{SPACE}_views"


def shown(named: Named, *tables: str, only_new: bool = False) -> Sequence[str]:
    """What a command does at its end: names, then views; the views whose names are taken."""
    named.lake.register()
    return named.lake.refresh_views(tables, only_new=only_new)


def queries(hive: MadeUpHive) -> dict[str, str]:
    """What the views of a metastore say, by name."""
    return {
        name: one.viewExpandedText
        for (space, name), one in sorted(hive.tables.items())
        if space == VIEWS and one.tableType == "VIRTUAL_VIEW"
    }


def put(hive: MadeUpHive, name: str) -> Any:
    """Somebody makes a view of a name among infold's."""
    hive.put(VIEWS, name)
    return hive.tables[VIEWS, name]


def test_technical_columns_are_left_out(named: Named, hive: MadeUpHive) -> None:
    """Also that of the partition; columns of users may begin in the same way."""
    own = ("_version", "_state", "_state_1", "_partition", "_source_file", "_key")
    named.write("sessions", {"user_id": ["ann"], **{name: [1] for name in own}}, "r1-1")
    named.write("daily", {"a`b": [1], "_stated": [1]}, "r1-2")

    assert shown(named, "sessions", "daily", "never built") == []

    assert queries(hive) == {
        "sessions": f"SELECT `user_id` FROM `{SPACE}`.`sessions`",
        "daily": f"SELECT `a``b`, `_stated` FROM `{SPACE}`.`daily`",
    }


def test_a_view_has_the_form_of_sparks(named: Named, hive: MadeUpHive) -> None:
    """Query, columns and schema; types have other names in Hive."""
    at = datetime(2024, 3, 9, tzinfo=UTC)
    rows = {
        "n": pa.array([1], pa.int64()),
        "day": [date(2024, 3, 9)],
        "sum": [Decimal("1.50")],
        "at": pa.array([at], pa.timestamp("us", "UTC")),
        "of": pa.array([[{"Name": "x", "n": 1}]], pa.list_(pa.struct({"Name": "str", "n": "i4"}))),
        "by": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int16())),
    }
    named.write("daily", pa.table(rows), "r1-1")

    shown(named, "daily")

    view = hive.tables[VIEWS, "daily"]
    said = dict(view.parameters)
    assert view.viewOriginalText == view.viewExpandedText
    assert {one.name: one.type for one in view.sd.cols} == {
        "n": "bigint",
        "day": "date",
        "sum": "decimal(3,2)",
        "at": "timestamp",
        "of": "array<struct<Name:string,n:int>>",
        "by": "map<string,smallint>",
    }
    schema = json.loads(said.pop("spark.sql.sources.schema"))
    log = named.lake.log("daily")
    assert log is not None
    assert schema["fields"] == [{**one, "metadata": {}} for one in log.schema().fields]
    assert said.pop("view.query.out.numCols") == str(len(rows))
    assert [said.pop(f"view.query.out.col.{at}") for at in range(len(rows))] == [*rows]
    assert said.pop("comment")
    assert said == {
        "spark.sql.create.version": "4.1.0",
        "view.catalogAndNamespace.numParts": "2",
        "view.catalogAndNamespace.part.0": "spark_catalog",
        "view.catalogAndNamespace.part.1": SPACE,
        "view.referredTempFunctionsNames": "[]",
        "view.referredTempVariablesNames": "[]",
        "view.referredTempViewNames": "[]",
        "view.schemaMode": "COMPENSATION",
        VIEW_OF: named.at_folder("daily"),
    }


def test_what_a_metastore_refuses(named: Named, hive: MadeUpHive) -> None:
    """
    No type of Hive's, and one that is too long: the entry has a placeholder for columns then, as
    Spark's has. A value has 4000 characters at most; of a column less, the parts are fewer.
    """
    local = pa.array([datetime(2024, 3, 9)], pa.timestamp("us"))  # noqa: DTZ001 - it has no zone
    fields = pa.array([{f"a_long_name_of_a_field_{at}": 1 for at in range(200)}])
    for name, column in (("daily", local), ("weekly", fields)):
        named.write(name, pa.table({"n": [1], "other": column}), f"r1-{name}")
        shown(named, name)
        view = hive.tables[VIEWS, name]
        assert [(one.name, one.type) for one in view.sd.cols] == [("col", "array<string>")]
        assert "`other`" in view.viewExpandedText

    def parts() -> list[str]:
        found = hive.tables[VIEWS, "wide"].parameters
        assert "spark.sql.sources.schema" not in found
        count = int(found["spark.sql.sources.schema.numParts"])
        assert f"spark.sql.sources.schema.part.{count}" not in found
        return [found[f"spark.sql.sources.schema.part.{at}"] for at in range(count)]

    seen = []
    for columns in (100, 60):
        rows = {f"a_long_name_of_a_column_{at}": [1] for at in range(columns)}
        named.write("wide", rows, f"r2-{columns}", mode="overwrite", schema_mode="overwrite")
        shown(named, "wide")
        assert max(map(len, parts())) == 4000
        assert [one["name"] for one in json.loads("".join(parts()))["fields"]] == [*rows]
        seen.append(len(parts()))
    assert seen[1] < seen[0]


def test_they_follow_their_tables(named: Named, hive: MadeUpHive) -> None:
    """They come with a table and go with it; what is right is not written again."""
    named.make("Daily", "weekly", "other")
    tables = ("Daily", "weekly")
    assert shown(named, *tables) == []
    assert {*queries(hive)} == {"daily", "weekly"}
    hive.asked.clear()

    named.write("weekly", {"n": [2]}, "r2-1")
    shown(named, *tables)
    assert hive.asked == []
    named.write("weekly", {"n": [2], "m": [2]}, "r2-2", schema_mode="merge")
    shown(named, *tables, only_new=True)
    assert hive.asked == []
    shown(named, *tables)
    assert hive.asked == [f"alter {VIEWS}.weekly"]
    assert queries(hive)["weekly"] == f"SELECT `n`, `m` FROM `{SPACE}`.`weekly`"
    named.lake.drop("Daily")
    shown(named, *tables)
    assert {*queries(hive)} == {"weekly"}
    shown(named)
    assert queries(hive) == {}
    assert {*hive.paths(SPACE)} == {"weekly", "other"}


@pytest.mark.parametrize("only_new", [False, True])
def test_a_table_that_nobody_can_read(named: Named, hive: MadeUpHive, only_new: bool) -> None:
    """Its view stays as it was, and those of others are made, also by a mere look. Views go with
    the warehouse.
    """
    named.make("daily")
    shown(named, "daily")
    named.make("weekly")
    log = named.lake.log("daily")
    assert log is not None
    Path(log.file(log.newest)).write_text("damaged", encoding="utf-8")

    assert shown(named, "daily", "weekly", only_new=only_new) == []

    assert {*queries(hive)} == {"daily", "weekly"}
    shutil.rmtree(named.warehouse)
    shown(named, "daily")
    assert queries(hive) == {}


def test_what_somebody_did_to_a_view_is_undone(named: Named, hive: MadeUpHive) -> None:
    """It is infold's as long as it says so: its query, or what it says of its columns. One that
    others renamed is theirs, and the table gets a view again.
    """
    named.make("daily")
    shown(named, "daily")
    right = hive.get_table(VIEWS, "daily")
    view = hive.tables[VIEWS, "daily"]
    view.parameters |= {"view.query.out.col.0": "m", "view.sqlConfig.x": "y", "owned by": "me"}
    shown(named, "daily")
    now = hive.tables[VIEWS, "daily"]
    assert now.parameters == {**right.parameters, "owned by": "me"}
    now.viewExpandedText = "SELECT 1 AS n"
    shown(named, "daily")
    assert queries(hive) == {"daily": right.viewExpandedText}

    renamed = hive.tables.pop((VIEWS, "daily"))
    renamed.tableName = "days"
    hive.tables[VIEWS, "days"] = renamed
    shown(named, "daily")
    assert {*queries(hive)} == {"daily", "days"}


def test_what_others_made_stays(named: Named, hive: MadeUpHive) -> None:
    """A name that they have is refused before anything is written, and told later."""
    named.make("daily", "weekly")
    theirs, other = put(hive, "daily"), put(hive, "mine")

    with pytest.raises(InfoldError, match="catalog-name-taken") as caught:
        named.lake.check_views(["Daily", "weekly"])
    assert f"namespace:  {VIEWS}" in str(caught.value)
    assert "daily (virtual_view)" in str(caught.value)
    named.lake.check_views(["weekly"])
    named.lake.check_views(None)
    assert hive.asked == []
    assert shown(named, "daily", "weekly") == ["daily"]
    assert shown(named, "daily", "weekly", only_new=True) == ["daily"]
    shown(named)

    assert hive.tables[VIEWS, "daily"] == theirs
    assert hive.tables[VIEWS, "mine"] == other
    assert {*queries(hive)} == {"daily", "mine"}


def test_two_projects_share_a_namespace(named: Named, hive: MadeUpHive, tmp_path: Path) -> None:
    """Each has its own views there, and takes away none of the other's. Where somebody else has the
    name that a view would read, there is none.
    """
    other = Named(tmp_path / "other")
    named.make("daily", "monthly")
    hive.put(SPACE, "monthly", "file:/theirs/monthly")
    other.make("weekly")
    assert shown(named, "daily", "monthly") == []
    shown(other, "weekly")

    shown(other)

    assert {*queries(hive)} == {"daily"}
    with pytest.raises(InfoldError, match="catalog-name-taken"):
        other.lake.check_views(["daily"])


def test_one_that_others_changed_meanwhile(
    named: Named, hive: MadeUpHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Theirs by now, it stays and is told; gone by now, it is made again, unless that is theirs."""
    tables = ("daily", "weekly", "gone")
    named.make(*tables, "new")
    shown(named, *tables)
    for name in ("daily", "weekly"):
        named.write(name, {"n": [2], "m": [2]}, f"r2-{name}", schema_mode="merge")
    named.lake.register()
    hive.asked.clear()

    def meanwhile(point: str) -> None:
        if point == "view daily: before":
            del hive.tables[VIEWS, "weekly"]
            for name in ("daily", "gone"):
                put(hive, name)

    monkeypatch.setattr(write_points, "point", meanwhile)
    assert named.lake.refresh_views(["daily", "weekly"]) == ["daily"]

    weekly = f"SELECT `n`, `m` FROM `{SPACE}`.`weekly`"
    assert queries(hive) == {"daily": None, "gone": None, "weekly": weekly}
    assert hive.asked == [f"create {VIEWS}.weekly"]
    hive.before_change = lambda: hive.put(VIEWS, "new")
    assert named.lake.refresh_views(["weekly", "new"]) == ["new"]
    assert VIEW_OF not in hive.tables[VIEWS, "new"].parameters


def test_no_project_has_tables_among_the_views_of_another(
    named: Named, hive: MadeUpHive, tmp_path: Path
) -> None:
    """Whichever came first stays; who comes second is refused before anything is written."""
    other = replace(named, at=tmp_path / "other", space=VIEWS)
    named.make("daily")
    other.make("orders")
    for tables in (None, ["daily"]):
        named.lake.check_views(tables)
        other.lake.check_views(tables)
    shown(named, "daily")

    named.lake.check_views(["daily"])
    with pytest.raises(InfoldError, match="the views daily"):
        other.lake.check_views(None)

    shown(named)
    hive.put(VIEWS, "theirs", "file:/theirs")
    named.lake.check_views(["daily"])
    other.lake.register()
    assert FOLDER in hive.tables[VIEWS, "orders"].parameters
    named.lake.check_views(None)
    with pytest.raises(InfoldError, match="the tables orders"):
        named.lake.check_views(["daily"])


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


def test_a_folder_is_named_as_engines_find_it() -> None:
    """With the scheme, as without one an engine looks where its own default is."""
    assert location_of("/srv/w/shop/daily") == "file:/srv/w/shop/daily"
    for folder in ("s3://lake/w/shop/daily", "s3a://lake/w/shop/daily/"):
        assert location_of(folder) == "s3a://lake/w/shop/daily"


def test_names_follow_their_tables(named: Named, hive: MadeUpHive) -> None:
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
