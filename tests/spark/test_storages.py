"""How tables are stored and what Spark is told of catalogs and types; without a session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import types as T

from infold.core.project import Project
from infold.core.storages import STORAGE_SETTINGS, Storage, extensions
from infold.core.target import changed_settings
from infold.core.type_changes import is_type, type_of_text
from infold.declare.load import load
from infold.messages.errors import InfoldError
from infold.spark import storages
from infold.spark.storages import storage_of
from infold.spark.stored_types import sql_type


def test_every_storage_has_adapters_and_settings() -> None:
    """A storage that infold.yml may name is one that can be opened."""
    assert set(STORAGE_SETTINGS) == set(Storage)
    assert len({storages.adapters_of(storage) for storage in Storage}) == len(Storage)
    both = {"spark.sql.extensions": extensions(*Storage)}
    for settings in STORAGE_SETTINGS.values():
        assert settings.extension in both["spark.sql.extensions"]
    assert not [*changed_settings(both)]
    assert [*changed_settings({"spark.sql.extensions": STORAGE_SETTINGS[Storage.DELTA].extension})]


@pytest.mark.deep
def test_choosing_imports_no_engine() -> None:
    """Opening a target's tables starts at once: ``plan`` and ``status`` have 0.2 seconds."""
    code = (
        "import sys; from pathlib import Path; from infold.core.target import Target\n"
        "from infold.core.storages import Storage\n"
        "from infold.core.project import Project\n"
        "from infold.spark.storages import storage_of\n"
        "for storage in Storage:\n"
        "    target = Target('dev', storage=storage)\n"
        "    project = Project('shop', Path('.'), None, {}, (), target)\n"
        "    storage_of(project).lake(project).metadata('nothing')\n"
        "sys.exit(bool({'pyspark', 'pyiceberg', 'pyarrow', 'deltalake'} & set(sys.modules)))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


SECRET = "p@ss:w/ord ä"
PLAIN = "p@ss:w/ord s3cret"
PREFIX = "spark.sql.catalog.infold"


def project(root: Path, catalog: dict[str, Any]) -> Project:
    """A project with that catalog."""
    declared = {"name": "shop", "start": "2024-01-01", "targets": {"dev": {"catalog": catalog}}}
    (root / "models").mkdir(parents=True, exist_ok=True)
    (root / "infold.yml").write_text(yaml.safe_dump(declared), encoding="utf-8")
    return load(root)


def told(root: Path, catalog: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """The settings of Spark's start, and those of the session alone; without their prefix."""
    found = storage_of(made := project(root, catalog)).catalog(made)
    assert "w/ord" not in repr(found)
    assert all("w/ord" not in value for value in found.settings.values())
    plain = {key.removeprefix(f"{PREFIX}."): value for key, value in found.settings.items()}
    secrets = {key.removeprefix(f"{PREFIX}."): value for key, value in found.secrets.items()}
    return plain, secrets


def test_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java's URL has no user and no password; parameters have the names of its driver."""
    monkeypatch.setenv("WORD", SECRET)
    uri = "postgresql://me:${env:WORD}@a:1,b:2/my%20db?sslmode=require&target_session_attrs=primary"

    plain, secrets = told(tmp_path, {"type": "jdbc", "uri": uri})

    assert plain["catalog-impl"] == "org.apache.iceberg.jdbc.JdbcCatalog"
    assert secrets["uri"] == "jdbc:postgresql://a:1,b:2/my%20db"
    given = {key.removeprefix("jdbc."): value for key, value in secrets.items()}
    wanted = {"user": "me", "password": SECRET, "sslmode": "require", "targetServerType": "primary"}
    assert wanted.items() <= given.items()


def test_a_password_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the URL leaves out is where PostgreSQL's own programs look for it."""
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.setenv("PGUSER", "somebody")

    _, secrets = told(tmp_path, {"type": "jdbc", "uri": "postgresql://db.example.com/catalogs"})

    assert secrets["uri"] == "jdbc:postgresql://db.example.com:5432/catalogs"
    assert (secrets["jdbc.user"], secrets["jdbc.password"]) == ("somebody", SECRET)


def test_tls_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark speaks to the server as safely as infold's own connection."""
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    monkeypatch.setenv("PGSSLROOTCERT", "/etc/ca.pem")
    monkeypatch.setenv("PGHOST", "db.example.com")

    _, secrets = told(tmp_path, {"type": "jdbc", "uri": "postgresql://me@/catalogs"})

    assert secrets["uri"] == "jdbc:postgresql://db.example.com:5432/catalogs"
    given = (secrets["jdbc.sslmode"], secrets["jdbc.sslrootcert"])
    assert given == ("verify-full", "/etc/ca.pem")


@pytest.mark.parametrize(
    ("uri", "variable"),
    [
        ("postgresql://me@a/db?hostaddr=10.0.0.1", ""),
        ("postgresql://me@%2Fvar%2Frun/db", ""),
        ("postgresql://me@/db", ""),
        ("postgresql://me@a,/db", ""),
        ("postgresql://me@a/db?sslcrl=x", ""),
        ("postgresql://me@a/db?target_session_attrs=standby", ""),
        ("postgresql://me@a/db", "PGHOSTADDR"),
        ("postgresql://me@a/db", "PGSERVICE"),
    ],
)
def test_what_java_cannot_be_told(
    uri: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused: Spark would look for another server, or for the same one less safely."""
    monkeypatch.delenv("PGHOST", raising=False)
    if variable:
        monkeypatch.setenv(variable, "10.0.0.1")
    with pytest.raises(InfoldError, match="catalog-url") as caught:
        told(tmp_path, {"type": "jdbc", "uri": uri})
    assert "Java" in dict(caught.value.facts)["why"]


def test_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A credential, or a token, is for the session alone; files are read as with every catalog."""
    monkeypatch.setenv("WORD", PLAIN)
    server = {"type": "rest", "uri": "https://example.com/iceberg", "warehouse": "main"}

    plain, secrets = told(tmp_path, server | {"credential": "shop:${env:WORD}", "scope": "all"})

    assert (plain["type"], plain["warehouse"], plain["scope"]) == ("rest", "main", "all")
    assert plain["io-impl"] == "org.apache.iceberg.hadoop.HadoopFileIO"
    assert secrets == {"uri": server["uri"], "credential": f"shop:{PLAIN}"}
    assert told(tmp_path, server | {"token": "${env:WORD}"})[1]["token"] == PLAIN


def test_a_secret_that_is_not_there(tmp_path: Path) -> None:
    """It is named by the key that needs it, before anything starts."""
    with pytest.raises(InfoldError, match="secret-missing") as caught:
        told(tmp_path, {"type": "rest", "uri": "http://a", "token": "${env:NOT_THERE}"})

    assert dict(caught.value.facts)["key"] == "catalog of target dev"


def test_tables_are_in_the_namespace(tmp_path: Path) -> None:
    """That of the catalog, else of the project's name."""
    catalog = {"type": "rest", "uri": "http://a"}
    assert project(tmp_path, {**catalog, "namespace": "shop_dev"}).namespace == "shop_dev"
    assert project(tmp_path, catalog).namespace == "shop"


NAMES = ("a", "A_1", "Last, First", "x`y", "a<b", "(", "é", "1", "a b", "select")


@pytest.mark.parametrize("name", NAMES)
def test_the_names_of_fields(name: str) -> None:
    """A field of any name, in a list in a map in an object, is found in the text again."""
    of = T.StructType([T.StructField(name, T.DecimalType(9, 2)), T.StructField("z", T.LongType())])
    text = sql_type(T.StructType([T.StructField(name, T.MapType(T.StringType(), T.ArrayType(of)))]))

    assert is_type(text), text
    fields = {"type": "struct", "fields": [
        {"name": name, "type": "decimal(9,2)"}, {"name": "z", "type": "bigint"},
    ]}  # fmt: skip
    array = {"type": "array", "elementType": fields}
    map_ = {"type": "map", "keyType": "string", "valueType": array}
    assert type_of_text(text) == {"type": "struct", "fields": [{"name": name, "type": map_}]}
