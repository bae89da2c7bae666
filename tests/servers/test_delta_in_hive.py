"""Tables of Delta Lake with names in a real Hive metastore, which another Spark reads by them."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.crash.scenario import SHAPE, kill
from tests.docs.pages import DOCS, code
from tests.lake.delta.orders import shop_over_delta
from tests.servers.hive_metastore import HiveMetastore
from tests.servers.moved import MovedScenario, retarget
from tests.servers.ports import free_port

from infold import api
from infold.api.doctor import examine
from infold.cli import cli
from infold.core.catalogs import Catalog, CatalogType
from infold.core.storages import Storage
from infold.lake.delta.metastore import FOLDER
from infold.lake.delta.reader_views import SparkView, said_by
from infold.lake.hive_client import HiveClient
from infold.messages.errors import InfoldError
from infold.spark.jvm.jars import jar_paths
from infold.spark.tables.delta.adapters import JARS

pytestmark = [pytest.mark.servers, pytest.mark.spark]

ADDRESS = "thrift://metastore.example.com:9083"
_SMALL = "".join(
    f".config('{key}', '{value}')"
    for key, value in {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
    }.items()
)
"""So that a query of some rows has one task, and not fifty."""

_READ = """
import json
import sys
for line in sys.stdin:
    try:
        found = [row.asDict() for row in spark.sql(json.loads(line)).collect()]
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    print("@" + json.dumps(found, default=str), flush=True)
"""


@dataclass
class Reader:
    """A Spark in a process of its own, by the example of the page: infold did not start it."""

    process: subprocess.Popen[str]

    def __call__(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(query) + "\n")
        self.process.stdin.flush()
        answer = next(line for line in self.process.stdout if line.startswith("@"))
        found = json.loads(answer[1:])
        assert isinstance(found, list), found
        return found

    def names(self, namespace: str) -> set[str]:
        """The tables that it lists, and views among them."""
        return {row["tableName"] for row in self(f"SHOW TABLES IN {namespace}")}

    def columns(self, table: str) -> dict[str, str]:
        """The types of the columns of a table."""
        found = {row["col_name"]: row["data_type"] for row in self(f"DESCRIBE {table}")}
        return {name: found[name] for name in itertools.takewhile("# Part".__ne__, found)}

    def count(self, table: str) -> int:
        """How many rows it reads."""
        return int(self(f"SELECT count(*) AS n FROM {table}")[0]["n"])


@pytest.fixture(scope="module")
def reader(
    hive_metastore: HiveMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reader]:
    """The session of the page about readers; only its jars are here already."""
    [example] = [one for one in code(DOCS / "reading.md", "python") if "enableHiveSupport" in one]
    made, _, days = example.partition("days = ")
    assert "FROM sales.daily" in days
    made = made.replace(ADDRESS, hive_metastore.url).replace(".enableHive", f"{_SMALL}.enableHive")
    jars = ",".join(map(str, jar_paths(JARS)))
    made = made.replace(
        '"spark.jars.packages", "io.delta:delta-spark_4.1_2.13:4.4.0"', f'"spark.jars", "{jars}"'
    )
    assert jars in made
    with subprocess.Popen(
        [sys.executable, "-c", made + _READ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path_factory.mktemp("reader"),
        text=True,
    ) as process:
        yield Reader(process)
        assert process.stdin is not None
        process.stdin.close()


@dataclass
class Shop:
    """The starter's project with a target that the page has."""

    root: Path
    namespace: str
    hive: HiveClient

    def __call__(self, words: str, status: int = 0) -> str:
        """What a command prints."""
        command = ["-C", str(self.root), "--target", "prod", *words.split()]
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == status, done.output
        return done.output

    def rows(self, table: str) -> int:
        """How many rows infold finds."""
        rows: int = api.lake(api.open_project(self.root, "prod")).rows(table).num_rows
        return rows

    def add_a_column(self) -> None:
        """Change a definition: ``daily`` has the column ``most``, too."""
        model = self.root / "models" / "daily.sql"
        text = model.read_text(encoding="utf-8")
        model.write_text(text.replace("sum(revenue)", "max(revenue) AS most,\n  sum(revenue)"))

    def dies(self, at: str, words: str) -> subprocess.CompletedProcess[str]:
        """A command in a process of its own, which is killed at a write point."""
        command = ["-C", str(self.root), "--target", "prod", *words.split()]
        return subprocess.run(
            [sys.executable, "-m", "infold", *command],
            env={**os.environ, "INFOLD_CRASH_AT": at},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def views(self) -> str:
        """The namespace of the views."""
        return f"{self.namespace}_views"

    def entry(self, name: str, namespace: str = "") -> Any:
        """What the metastore has of a table."""
        return self.hive.look(lambda hms: hms.get_table(namespace or self.namespace, name))


@pytest.fixture
def shop(hive_metastore: HiveMetastore, tmp_path: Path) -> Shop:
    """The project with the target of the page on tables in Delta Lake."""
    root, namespace = tmp_path / "shop", f"{hive_metastore.next_namespace()}_{os.getpid()}"
    assert CliRunner().invoke(cli, ["init", str(root)]).exit_code == 0
    [target] = [one for one in code(DOCS / "delta.md", "yaml") if "type: hive" in one]
    for old, new in {
        ADDRESS: hive_metastore.url,
        "/srv/shop/warehouse": str(tmp_path / "ware house é"),
        "namespace: sales": f"namespace: {namespace}",
        "  prod:\n": "  prod:\n    hide_technical: views\n",
    }.items():
        assert old in target
        target = target.replace(old, new)
    file = root / "infold.yml"
    file.write_text(file.read_text(encoding="utf-8").partition("targets:")[0] + target)
    declared = Catalog(CatalogType.HIVE, uri=hive_metastore.url)
    return Shop(root, namespace, HiveClient(declared, Path("/"), "catalog"))


def test_they_are_read_by_their_names(shop: Shop, reader: Reader) -> None:
    """After a run; what others did to names is mended; they go with the tables, no others do."""
    space = shop.namespace
    names_of_somebody_else(shop, reader)
    shop("run")

    assert {"clicks", "daily", "sessions"} <= reader.names(space)
    assert reader.count(f"{space}.sessions") == shop.rows("sessions")
    parameters = shop.entry("daily").parameters
    assert parameters[FOLDER].endswith("/ware house é/shop/daily")
    assert not {"numFiles", "DO_NOT_UPDATE_STATS"} & {*parameters}
    reader(f"CREATE TABLE {space}.theirs (n INT) USING parquet")
    looked = next(one for one in examine(shop.root, "prod") if one.name == "metastore")
    assert looked.found.endswith(f"namespace {space}: 3 tables registered")
    own = views_are_sparks_own(shop, reader)

    # Somebody drops names, and has another one lead elsewhere: rows are where they were.
    reader(f"DROP TABLE {space}.daily")
    reader(f"DROP VIEW {shop.views}.daily")
    astray = shop.entry("sessions")
    astray.sd.serdeInfo.parameters["path"] = shop.entry("clicks").sd.serdeInfo.parameters["path"]
    shop.hive.change(lambda hms: hms.alter_table(space, "sessions", astray))
    assert reader.count(f"{space}.sessions") == shop.rows("clicks")
    assert "Nothing to do" in shop("run")
    for table in ("daily", "sessions"):
        rows = shop.rows(table)
        assert reader.count(f"{space}.{table}") == reader.count(f"{shop.views}.{table}") == rows > 0

    reader(f"ALTER VIEW {shop.views}.sessions AS SELECT 1 AS one")
    names_are_kept_through_a_promote(shop, reader)
    assert said_by(shop.entry("sessions", shop.views)) == own
    shop("teardown --yes --allow-refresh")
    assert reader.names(space) == reader.names(shop.views) == {"theirs"}


def names_of_somebody_else(shop: Shop, reader: Reader) -> None:
    """They are told before anything is written, and stay as they are; so does a lost metastore."""
    space, ware = shop.namespace, shop.root.parent / "ware house é"
    reader(f"CREATE DATABASE {space}")
    reader(f"CREATE TABLE {space}.daily (n INT) USING parquet")
    for command in ("run", "repair --yes"):
        assert "catalog-name-taken" in shop(command, status=2)
    assert [row["col_name"] for row in reader(f"DESCRIBE {space}.daily")] == ["n"]
    reader(f"DROP TABLE {space}.daily")
    reader(f"CREATE DATABASE {shop.views}")
    reader(f"CREATE VIEW {shop.views}.daily AS SELECT 1 AS n")
    assert f"namespace:  {shop.views}" in shop("run", status=2)
    assert reader(f"SELECT * FROM {shop.views}.daily") == [{"n": 1}]
    reader(f"DROP VIEW {shop.views}.daily")
    file = shop.root / "infold.yml"
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"thrift://\S+", f"thrift://127.0.0.1:{free_port()}", text))
    assert "catalog-unreachable" in shop("run", status=1)
    file.write_text(text, encoding="utf-8")
    assert not ware.exists()


def views_are_sparks_own(shop: Shop, reader: Reader) -> SparkView:
    """
    They are without technical columns, and what Spark writes for the same query is the same, but
    for settings of its session. What is said of one.
    """
    stored = reader.columns(f"{shop.namespace}.sessions")
    shown = api.show(api.open_project(shop.root, "prod"), "sessions").column_names
    assert reader.columns(f"{shop.views}.sessions") == {name: stored[name] for name in shown}
    assert "_version" in stored
    own = shop.entry("sessions", shop.views)
    reader(f"USE {shop.namespace}")
    reader(f"CREATE VIEW {shop.views}.theirs AS {own.viewExpandedText}")
    theirs = shop.entry("theirs", shop.views)
    said, by_spark = (_without_session(said_by(one)) for one in (own, theirs))
    assert said == by_spark
    assert own.sd.cols == theirs.sd.cols
    return said_by(own)


def _without_session(view: SparkView) -> SparkView:
    """A view without what is said of the session, and of the version, that made it."""
    kept = {
        name: value
        for name, value in view.parameters.items()
        if not name.startswith("view.sqlConfig.") and name != "spark.sql.create.version"
    }
    return replace(view, parameters=kept)


def names_are_kept_through_a_promote(shop: Shop, reader: Reader) -> None:
    """
    A table of an environment is found too, and becomes production's under the name of that.

    Views are those of production, and have its columns: a promote that dies before that leaves it
    to the next run, as it leaves a view that somebody changed.
    """
    space = shop.namespace

    def columns() -> set[str]:
        rows = reader(f"SELECT * FROM {shop.views}.daily")
        assert len(rows) == shop.rows("daily")
        return {*rows[0]}

    before = columns()
    shop.add_a_column()
    shop("run --env more")
    [own] = [name for name in reader.names(space) if name.startswith("daily__")]
    assert "most" in reader(f"SELECT * FROM {space}.{own}")[0]
    ended = shop.dies("view daily: before", "promote more --yes")
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert "most" in reader.columns(f"{space}.daily")
    assert columns() == before
    assert "Nothing to do" in shop("run")
    assert columns() == {*before, "most"}
    assert reader.names(shop.views) == {"clicks", "daily", "sessions", "theirs"}
    assert own not in reader.names(space)
    shop("rollback --yes")
    assert columns() == before
    folders = {path.name for path in (shop.root.parent / "ware house é" / "shop").iterdir()}
    own_names = {name for name in folders if not name.startswith(".")}
    assert reader.names(space) == own_names | {"theirs"}


def test_a_death_between_commit_and_name(
    hive_metastore: HiveMetastore, reader: Reader, tmp_path: Path
) -> None:
    """
    The tables are right and some have no name; the next run gives them, and writes no row.

    So it is where the answer of the metastore is lost, which the run says.
    """
    space = f"killed_{os.getpid()}"
    declared = {"type": "hive", "uri": hive_metastore.url, "namespace": space}
    keys = {"catalog": declared, "storage": "delta"}
    tables = {name: SHAPE.tables[name] for name in ("clicks", "sessions")}
    scenario = MovedScenario(
        replace(SHAPE, storage=Storage.DELTA, tables=tables),
        tmp_path / "killed",
        "killed",
        tmp_path / "warehouse",
        8,
        move=partial(_retarget, keys),
    )
    scenario.deliver(1)
    scenario.deliver(2)
    ended = kill(scenario, "register sessions: before")
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert reader.names(space) == {"clicks"}
    with hive_metastore.losing("create_table"), pytest.raises(Exception, match="not-registered"):
        scenario.go()

    assert not scenario.go().steps

    assert {*tables} <= reader.names(space)
    assert reader.count(f"{space}.sessions") == len(scenario.read()["sessions"])
    scenario.check({*tables}, None)


def test_a_table_of_others_by_its_name(
    hive_metastore: HiveMetastore, reader: Reader, tmp_path: Path
) -> None:
    """
    Rows that another Spark writes into a table that it made in the metastore, wherever it is.

    A view under its name and a table that is gone are errors that change nothing; another table
    under the name has its own rows, in whatever folder.
    """
    space, place = f"others_{os.getpid()}", f"table: others_{os.getpid()}.Orders"
    declared = f"catalog: {{type: hive, uri: '{hive_metastore.url}'}}"
    shop = shop_over_delta(tmp_path / "shop", tmp_path / "warehouse", f"{place}\n    {declared}")

    def make(where: str, *rows: str) -> None:
        columns = "id STRING, at TIMESTAMP, v INT, kind STRING"
        reader(f"CREATE TABLE {space}.orders ({columns}) USING delta PARTITIONED BY (kind) {where}")
        reader(f"INSERT INTO {space}.orders VALUES {', '.join(rows)}")

    def fails() -> str:
        with pytest.raises(InfoldError) as failed:
            shop.run()
        return failed.value.slug

    assert fails() == "no-such-table"
    reader(f"CREATE DATABASE {space}")
    first, second = "('a', timestamp'2024-03-01', 1, 'x')", "('b', timestamp'2024-03-02', 2, NULL)"
    make(f"LOCATION '{tmp_path}/la ke é/orders'", first, second)
    shop.run()
    assert shop.rows() == [("a", "2024-03-01", 1, "x"), ("b", "2024-03-02", 2, None)]
    reader(f"UPDATE {space}.orders SET v = 7 WHERE id = 'b'")
    reader(f"ALTER TABLE {space}.orders RENAME TO {space}.before")
    assert fails() == "no-such-table"
    reader(f"CREATE VIEW {space}.orders AS SELECT * FROM {space}.before")
    assert fails() == "delta-other-entry"
    reader(f"DROP VIEW {space}.orders")
    reader(f"ALTER TABLE {space}.before RENAME TO {space}.orders")
    shop.run()
    assert shop.rows() == [("a", "2024-03-01", 1, "x"), ("b", "2024-03-02", 7, None)]

    reader(f"DROP TABLE {space}.orders")
    make("", first, "('c', timestamp'2024-03-03', 3, 'z')")  # in the metastore's own folder
    shop.run()
    assert shop.rows() == [("a", "2024-03-01", 1, "x"), ("c", "2024-03-03", 3, "z")]


def _retarget(keys: dict[str, Any], folder: Path) -> None:
    retarget(folder, keys)
