"""
Projects whose tables are in a catalog on a server: what is right in a file is right there.

Another Spark reads tables of Delta Lake by their names in a real Hive metastore. What catalogs do
is in ``test_catalogs``, without Spark.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.crash.scenario import SHAPE, AllBut, Scenario, living
from tests.docs.pages import DOCS, code
from tests.lake.delta.orders import shop_over_delta
from tests.servers.catalogs import PASSWORD, Shelf, jdbc_uri, new_database, opened
from tests.servers.gate import free_port, new_name
from tests.servers.hive_metastore import HiveMetastore
from tests.servers.moved import MovedScenario, Starter, retarget
from tests.servers.postgresql import Postgresql
from tests.servers.rest_catalog import RestServer

from infold import api
from infold.api.doctor import examine
from infold.api.spark_sessions import session
from infold.core.report import RunFailed
from infold.core.storages import DEFAULT_STORAGE, Catalog, CatalogType, Storage
from infold.lake.delta.metastore import FOLDER
from infold.lake.delta.reader_views import SparkView, view_of_entry
from infold.lake.hive_client import HiveClient
from infold.messages.errors import InfoldError
from infold.spark.jvm.gateway import jvm_pid
from infold.spark.jvm.jars import jar_paths
from infold.spark.tables.delta.adapters import JARS

pytestmark = [pytest.mark.servers, pytest.mark.spark]

PAGE = DOCS / "catalogs.md"
CLICKS = replace(SHAPE, tables={name: SHAPE.tables[name] for name in ("clicks", "sessions")})


@pytest.fixture(scope="module")
def shelves(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Shelf]]:
    """A catalog of each type on a server."""
    with (
        opened("jdbc", request, tmp_path_factory.mktemp("jdbc")) as jdbc,
        opened("rest", request, tmp_path_factory.mktemp("rest")) as rest,
        opened("hive", request, tmp_path_factory.mktemp("hive")) as hive,
    ):
        yield {"jdbc": jdbc, "rest": rest, "hive": hive}


def scenario_in(
    declared: dict[str, str], folder: Path, storage: Storage = DEFAULT_STORAGE, space: str = ""
) -> MovedScenario:
    """A scenario whose tables are in a catalog, in a namespace of their own."""
    catalog = declared | {"namespace": space or new_name(f"{folder.name}_")}
    where = folder, folder.name, folder.parent / "warehouse"
    shape = replace(CLICKS, storage=storage)
    return MovedScenario(shape, *where, 8, move=partial(retarget, keys={"catalog": catalog}))


def slugs_of(scenario: Scenario) -> set[str]:
    """A run; what it failed by."""
    try:
        scenario.go()
    except RunFailed as failed:
        return {one.error.slug for one in failed.result.failures}
    except InfoldError as error:
        return {error.slug}
    return set()


def test_a_commit_whose_answer_is_lost(
    shelves: dict[str, Shelf],
    rest_server: RestServer,
    hive_metastore: HiveMetastore,
    tmp_path: Path,
) -> None:
    """
    Nobody knows then whether it happened, unless Iceberg itself finds out; the next run finds the
    commit, and nothing is twice there. A commit that is not permitted ends the run by name.
    """
    lost = {
        "rest": rest_server.rule("POST", "/tables/sessions$", lost=True),
        "hive": hive_metastore.losing("alter_table"),
    }
    for kind, losing in lost.items():
        scenario = scenario_in(shelves[kind].declared, tmp_path / kind)
        scenario.deliver(1)
        assert slugs_of(scenario) == set()
        scenario.deliver(2)
        if kind == "rest":
            with rest_server.rule("POST", "/tables/clicks$", status=403):
                assert slugs_of(scenario) == {"catalog-not-permitted"}
        with losing:
            found = slugs_of(scenario)
            assert hive_metastore.lost == ({"alter_table": 0} if kind == "hive" else {})
        said = {"catalog-answer-lost"}
        assert found == said if kind == "rest" else found <= {*said, "catalog-failed"}
        scenario.take_in()


def test_a_role_without_a_right(
    shelves: dict[str, Shelf], postgresql: Postgresql, tmp_path: Path
) -> None:
    """
    Each right that a run needs, taken away alone, ends it by name; with the right again it goes on
    from there. So does one that may not make the catalog's tables in an empty database.
    """
    role = shelves["jdbc"].declared["uri"].rpartition("/")[2]
    scenario = scenario_in(shelves["jdbc"].declared, tmp_path / "refused")
    scenario.deliver(1)
    for right in ("SELECT", "INSERT"):
        postgresql.run(f"REVOKE {right} ON iceberg_tables FROM {role}", database=role)
        assert slugs_of(scenario) == {"catalog-not-permitted"}
        postgresql.run(f"GRANT {right} ON iceberg_tables TO {role}", database=role)

    role = new_database(postgresql)
    scenario = scenario_in({"type": "jdbc", "uri": jdbc_uri(postgresql, role)}, tmp_path / "empty")
    scenario.deliver(1)
    whose = "ALTER SCHEMA public OWNER TO CURRENT_USER"
    postgresql.run(whose, "REVOKE CREATE ON SCHEMA public FROM PUBLIC", database=role)
    assert slugs_of(scenario) == {"catalog-not-permitted"}
    postgresql.run(f"GRANT CREATE ON SCHEMA public TO {role}", database=role)
    assert slugs_of(scenario) == set()
    scenario.deliver(2)
    postgresql.run(f"REVOKE UPDATE ON iceberg_tables FROM {role}", database=role)
    assert slugs_of(scenario) == {"catalog-not-permitted"}
    postgresql.run(f"GRANT UPDATE ON iceberg_tables TO {role}", database=role)
    scenario.take_in()


def view_columns(made: Starter) -> list[str]:
    """The columns that Spark finds in the view of the table; it reads the rows, too."""
    project = api.open_project(made.root, "prod")
    found = session(project).table(f"infold.{project.namespace}_views.daily")
    assert found.count() > 0
    columns: list[str] = found.columns
    return columns


def promote(made: Starter, *, at_once: bool) -> None:
    """
    A changed table is built in an environment, takes the name of production's, and goes back: so
    does what readers of its view see.
    """
    made.add_a_column()
    made("run --env more")
    assert json.loads(made.infold("promote more --yes --json").stdout)["at_once"] == at_once
    assert "most" in made("show daily")
    assert "most" in view_columns(made)
    made("rollback --yes")
    assert "most" not in made("show daily")
    assert "most" not in view_columns(made)


def test_the_page_on_catalogs(
    shelves: dict[str, Shelf],
    postgresql: Postgresql,
    rest_server: RestServer,
    hive_metastore: HiveMetastore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    What the page says works, with each type; so do forgetting, promoting, going back.

    No secret is in what was printed, in files, or on the command line of the JVM.
    """
    del shelves
    in_postgresql, by_rest, in_hive = code(PAGE, "yaml")
    (statements,), (commands,) = code(PAGE, "sql"), code(PAGE, "sh")
    monkeypatch.setenv("CATALOG_PASSWORD", PASSWORD)
    monkeypatch.setenv("CATALOG_SECRET", rest_server.secret)
    secret = PASSWORD.replace("'", "''")
    postgresql.run(*statements.replace("change-me", secret).strip().rstrip(";").split(";\n"))
    addresses = {
        "db.example.com:5432": f"127.0.0.1:{postgresql.port}",
        "https://catalog.example.com/iceberg": rest_server.url,
        "shop_prod": f"shop_prod_{os.getpid()}",
        "thrift://metastore.example.com:9083": hive_metastore.url,
        "shop_hive": f"shop_hive_{os.getpid()}",
    }
    printed = []
    targets = {"postgresql": in_postgresql, "rest": by_rest, "hive": in_hive}
    for name, target in targets.items():
        here = {**addresses, "/srv/shop/warehouse": str(tmp_path / f"warehouse_{name}")}
        hiding = target.replace("  prod:\n", "  prod:\n    hide_technical: views\n")
        made = Starter(tmp_path / name / "shop", "prod")
        made.declare(hiding, here)
        for line in commands.splitlines():
            made(line.removeprefix("infold --target prod "))
        if name == "rest":
            made("forget daily --yes --allow-refresh")
            made("run --allow-refresh")
        promote(made, at_once=name == "postgresql")
        printed += made.printed
    assert re.search(r"catalog +a table was made, written, read and dropped", printed[0])
    texts = [text.encode() for text in printed]
    texts += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    texts.append(Path(f"/proc/{jvm_pid()}/cmdline").read_bytes())
    for word in (PASSWORD, quote(PASSWORD, safe=""), rest_server.secret, rest_server.token):
        assert [text for text in texts if word.encode() in text] == []


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


@dataclass(kw_only=True)
class DeltaShop(Starter):
    """The same with a target that the page has."""

    namespace: str
    hive: HiveClient

    def rows(self, table: str) -> int:
        """How many rows infold finds."""
        rows: int = api.lake_of(api.open_project(self.root, "prod")).rows(table).num_rows
        return rows

    @property
    def views(self) -> str:
        """The namespace of the views."""
        return f"{self.namespace}_views"

    def entry(self, name: str, namespace: str = "") -> Any:
        """What the metastore has of a table."""
        return self.hive.look(lambda hms: hms.get_table(namespace or self.namespace, name))


@pytest.fixture
def delta_shop(hive_metastore: HiveMetastore, tmp_path: Path) -> DeltaShop:
    """The project with the target of the page on tables in Delta Lake."""
    namespace = new_name("shop_")
    declared = Catalog(CatalogType.HIVE, uri=hive_metastore.url)
    hive = HiveClient(declared, Path("/"), "catalog")
    made = DeltaShop(root=tmp_path / "shop", target="prod", namespace=namespace, hive=hive)
    [target] = [one for one in code(DOCS / "delta.md", "yaml") if "type: hive" in one]
    places = {
        ADDRESS: hive_metastore.url,
        "/srv/shop/warehouse": str(tmp_path / "ware house é"),
        "namespace: sales": f"namespace: {namespace}",
        "  prod:\n": "  prod:\n    hide_technical: views\n",
    }
    assert all(old in target for old in places)
    made.declare(target, places)
    return made


def test_they_are_read_by_their_names(delta_shop: DeltaShop, reader: Reader) -> None:
    """After a run; what others did to names is mended; they go with the tables, no others do."""
    space = delta_shop.namespace
    names_of_somebody_else(delta_shop, reader)
    delta_shop("run")

    assert {"clicks", "daily", "sessions"} <= reader.names(space)
    assert reader.count(f"{space}.sessions") == delta_shop.rows("sessions")
    parameters = delta_shop.entry("daily").parameters
    assert parameters[FOLDER].endswith("/ware house é/shop/daily")
    assert not {"numFiles", "DO_NOT_UPDATE_STATS"} & {*parameters}
    reader(f"CREATE TABLE {space}.theirs (n INT) USING parquet")
    looked = next(one for one in examine(delta_shop.root, "prod") if one.name == "metastore")
    assert looked.found.endswith(f"namespace {space}: 3 tables registered")
    own = views_are_sparks_own(delta_shop, reader)

    # Somebody drops names, and has another one lead elsewhere: rows are where they were.
    reader(f"DROP TABLE {space}.daily")
    reader(f"DROP VIEW {delta_shop.views}.daily")
    astray = delta_shop.entry("sessions")
    astray.sd.serdeInfo.parameters["path"] = delta_shop.entry("clicks").sd.serdeInfo.parameters[
        "path"
    ]
    delta_shop.hive.change(lambda hms: hms.alter_table(space, "sessions", astray))
    assert reader.count(f"{space}.sessions") == delta_shop.rows("clicks")
    assert "Nothing to do" in delta_shop("run")
    for table in ("daily", "sessions"):
        rows = delta_shop.rows(table)
        assert (
            reader.count(f"{space}.{table}")
            == reader.count(f"{delta_shop.views}.{table}")
            == rows
            > 0
        )

    reader(f"ALTER VIEW {delta_shop.views}.sessions AS SELECT 1 AS one")
    names_are_kept_through_a_promote(delta_shop, reader)
    assert view_of_entry(delta_shop.entry("sessions", delta_shop.views)) == own
    delta_shop("teardown --yes --allow-refresh")
    assert reader.names(space) == reader.names(delta_shop.views) == {"theirs"}


def names_of_somebody_else(delta_shop: DeltaShop, reader: Reader) -> None:
    """They are told before anything is written, and stay as they are; so does a lost metastore."""
    space, ware = delta_shop.namespace, delta_shop.root.parent / "ware house é"
    reader(f"CREATE DATABASE {space}")
    reader(f"CREATE TABLE {space}.daily (n INT) USING parquet")
    for command in ("run", "repair --yes"):
        assert "catalog-name-taken" in delta_shop(command, code=2)
    assert [row["col_name"] for row in reader(f"DESCRIBE {space}.daily")] == ["n"]
    reader(f"DROP TABLE {space}.daily")
    reader(f"CREATE DATABASE {delta_shop.views}")
    reader(f"CREATE VIEW {delta_shop.views}.daily AS SELECT 1 AS n")
    assert f"namespace:  {delta_shop.views}" in delta_shop("run", code=2)
    assert reader(f"SELECT * FROM {delta_shop.views}.daily") == [{"n": 1}]
    reader(f"DROP VIEW {delta_shop.views}.daily")
    file = delta_shop.root / "infold.yml"
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"thrift://\S+", f"thrift://127.0.0.1:{free_port()}", text))
    assert "catalog-unreachable" in delta_shop("run", code=1)
    file.write_text(text, encoding="utf-8")
    assert not ware.exists()


def views_are_sparks_own(delta_shop: DeltaShop, reader: Reader) -> SparkView:
    """
    They are without technical columns, and what Spark writes for the same query is the same, but
    for settings of its session. What is said of one.
    """
    stored = reader.columns(f"{delta_shop.namespace}.sessions")
    shown = api.show(api.open_project(delta_shop.root, "prod"), "sessions").column_names
    assert reader.columns(f"{delta_shop.views}.sessions") == {name: stored[name] for name in shown}
    assert "_version" in stored
    own = delta_shop.entry("sessions", delta_shop.views)
    reader(f"USE {delta_shop.namespace}")
    reader(f"CREATE VIEW {delta_shop.views}.theirs AS {own.viewExpandedText}")
    theirs = delta_shop.entry("theirs", delta_shop.views)
    said, by_spark = (_without_session(view_of_entry(one)) for one in (own, theirs))
    assert said == by_spark
    assert own.sd.cols == theirs.sd.cols
    return view_of_entry(own)


def _without_session(view: SparkView) -> SparkView:
    """A view without what is said of the session, and of the version, that made it."""
    kept = {
        name: value
        for name, value in view.parameters.items()
        if not name.startswith("view.sqlConfig.") and name != "spark.sql.create.version"
    }
    return replace(view, parameters=kept)


def names_are_kept_through_a_promote(delta_shop: DeltaShop, reader: Reader) -> None:
    """
    A table of an environment is found too, and becomes production's under the name of that.

    Views are those of production, and have its columns: a promote that dies before that leaves it
    to the next run, as it leaves a view that somebody changed.
    """
    space = delta_shop.namespace

    def columns() -> set[str]:
        rows = reader(f"SELECT * FROM {delta_shop.views}.daily")
        assert len(rows) == delta_shop.rows("daily")
        return {*rows[0]}

    before = columns()
    delta_shop.add_a_column()
    delta_shop("run --env more")
    [own] = [name for name in reader.names(space) if name.startswith("daily__")]
    assert "most" in reader(f"SELECT * FROM {space}.{own}")[0]
    with living(met=AllBut("view daily: before")) as life:
        delta_shop("promote more --yes", code=1)
    assert life.dead
    assert "most" in reader.columns(f"{space}.daily")
    assert columns() == before
    assert "Nothing to do" in delta_shop("run")
    assert columns() == {*before, "most"}
    assert reader.names(delta_shop.views) == {"clicks", "daily", "sessions", "theirs"}
    assert own not in reader.names(space)
    delta_shop("rollback --yes")
    assert columns() == before
    folders = {path.name for path in (delta_shop.root.parent / "ware house é" / "shop").iterdir()}
    own_names = {name for name in folders if not name.startswith(".")}
    assert reader.names(space) == own_names | {"theirs"}


def test_a_death_between_commit_and_name(
    hive_metastore: HiveMetastore, reader: Reader, tmp_path: Path
) -> None:
    """
    The tables are right and some have no name; the next run gives them, and writes no row.

    So it is where the answer of the metastore is lost, which the run says.
    """
    space = new_name("killed_")
    declared = {"type": "hive", "uri": hive_metastore.url}
    scenario = scenario_in(declared, tmp_path / "killed", Storage.DELTA, space)
    scenario.deliver(1)
    scenario.deliver(2)
    with living(met=AllBut("register sessions: before")) as life:
        scenario.go(life)
    assert life.dead
    assert reader.names(space) == {"clicks"}
    with hive_metastore.losing("create_table"), pytest.raises(Exception, match="not-registered"):
        scenario.go()

    assert not scenario.go().steps

    assert {*scenario.shape.tables} <= reader.names(space)
    assert reader.count(f"{space}.sessions") == len(scenario.read()["sessions"])
    scenario.check({*scenario.shape.tables}, None)


def test_a_table_of_others_by_its_name(
    hive_metastore: HiveMetastore, reader: Reader, tmp_path: Path
) -> None:
    """
    Rows that another Spark writes into a table that it made in the metastore, wherever it is.

    A view under its name and a table that is gone are errors that change nothing; another table
    under the name has its own rows, in whatever folder.
    """
    space = new_name("others_")
    place = f"table: {space}.Orders\n    catalog: {{type: hive, uri: '{hive_metastore.url}'}}"
    delta_shop = shop_over_delta(tmp_path / "shop", tmp_path / "warehouse", place)

    def make(where: str, *rows: str) -> None:
        columns = "id STRING, at TIMESTAMP, v INT, kind STRING"
        reader(f"CREATE TABLE {space}.orders ({columns}) USING delta PARTITIONED BY (kind) {where}")
        reader(f"INSERT INTO {space}.orders VALUES {', '.join(rows)}")

    def fails() -> str:
        with pytest.raises(InfoldError) as failed:
            delta_shop.run()
        return failed.value.slug

    assert fails() == "no-such-table"
    reader(f"CREATE DATABASE {space}")
    first, second = "('a', timestamp'2024-03-01', 1, 'x')", "('b', timestamp'2024-03-02', 2, NULL)"
    make(f"LOCATION '{tmp_path}/la ke é/orders'", first, second)
    delta_shop.run()
    assert delta_shop.rows() == [("a", "2024-03-01", 1, "x"), ("b", "2024-03-02", 2, None)]
    reader(f"ALTER TABLE {space}.orders RENAME TO {space}.before")
    reader(f"CREATE VIEW {space}.orders AS SELECT * FROM {space}.before")
    assert fails() == "delta-other-entry"

    reader(f"DROP VIEW {space}.orders")
    make("", first, "('c', timestamp'2024-03-03', 3, 'z')")  # in the metastore's own folder
    delta_shop.run()
    assert delta_shop.rows() == [("a", "2024-03-01", 1, "x"), ("c", "2024-03-03", 3, "z")]
