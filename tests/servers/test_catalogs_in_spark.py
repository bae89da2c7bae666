"""
Projects whose tables are in a catalog on a server: what is right in a file is right there.

What catalogs do is in ``test_catalogs``, without Spark.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner, Result
from tests.crash.scenario import SHAPE, Scenario
from tests.docs.pages import DOCS, code
from tests.servers.catalogs import PASSWORD, Shelf, jdbc_uri, new_database, opened
from tests.servers.hive_metastore import HiveMetastore
from tests.servers.moved import MovedScenario, retarget
from tests.servers.postgresql import Postgresql
from tests.servers.rest_catalog import RestServer

from infold import api
from infold.api.spark_sessions import session
from infold.cli import cli
from infold.core.report import RunFailed
from infold.messages.errors import InfoldError
from infold.spark.jvm.gateway import jvm_pid

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


def find_in(catalog: dict[str, str], folder: Path) -> None:
    """Have the project's targets find their tables in a catalog."""
    retarget(folder, {"catalog": catalog})


def scenario_in(declared: dict[str, str], folder: Path) -> MovedScenario:
    """A scenario whose tables are in a catalog, in a namespace of their own."""
    declared = declared | {"namespace": f"{folder.name}_{os.getpid()}"}
    where = folder, folder.name, folder.parent / "warehouse"
    return MovedScenario(CLICKS, *where, 8, move=partial(find_in, declared))


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
    shelves: dict[str, Shelf], rest_server: RestServer, tmp_path: Path
) -> None:
    """
    Nobody knows then whether it happened; the next run finds the commit, and nothing is twice
    there. A commit that is not permitted ends the run by name.
    """
    scenario = scenario_in(shelves["rest"].declared, tmp_path / "lost")
    scenario.deliver(1)
    assert slugs_of(scenario) == set()
    scenario.deliver(2)
    with rest_server.rule("POST", "/tables/clicks$", status=403):
        assert slugs_of(scenario) == {"catalog-not-permitted"}
    with rest_server.rule("POST", "/tables/sessions$", lost=True):
        assert slugs_of(scenario) == {"catalog-answer-lost"}
    scenario.take_in()


def test_a_commit_whose_answer_a_metastore_loses(
    shelves: dict[str, Shelf], hive_metastore: HiveMetastore, tmp_path: Path
) -> None:
    """Iceberg looks itself whether it happened, or says that nobody knows: none is twice there."""
    scenario = scenario_in(shelves["hive"].declared, tmp_path / "hive")
    scenario.deliver(1)
    assert slugs_of(scenario) == set()
    scenario.deliver(2)
    with hive_metastore.losing("alter_table"):
        assert slugs_of(scenario) <= {"catalog-answer-lost", "catalog-failed"}
        assert hive_metastore.lost == {"alter_table": 0}
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

    def run(statement: str, database: str) -> None:
        postgresql.run(statement, database=database)

    def refused(right: str) -> set[str]:
        run(f"REVOKE {right} FROM {role}", role)
        found = slugs_of(scenario)
        run(f"GRANT {right} TO {role}", role)
        return found

    scenario.deliver(1)
    for right in ("SELECT ON iceberg_tables", "INSERT ON iceberg_tables"):
        assert refused(right) == {"catalog-not-permitted"}
    assert slugs_of(scenario) == set()
    scenario.deliver(2)
    assert refused("UPDATE ON iceberg_tables") == {"catalog-not-permitted"}
    scenario.take_in()

    empty = new_database(postgresql)
    run("ALTER SCHEMA public OWNER TO CURRENT_USER", empty)
    run("REVOKE CREATE ON SCHEMA public FROM PUBLIC", empty)
    declared = {"type": "jdbc", "uri": jdbc_uri(postgresql, empty)}
    scenario = scenario_in(declared, tmp_path / "empty")
    scenario.deliver(1)
    assert slugs_of(scenario) == {"catalog-not-permitted"}
    run(f"GRANT CREATE ON SCHEMA public TO {empty}", empty)
    assert slugs_of(scenario) == set()


@dataclass
class Shop:
    """The starter's project, with a target that the page has."""

    root: Path
    printed: list[str] = field(default_factory=list)

    def infold(self, words: str, code: int = 0) -> Result:
        """A command in this process; it ends with ``code``."""
        done = CliRunner().invoke(cli, ["-C", str(self.root), "--target", "prod", *words.split()])
        self.printed.append(done.output)
        assert done.exit_code == code, done.output
        return done


def shop(root: Path, target: str, **replaced: str) -> Shop:
    """The starter's project with a target; the addresses of the page are those of servers here."""
    assert CliRunner().invoke(cli, ["init", str(root)]).exit_code == 0
    for old, new in replaced.items():
        target = target.replace(old, new)
    file = root / "infold.yml"
    file.write_text(file.read_text(encoding="utf-8").partition("targets:")[0] + target)
    return Shop(root)


def view_columns(made: Shop) -> list[str]:
    """The columns that Spark finds in the view of the table; it reads the rows, too."""
    project = api.open_project(made.root, "prod")
    found = session(project).table(f"infold.{project.namespace}_views.daily")
    assert found.count() > 0
    columns: list[str] = found.columns
    return columns


def promote(made: Shop, *, at_once: bool) -> None:
    """
    A changed table is built in an environment, takes the name of production's, and goes back: so
    does what readers of its view see.
    """
    model = made.root / "models" / "daily.sql"
    text = model.read_text(encoding="utf-8")
    model.write_text(text.replace("sum(revenue)", "max(revenue) AS most,\n  sum(revenue)"))
    made.infold("run --env more")
    assert json.loads(made.infold("promote more --yes --json").stdout)["at_once"] == at_once
    assert "most" in made.infold("show daily").stdout
    assert "most" in view_columns(made)
    made.infold("rollback --yes")
    assert "most" not in made.infold("show daily").stdout
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
        made = shop(tmp_path / name / "shop", hiding, **here)
        for line in commands.splitlines():
            made.infold(line.removeprefix("infold --target prod "))
        made.infold("forget daily --yes --allow-refresh")
        made.infold("run --allow-refresh")
        promote(made, at_once=name == "postgresql")
        printed += made.printed
    assert re.search(r"catalog +a table was made, written, read and dropped", printed[0])
    texts = [text.encode() for text in printed]
    texts += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    texts.append(Path(f"/proc/{jvm_pid()}/cmdline").read_bytes())
    for word in (PASSWORD, quote(PASSWORD, safe=""), rest_server.secret, rest_server.token):
        assert [text for text in texts if word.encode() in text] == []
