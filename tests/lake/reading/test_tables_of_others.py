"""Tables of others as sources: of Delta Lake, by folder or by name, and of Iceberg."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.lake.delta.vectors import PROTOCOL, commit, deleting
from tests.lake.iceberg.owner import Owner
from tests.lake.made_up_hive import MadeUpHive, connected

from infold.core.files import ListedFile
from infold.core.formats import Format
from infold.core.model import Column, Source
from infold.core.object_store import StorageOptions, Stores
from infold.core.project import Project
from infold.core.storages import Catalog, CatalogType
from infold.core.target import Target
from infold.lake.reading import delta_table
from infold.lake.reading.delta_table import ColumnMapping, table_files
from infold.lake.reading.iceberg_table import data_files
from infold.lake.stores import places
from infold.messages.errors import InfoldError

NAMES = ("a", "b c", "é%41:=/#?")
"""Values of the column that the table is partitioned by; each is the name of a folder."""


class Written:
    """A table as somebody else writes it, and a project that reads it."""

    def __init__(self, root: Path, path: str) -> None:
        self.root, self.folder = root, root / path
        self.source = Source("raw.orders", Format.DELTA, (), path=path)
        self.project = Project("shop", root, None, {}, (), Target("dev"))

    def append(self, *ids: int, **options: Any) -> None:
        """Rows, two for each file."""
        rows = pa.table({"id": list(ids), "name": [NAMES[i % len(NAMES)] for i in ids]})
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        write_deltalake(self.folder.as_uri(), rows, mode="append", **options)

    @property
    def stored(self) -> DeltaTable:
        """The table as delta-rs sees it."""
        return DeltaTable(self.folder.as_uri())

    def files(self) -> Mapping[str, str]:
        """The fingerprints of the source's files, by path."""
        found = delta_table.table_files(self.project, self.source)
        return {file.path: file.fingerprint for file in found}

    def commit(self, *actions: Mapping[str, Any]) -> None:
        """A commit of these actions."""
        commit(self.folder, *actions)

    def change(
        self,
        protocol: Mapping[str, Any],
        configuration: Mapping[str, str],
        column: Callable[[int], Mapping[str, Any]],
        *more: Mapping[str, Any],
    ) -> None:
        """A commit of another protocol and other metadata, ``column`` of the n-th column."""
        log = self.folder / "_delta_log" / f"{0:020}.json"
        actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        about = next(one["metaData"] for one in actions if "metaData" in one)
        schema = json.loads(about["schemaString"])
        schema["fields"] += [{"nullable": True, **one} for one in more]
        for number, one in enumerate(schema["fields"], 1):
            one["metadata"] = {**column(number)}
        changed = {"schemaString": json.dumps(schema), "configuration": configuration}
        self.commit({"protocol": protocol}, {"metaData": {**about, **changed}})

    def map(
        self, mode: str, stored: Sequence[str], *more: Mapping[str, Any], ids: Sequence[int] = ()
    ) -> None:
        """From now on columns have these names in files, in the order of the table's columns."""
        self.change(
            {"minReaderVersion": 2, "minWriterVersion": 5},
            {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "9"},
            lambda at: {
                "delta.columnMapping.id": ids[at - 1] if ids else at,
                "delta.columnMapping.physicalName": stored[at - 1],
            },
            *more,
        )

    def delete(self, positions: Sequence[int], before: Sequence[int], file: int) -> None:
        """Let rows of a file be deleted, one of those that the first commit added."""
        first = (self.folder / "_delta_log" / f"{0:020}.json").read_text(encoding="utf-8")
        actions = [json.loads(line) for line in first.splitlines()]
        add = sorted((one["add"] for one in actions if "add" in one), key=lambda one: one["path"])
        self.commit(PROTOCOL, *deleting(add[file], positions, before))

    def problem(self) -> InfoldError:
        """What listing raises."""
        with pytest.raises(InfoldError) as raised:
            self.files()
        return raised.value


@pytest.fixture(params=["lake/orders", "../outside/a b#é%"])
def written(tmp_path: Path, request: pytest.FixtureRequest) -> Written:
    """A table in the project, or elsewhere in a folder whose name needs care in URLs."""
    root = tmp_path / "project"
    (root / ".infold").mkdir(parents=True)
    return Written(root, request.param)


class TestFiles:
    """Which files a table has, and when one is another."""

    def test_each_file_is_there_where_its_path_says(self, written: Written) -> None:
        """
        Paths inside the project are relative; names of partitions are those on the disk. Appended
        rows are new files, those that were there stay what they were.
        """
        written.append(0, 1, 2, 3, 4, 5, partition_by=["name"])
        found = written.files()

        assert len(found) == len(NAMES)
        assert all((written.root / path).is_file() for path in found)
        outside = ".." in written.folder.parts
        assert {Path(path).is_absolute() for path in found} == {outside}
        written.append(3, partition_by=["name"])
        assert found.items() < written.files().items()

    def test_deleted_rows_change_their_file_alone(self, written: Written) -> None:
        """Each set of deleted rows is another version of the file; the same set is the same."""
        written.append(*range(12), partition_by=["name"])
        seen = [written.files()]
        for before, positions in (((), [1]), ([1], [1, 3]), ([1, 3], [1])):
            written.delete(positions, before, file=1)
            seen.append(written.files())

        changed = {path for path in seen[0] if seen[0][path] != seen[1][path]}
        assert len(changed) == 1
        assert seen[1] != seen[2]
        assert seen[1] == seen[3]
        table = delta_table.table_now(written.project, written.source)
        assert {path: rows.to_pylist() for path, rows in table.deleted.items()} == {
            changed.pop(): [1]
        }

    def test_a_link_to_a_table(self, written: Written, tmp_path: Path) -> None:
        """Its files have the paths that the project gives them, and deleted rows are theirs."""
        written.append(*range(12), partition_by=["name"])
        written.delete([1], (), file=1)
        link = tmp_path / "linked table"
        link.symlink_to(written.folder)
        linked = Source("raw.orders", Format.DELTA, (), path="../linked table")

        found = delta_table.table_now(written.project, linked)

        assert [path for path in found.deleted if path.startswith(str(link))] == [*found.deleted]
        assert {*found.deleted} < {file.path for file in found.listed}

    def test_old_versions_do_not_matter(self, written: Written) -> None:
        """
        What was found is kept for the version: the log before its newest commit is not read again.
        Vacuumed and after a checkpoint without the log before it, the files are the same.
        """
        for i in range(4):
            written.append(i)
        before, log = written.files(), written.folder / "_delta_log"
        first = (log / f"{0:020}.json").read_bytes()
        (log / f"{0:020}.json").write_text("damaged", encoding="utf-8")
        assert written.files() == before
        (log / f"{0:020}.json").write_bytes(first)
        stored = written.stored
        stored.optimize.compact()
        stored.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        stored.create_checkpoint()
        before = written.files()
        for version in range(4):
            (log / f"{version:020}.json").unlink()
        shutil.rmtree(written.root / ".infold")

        assert written.files() == before
        assert len(before) == 1

    def test_a_table_made_anew_is_another(self, written: Written) -> None:
        """Its version has the number of the old one's, and none of its files."""
        written.append(0)
        before = written.files()
        shutil.rmtree(written.folder)
        written.append(0)

        assert not before.keys() & written.files().keys()


IDENTITY = {
    "delta.identity.start": 1,
    "delta.identity.step": 1,
    "delta.identity.highWaterMark": 3,
    "delta.identity.allowExplicitInsert": False,
}
"""Of a column whose values the writer numbers."""


@pytest.mark.parametrize(
    ("version", "by_name", "configuration", "column"),
    [
        (6, {}, {}, IDENTITY),
        (7, {"writerFeatures": ["identityColumns"]}, {}, IDENTITY),
        (4, {}, {}, {"delta.generationExpression": "'a'"}),
        (4, {}, {"delta.constraints.some": "id < 9", "delta.enableChangeDataFeed": "true"}, {}),
    ],
    ids=["identity", "identity by name", "generated", "constraints and change data"],
)
def test_what_only_writers_need(
    written: Written,
    version: int,
    by_name: Mapping[str, Any],
    configuration: Mapping[str, str],
    column: Mapping[str, Any],
) -> None:
    """How a table may be written does not change what its rows are: its files are the same."""
    written.append(0, 1, 2)
    before = written.files()
    protocol = {"minReaderVersion": 1, "minWriterVersion": version, **by_name}

    written.change(protocol, configuration, lambda at: column if at == 1 else {})

    assert written.files() == before
    table = delta_table.table_now(written.project, written.source)
    assert [one["name"] for one in json.loads(table.schema_json)["fields"]] == ["id", "name"]


def mapped(number: int, **field: Any) -> dict[str, Any]:
    """A field of a struct, called something else in files."""
    about = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return {"name": "w", "type": "string", "nullable": True, "metadata": about, **field}


def deep(inner: Mapping[str, Any]) -> dict[str, Any]:
    """A column of a list of structs with this field."""
    struct = {"type": "struct", "fields": [inner]}
    lists = {"type": "array", "elementType": struct, "containsNull": True}
    return {"name": "deep", "type": lists}


class TestMappedNames:
    """Columns with other names in files: by these the files are read, and change where one does."""

    @staticmethod
    def seen(written: Written, *columns: tuple[str, str]) -> list[set[str]]:
        """The files of a source of all columns, and of one for each of these."""
        some = [replace(written.source, columns=(Column(*one),)) for one in columns]
        found = [delta_table.table_files(written.project, one) for one in (written.source, *some)]
        return [{file.fingerprint for file in files} for files in found]

    def test_a_name_moves_to_another_column(self, written: Written) -> None:
        """
        As long as all have the names that they had, no file is another one. Then all files give
        other values: if the column is asked for, or if all are.
        """
        written.append(0, 1)
        seen = [self.seen(written, ("id", "bigint"))]
        for stored in (("id", "name"), ("id", "col-2"), ("col-1", "col-2")):
            written.map("name", stored)
            seen.append(self.seen(written, ("id", "bigint")))

        assert seen[0] == seen[1]
        assert seen[1][0] != seen[2][0] != seen[3][0]
        assert seen[1][1] == seen[2][1] != seen[3][1]
        table = delta_table.table_now(written.project, written.source)
        assert table.mapping == ColumnMapping(names={("id",): "col-1", ("name",): "col-2"})

    def test_a_name_moves_to_another_id(self, written: Written) -> None:
        """By ids the same: what a column is called in the log's names for files does not matter."""
        written.append(0, 1)
        seen = []
        for stored, ids in ((("id", "name"), (1, 2)), (("a", "b"), (1, 2)), (("a", "b"), (1, 3))):
            written.map("id", stored, ids=ids)
            seen.append(self.seen(written, ("id", "bigint")))

        assert seen[0] == seen[1]
        assert seen[1][0] != seen[2][0]
        assert seen[1][1] == seen[2][1]
        table = delta_table.table_now(written.project, written.source)
        assert table.mapping == ColumnMapping(ids={("id",): 1, ("name",): 3})

    @pytest.mark.parametrize("mode", ["name", "id"])
    def test_a_name_moves_within_a_struct(self, written: Written, mode: str) -> None:
        """All files are others for whoever asks for the column, at whatever depth it is. Of one
        that is not mapped nothing says which field of a file it is: deltalake opens no such table.
        """
        seen = []
        written.append(0, 1)
        for number in (8, 9):
            written.map(mode, ("id", "name", "deep"), deep(mapped(number)))
            seen.append(self.seen(written, ("id", "bigint"), ("deep", "array<struct<w:string>>")))

        first, second = seen
        assert first[0].isdisjoint(second[0])
        assert first[1] == second[1]
        assert first[2].isdisjoint(second[2])
        mapping = delta_table.table_now(written.project, written.source).mapping
        at: Mapping[Any, Any] = mapping.names or mapping.ids
        assert at["deep", "element", "w"] == ("col-9" if mode == "name" else 9)

        inner = mapped(9)
        del inner["metadata"][f"delta.columnMapping.{'physicalName' if mode == 'name' else 'id'}"]
        written.map(mode, ("id", "name", "deep"), deep(inner))
        error = written.problem()
        assert error.slug == "delta-source-unreadable"
        assert "w' lacks" in dict(error.facts)["why"]


_FEATURES = {one: ["timeTravelToTomorrow"] for one in ("readerFeatures", "writerFeatures")}
TOMORROW = {"minReaderVersion": 3, "minWriterVersion": 7, **_FEATURES}


class TestBadTables:
    """What is no table that can be read is an error by name, with the source's."""

    def test_no_table(self, written: Written) -> None:
        """A folder that is not there, or one of Parquet files."""
        for why in ("it does not exist", "it has no _delta_log"):
            error = written.problem()
            assert (error.slug, dict(error.facts)["why"]) == ("no-delta-table", why)
            assert dict(error.facts)["folder"] == str(Path(written.folder).resolve())
            written.folder.mkdir(parents=True, exist_ok=True)

    def test_another_column_mapping(self, written: Written) -> None:
        """One that the protocol does not have is refused, before a file of the table is read."""
        written.append(0)
        written.map("place", ("col-1", "col-2"))

        error = written.problem()

        assert error.slug == "delta-feature"
        assert dict(error.facts)["feature"] == "column mapping (place)"
        assert dict(error.facts)["table"] == str(written.folder.resolve())

    @pytest.mark.parametrize(
        ("commit", "says"),
        [
            ('{"protocol": {"minReaderVersion": 4, "minWriterVersion": 8}}', "reader version 4"),
            (json.dumps({"protocol": TOMORROW}), "timeTravelToTomorrow"),
            ("{", ""),
        ],
        ids=["version", "feature", "damaged"],
    )
    def test_a_commit_that_cannot_be_read(self, written: Written, commit: str, says: str) -> None:
        """A protocol that deltalake does not know, in its own words, or no JSON."""
        written.append(0)
        file = written.folder / "_delta_log" / f"{1:020}.json"
        file.write_text(commit, encoding="utf-8")

        error = written.problem()

        assert error.slug == "delta-source-unreadable"
        assert says in dict(error.facts)["why"]


SOURCE = Source(
    "raw.orders",
    Format.DELTA,
    (),
    table="Sales.Orders",
    catalog=Catalog(CatalogType.HIVE, uri="thrift://hms:9083"),
)


_S3 = ("s3", "s3a", "s3n")
_HOST = "own.dfs.core.windows.net"


@pytest.fixture
def hive(monkeypatch: pytest.MonkeyPatch) -> MadeUpHive:
    """A metastore with a namespace of others."""
    found = connected(monkeypatch)
    found.databases.add("sales")
    return found


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """One with tables in a bucket, and a container beside it."""
    stores = Stores(buckets=((f"a@{_HOST}", StorageOptions(account_key="k")),))
    target = Target("dev", warehouse="s3://own/w", stores=stores)
    return Project("shop", tmp_path / "project", None, {}, (), target)


def made(folder: Path, *ids: int) -> Path:
    """A table of Delta Lake."""
    folder.mkdir(parents=True)
    write_deltalake(folder.as_uri(), pa.table({"id": list(ids)}))
    return folder


def files(project: Project) -> tuple[ListedFile, ...]:
    """Those of the source."""
    return table_files(project, SOURCE)


def problem(project: Project) -> InfoldError:
    """What listing raises."""
    with pytest.raises(InfoldError) as raised:
        files(project)
    return raised.value


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "{}", "file:{}/"])
def test_a_folder_of_this_machine(
    project: Project, hive: MadeUpHive, tmp_path: Path, form: str
) -> None:
    """
    In each form that engines write; nothing in it is escaped, names have small letters, and Trino
    writes the provider in capital ones. By its path it has the same files: none is read again.
    """
    folder = made(tmp_path / "a b#é%" / "orders", 1, 2)
    hive.put("sales", "orders", form.format(folder), **{"spark.sql.sources.provider": "DELTA"})

    (file,) = found = files(project)

    assert Path(file.path).parent == folder
    by_path = replace(SOURCE, table=None, catalog=None, path=str(folder))
    assert found == table_files(project, by_path)


@pytest.mark.parametrize(
    ("at", "place"),
    [
        *((f"{scheme}://own/lake/orders/", "s3://own/lake/orders") for scheme in _S3),
        ("s3a://other/orders", "s3://other/orders"),
        (f"abfss://a@{_HOST}/orders", f"abfss://a@{_HOST}/orders"),
    ],
)
def test_a_store_of_the_target(
    project: Project, hive: MadeUpHive, monkeypatch: pytest.MonkeyPatch, at: str, place: str
) -> None:
    """By one name, however engines call it: else each other form would be other files."""
    asked: list[str] = []
    monkeypatch.setattr(delta_table, "newest", asked.append)
    monkeypatch.setattr(places, "is_folder", lambda _: True)
    hive.put("sales", "orders", at)

    assert problem(project).slug == "no-delta-table"

    assert asked == [place]
    places.forget_ways()


@pytest.mark.parametrize(
    ("at", "why"),
    [
        ("gs://own/lake/orders", "target dev does not say how gs://own is reached"),
        ("abfss://a@other.dfs.core.windows.net/orders",
         "target dev does not say how abfss://a@other.dfs.core.windows.net is reached"),
        ("dbfs:/orders", "infold does not read dbfs:"),
        ("orders", "it is no absolute path, nor a URL"),
        ("hdfs://name:8020/orders", None),
    ],
)  # fmt: skip
def test_another_place(project: Project, hive: MadeUpHive, at: str, why: str | None) -> None:
    """One for which nothing says how it is reached, or that nothing here reads. In HDFS files are
    read, and no table of Delta Lake: by a path neither.
    """
    hive.put("sales", "orders", at)

    error = problem(project)

    facts = dict(error.facts)
    assert (error.slug, facts.pop("at")) == ("delta-source-elsewhere", at)
    assert facts.get("why", "").startswith(why or "")
    if why is None:
        with pytest.raises(InfoldError) as by_path:
            table_files(project, replace(SOURCE, path=at, table=None, catalog=None))
        assert (by_path.value.slug, by_path.value.facts) == (error.slug, error.facts)
        assert facts == {}


@pytest.mark.parametrize(
    ("at", "parameters", "kind"),
    [
        ("file:/srv/orders", {"spark.sql.sources.provider": "parquet"}, "a table of parquet"),
        ("file:/srv/orders", {"spark.sql.sources.provider": ""}, "a table of Hive"),
        ("file:/srv/orders", {"spark.sql.sources.provider": "", "table_type": "ICEBERG"},
         "a table of iceberg"),
        ("", {}, "a view"),
    ],
)  # fmt: skip
def test_another_table(
    project: Project, hive: MadeUpHive, at: str, parameters: dict[str, str], kind: str
) -> None:
    """It is said what it is."""
    hive.put("sales", "orders", at, **parameters)
    entry = hive.tables["sales", "orders"]
    entry.parameters = {name: text for name, text in entry.parameters.items() if text}

    error = problem(project)

    assert (error.slug, dict(error.facts)["it is"]) == ("delta-other-entry", kind)


def test_nothing_of_that_name(project: Project, hive: MadeUpHive) -> None:
    """Whether or not there is the namespace; one that does not answer is named as the source's."""
    for _ in range(2):
        error = problem(project)
        assert error.slug == "no-such-table"
        assert dict(error.facts)["catalog"] == "thrift://hms:9083"
        hive.databases.clear()
    hive.down = True

    error = problem(project)

    assert error.slug == "catalog-unreachable"
    assert dict(error.facts)["key"] == "catalog of source raw.orders"


def test_a_folder_that_is_not_here(project: Project, hive: MadeUpHive, tmp_path: Path) -> None:
    """
    As on another machine, or without a table in it; the error says what led there. A table that is
    made anew elsewhere has other files, though name and version are those of the one before.
    """
    (project.root / ".infold").mkdir(parents=True)
    hive.put("sales", "orders", f"file:{tmp_path}/none")
    assert dict(problem(project).facts)["why"] == "it does not exist"
    (tmp_path / "none").mkdir()
    error = problem(project)
    assert error.slug == "no-delta-table"
    facts = {"folder": f"{tmp_path}/none", "why": "it has no _delta_log"}
    assert dict(error.facts) == {"table": "Sales.Orders", **facts}

    found = []
    for name in ("first", "second"):
        hive.put("sales", "orders", f"file:{made(tmp_path / name, 1)}")
        found.append({file.path for file in files(project)})

    assert all(found)
    assert found[0].isdisjoint(found[1])


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    """Of a table with a file."""
    owner = Owner(tmp_path, f"file://{tmp_path / 'lake'}")
    owner.append(a=1)
    return owner


def fingerprint(owner: Owner) -> str:
    """Of the table's one file, for a source that declares some columns."""
    [file] = data_files(owner.table.metadata_location, ["id", "v"])
    return file.fingerprint


def test_names_in_files_that_say_which_column_is_meant(owner: Owner) -> None:
    """Who sets or changes the table's name mapping gives its files other values. Names of columns
    that are not asked for change nothing: a column that the table gains gets names too.
    """
    found = [fingerprint(owner)]
    for names in (("v",), ("v", "w"), ("w",), ()):
        owner.map_names(*names)
        found.append(fingerprint(owner))
    assert len({*found}) == len(found)

    owner.map_names("v")
    assert fingerprint(owner) == found[1]
    owner.map_names("v", other=9)
    assert fingerprint(owner) == found[1]


@pytest.mark.parametrize("text", ["{", "7", "[7]", "[{}]", '[{"field-id": 1}]', "null", " "])
def test_a_mapping_that_is_none(owner: Owner, text: str) -> None:
    """It is an owner's text: whatever it is, the listing goes on, and it counts as another one."""
    before = fingerprint(owner)
    with owner.table.transaction() as change:
        change.set_properties({"schema.name-mapping.default": text})
    assert fingerprint(owner) != before or text == "[{}]"
