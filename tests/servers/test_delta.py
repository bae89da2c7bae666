"""Tables of Delta Lake in an object store without Spark: infold's own, and those of others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.lake.delta.made import Made
from tests.lake.delta.orders import Orders
from tests.lake.delta.test_folders import DeathError, dying, forget, swapped
from tests.servers.azure_store import AzureStore
from tests.servers.google_store import GoogleStore
from tests.servers.object_store import ObjectStore
from tests.servers.store_server import Mirror, StoreServer

from infold.core.formats import Format
from infold.core.model import Source
from infold.core.object_store import StorageOptions, Stores, split
from infold.core.project import Project
from infold.core.storages import Storage
from infold.core.swap import Renaming
from infold.core.target import Target
from infold.lake.reading import delta_table
from infold.lake.stores import places
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.servers

STORES = ["object_store", "google_store", "azure_store"]

of_each = pytest.mark.parametrize("store", STORES, indirect=True)
of_one = pytest.mark.parametrize("store", STORES[:1], indirect=True)
"""Of those whose code is the same for all of them."""


def made_in(store: StoreServer, root: Path, **options: object) -> Made:
    """A warehouse in a bucket of its own, with the tables of ``shop``."""
    warehouse = store.url_of(store.new_bucket(), "warehouse")
    stores = Stores(StorageOptions(**{**store.options, **options}))
    target = Target("dev", warehouse=warehouse, stores=stores, storage=Storage.DELTA)
    places.use(Project("shop", root, None, {}, (), target))
    return Made(warehouse)


@pytest.fixture
def made(store: StoreServer, tmp_path: Path) -> Made:
    """A warehouse behind the gate."""
    return made_in(store, tmp_path)


def objects(made: Made, table: str) -> list[str]:
    """What lies in the folder of a name."""
    return sorted(places.file_names(made.lake.folder(table)))


@of_each
def test_a_table_is_the_same_as_on_a_disk(made: Made) -> None:
    """Rows, versions, sizes, columns and what was lost are found by the log and by its objects."""
    lake = made.lake
    first = made.write("daily", {"n": [1, 2], "x": ["a", "é"]}, "s-1")
    assert lake.is_free("weekly")
    assert not lake.is_free("DAILY")
    before, known = lake.file_list_id("daily"), {"daily": lake.location("daily") or ""}
    second = made.write("daily", {"n": [3], "x": [None]}, "s-2")

    head = lake.metadata("daily")

    assert head is not None
    assert dict(head.steps) == {"s-1": first, "s-2": second}
    assert lake.moved_tables(known) == {"daily": head.location}
    assert lake.file_list_id("daily") != before
    assert lake.rows("daily", where="x = 'é'").to_pylist() == [{"n": 2, "x": "é"}]
    values = lake.string_values("daily", "x", second, 10)
    assert values is not None
    assert sorted(values.to_pylist()) == ["a", "é"]
    assert lake.column_times("daily", "n", first) == [1, 2]
    assert lake.columns("daily", first) == {"n": "long", "x": "string"}
    assert lake.size("daily") > 0
    assert lake.made_tables() == ["daily"]
    assert lake.lost_files("daily") == ()
    [lost, _] = [name for name in objects(made, "daily") if name.endswith(".parquet")]
    places.delete(f"{lake.folder('daily')}/{lost}")
    assert lake.lost_files("daily") == (f"{lake.folder('daily')}/{lost}",)
    assert lake.has_file("daily", f"{lake.folder('daily')}/{lost}".replace("s3:", "s3a:"))


@of_each
def test_a_death_while_two_tables_change_names(
    made: Made, store: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has happened, or the next run does the rest; nothing is left under an old name."""
    points = ["rename daily: before", "rename daily__new: copied"]
    if isinstance(store, ObjectStore):
        points += ["rename daily: copied", "drop daily: after", "delete daily: before"]
        points += ["rename daily__new: before", "drop daily__new: after"]
        points += ["delete daily__new: before", "rename daily__new: after"]
    for at in points:
        made.write("daily", {"n": [1]}, "s-1")
        made.write("daily__new", {"n": [2]}, "s-2")
        made.write("daily__new", {"n": [3]}, "s-3")
        moves = swapped(made)
        with dying(monkeypatch, at):
            made.lake.rename(moves)

        done = made.lake.was_renamed(moves)

        assert done == (at != "rename daily: before")
        if not done:
            assert made.numbers("daily") == [1]
            assert made.lake.rename(moves)
        assert (made.numbers("daily"), made.numbers("daily__old")) == ([2, 3], [1])
        made.lake.drop("daily__new")
        assert objects(made, "daily__new") == []
        assert made.lake.made_tables() == ["daily", "daily__old"]
        made.lake.drop("daily")
        made.lake.drop("daily__old")


@of_one
def test_a_death_in_the_middle_of_a_copy(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a log is an earlier version of the whole table: it is known again, and completed."""
    for n in range(3):
        made.write("daily__new", {"n": [n]}, f"s-{n}")
    made.write("daily", {"n": [9]}, "s-9")
    moves = swapped(made)
    copied = 0

    def copy(location: str, to: str, *, whole: object = places.copy) -> None:
        nonlocal copied
        copied += "daily__new/_delta_log" in location
        if copied == 2:
            raise DeathError
        whole(location, to)  # type: ignore[operator]

    with monkeypatch.context() as patch:
        patch.setattr(places, "copy", copy)
        with pytest.raises(DeathError):
            made.lake.rename(moves)
    assert made.numbers("daily") == [0]

    assert made.lake.was_renamed(moves)

    assert made.numbers("daily") == [0, 1, 2]
    assert objects(made, "daily__new") == []


@pytest.mark.parametrize("real", [False, True])
def test_folders_that_azures_connector_makes(
    azure_store: AzureStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, real: bool
) -> None:
    """They are no tables, are not copied, and go with a table; so do real folders."""
    monkeypatch.setattr(azure_store, "hierarchy", real)
    made = made_in(azure_store, tmp_path)
    made.write("daily", {"n": [1]}, "s-1")
    objects = next(reversed(azure_store.containers.values()))
    above = ("", "/shop", "/shop/daily", "/shop/daily/_delta_log", "/shop/daily/_partition=2024")
    for name in above:
        objects[f"warehouse{name}"] = azure_store.new(folder=True)
    assert made.lake.made_tables() == ["daily"]
    places.write(f"{made.lake.folder('daily')}/_partition=2024/a.parquet", b"a")
    moves = [Renaming("daily", "weekly", made.lake.location("daily") or "")]

    assert made.lake.rename(moves)

    assert made.numbers("weekly") == [1]
    assert [name for name in objects if "daily" in name] == []
    assert made.lake.is_free("daily")
    assert not [name for name, one in objects.items() if "weekly" in name and one.folder]
    made.lake.drop("weekly")
    assert [*objects] == ["warehouse", "warehouse/shop"]


def test_a_folder_that_googles_connector_makes(google_store: GoogleStore, tmp_path: Path) -> None:
    """Its key ends in a slash, and obstore cannot delete it: the name is free all the same."""
    made = made_in(google_store, tmp_path)
    made.write("daily", {"n": [1]}, "s-1")
    bucket, key = split(made.lake.folder("daily"))
    google_store.make_folder(bucket, f"{key}/_delta_log")
    assert not made.lake.is_free("Daily")

    made.lake.drop("daily")

    assert made.lake.is_free("Daily")
    assert made.lake.made_tables() == []
    made.write("daily", {"n": [2]}, "s-2")
    assert made.numbers("daily") == [2]


@of_each
def test_a_dropped_table_is_gone_at_once(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one object; the rest goes with the next drop, and no table is made of it."""
    made.write("daily", {"n": [1]}, "s-1")
    with dying(monkeypatch, "drop daily: after"):
        made.lake.drop("daily")
    assert made.lake.location("daily") is None
    assert made.lake.made_tables() == []
    assert objects(made, "daily")

    assert not made.lake.drop("daily")

    assert objects(made, "daily") == []
    assert not made.lake.drop("daily")


def test_old_versions_go_with_their_objects(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that no kept version needs, once they are older than any clock may be wrong."""
    made = made_in(object_store, tmp_path, endpoint=object_store.direct)
    snapshots = [made.write("daily", {"n": [n]}, f"s-{n}", mode="overwrite") for n in range(6)]
    forget(made, "daily", 4)
    assert made.lake.history("daily").main == (snapshots[5], snapshots[4])
    assert len([name for name in objects(made, "daily") if name.startswith("part-")]) == 6
    monkeypatch.setattr("infold.lake.delta.expiry._SKEW", -60)
    made.write("daily", {"n": [6]}, "s-6", mode="overwrite")

    forget(made, "daily", 5)

    data = [name for name in objects(made, "daily") if name.startswith("part-")]
    assert len(data) == 2
    assert made.lake.column_times("daily", "n", snapshots[5]) == [5]
    made.lake.set_back("daily", snapshots[5])
    assert made.numbers("daily") == [5]


@of_one
def test_a_version_that_is_written_over(made: Made) -> None:
    """The table has moved, though its newest version has the same number, and lacks the step."""
    made.write("daily", {"n": [1]}, "s-1")
    second = made.write("daily", {"n": [2]}, "s-2")
    known = {"daily": made.lake.location("daily") or ""}
    log = made.lake.log("daily")
    assert log is not None
    other = {"commitInfo": {"timestamp": 1}}, {"add": {"path": "x.parquet", "dataChange": True}}
    places.write(log.file(1), "\n".join(json.dumps(action) for action in other).encode())

    assert [*made.lake.moved_tables(known)] == ["daily"]
    head = made.lake.metadata("daily")
    assert head is not None
    assert ([*head.steps], head.foreign, head.snapshot) == (["s-1"], 1, second)


@of_each
def test_an_answer_that_is_cut_off(made: Made, store: StoreServer) -> None:
    """What is missing of a file is asked for: no row is lost."""
    for n in range(2):
        made.write("daily", {"n": [n]}, f"s-{n}")
    with store.rule("GET", r"\.(parquet|json)|%2E(parquet|json)", cut=True, every=2) as cut:
        assert made.numbers("daily") == [0, 1]
    assert cut.met > 3


@of_each
def test_a_version_is_asked_for_once(made: Made, store: StoreServer) -> None:
    """What is new is found by one listing of the log; a version that was read is known."""
    for n in range(5):
        made.write("daily", {"n": [n]}, f"s-{n}")
    known = {"daily": made.lake.location("daily") or ""}
    assert made.lake.metadata("daily")

    def asked(what: Callable[[], object]) -> int:
        store.seen.clear()
        what()
        return store.seen.total()

    assert asked(lambda: made.lake.moved_tables(known)) == 1
    assert asked(lambda: made.lake.metadata("daily")) == 1
    made.write("daily", {"n": [5]}, "s-5")
    assert asked(lambda: made.lake.metadata("daily")) <= 2


@of_each
def test_what_the_store_refuses(made: Made, store: StoreServer) -> None:
    """It is named, whichever library asked."""
    made.write("daily", {"n": [1]}, "s-1")
    for status, code, slug in (
        (403, "AccessDenied", "store-access-denied"),
        (400, "ExpiredToken", "store-credentials-refused"),
        (404, "NoSuchBucket", "store-bucket-missing"),
    ):
        for path in (".parquet", "_delta_log"):
            with (
                store.rule("GET", path, status=status, code=code),
                pytest.raises(InfoldError) as refused,
            ):
                made.lake.rows("daily")
            assert refused.value.slug == slug


class Written:
    """A table as somebody else writes it into a bucket, and a project that reads it."""

    def __init__(
        self, store: StoreServer, root: Path, place: str, *, marks_in_files: bool = False
    ) -> None:
        self.store = store
        self.orders = Orders(root / "written" / "orders", 1, marks_in_files=marks_in_files)
        self.url = store.url_of(store.new_bucket(), place)
        self.mirror = Mirror(store, self.orders.folder, self.url)
        self.source = Source("raw.orders", Format.DELTA, (), path=f"{self.url}/")
        target = Target("dev", stores=Stores(StorageOptions(**store.options)))
        root = root / "project"
        (root / ".infold").mkdir(parents=True)
        sources = {"raw.orders": self.source}
        self.project = Project("shop", root, None, sources, (), target)

    def files(self) -> Mapping[str, str]:
        """The fingerprints of the source's files, by URL."""
        found = delta_table.table_files(self.project, self.source)
        return {file.path: file.fingerprint for file in found}

    def problem(self) -> InfoldError:
        """What listing raises."""
        with pytest.raises(InfoldError) as raised:
            self.files()
        return raised.value


@pytest.fixture
def written(store: StoreServer, tmp_path: Path) -> Written:
    """A table below a name that needs care in URLs."""
    return Written(store, tmp_path, "lake/a b#é%/orders")


@of_each
@pytest.mark.parametrize(
    ("place", "marks_in_files"), [("lake/a b#é%/orders", False), ("lake/orders", True)]
)
def test_its_files_are_objects(
    store: StoreServer, tmp_path: Path, place: str, marks_in_files: bool
) -> None:
    """Each is there by its URL; they differ exactly where rows may; what is deleted is known."""
    written = Written(store, tmp_path, place, marks_in_files=marks_in_files)
    orders = written.orders
    for _ in range(3):
        orders.append()
    written.mirror()
    first = written.files()
    assert len(first) > 5
    bucket = written.store.bucket(split(written.url)[0])
    for url in first:
        assert bucket.head(split(url)[1]).size > 0

    for _ in range(4):
        orders.mark()
    written.mirror()
    marked = written.files()
    assert first.keys() == marked.keys()
    changed = {url for url in first if first[url] != marked[url]}
    table = delta_table.table_now(written.project, written.source)
    assert {*table.deleted} == changed != set()
    assert {*table.partitions["_path"].to_pylist()} == first.keys()
    assert {*table.partitions["kind"].to_pylist()} >= {row[3] for row in orders.rows.values()}


def test_files_of_deleted_rows_that_deltalake_does_not_find(
    object_store: ObjectStore, tmp_path: Path
) -> None:
    """It looks for them in a folder of another name where a URL escapes it: no row comes back."""
    written = Written(object_store, tmp_path, "lake/a b/orders", marks_in_files=True)
    written.orders.append()
    for _ in range(4):
        written.orders.mark()
    written.mirror()

    error = written.problem()

    assert error.slug == "delta-source-unreadable"
    assert "deletion_vector" in dict(error.facts)["why"]


@of_each
def test_an_unchanged_table_costs_two_requests(written: Written) -> None:
    """
    Its log's end is asked for, which is what comes after the last checkpoint; no other file is
    read. What is new there is found, and a table made anew is another.
    """
    for _ in range(3):
        written.orders.append()
    written.orders.table.create_checkpoint()
    written.orders.append()
    written.mirror()
    before = written.files()
    log = f"{written.url}/_delta_log"
    assert min(places.marks(log, f"{2:020}")) == f"{2:020}.checkpoint.parquet"
    written.store.seen.clear()

    assert written.files() == before
    assert written.store.seen.total() == 2

    written.orders.append()
    written.mirror()
    after = written.files()
    assert before.items() < after.items()
    shutil.rmtree(written.orders.folder)
    written.orders.append()
    written.mirror()
    assert not after.keys() & written.files().keys()


@of_each
def test_there_is_no_table(written: Written) -> None:
    """Nothing below the place, files of nobody's, and no bucket: each is said."""
    assert dict(written.problem().facts)["why"] == "it does not exist"
    written.store.put(f"{written.url}/part-0.parquet", b"PAR1")
    error = written.problem()
    assert (error.slug, dict(error.facts)["why"]) == ("no-delta-table", "it has no _delta_log")
    assert dict(error.facts)["folder"] == written.url


_LIST, _COMMIT = "prefix=|comp=list", r"0(\.|%2E)json"


@of_each
def test_what_the_store_refuses_of_a_source(written: Written) -> None:
    """It is named, whichever library asked; the kept listing is as it was."""
    written.orders.append()
    written.mirror()
    for path, status, code, slug in (
        (_LIST, 403, "AccessDenied", "store-access-denied"),
        (_LIST, 404, "NoSuchBucket", "store-bucket-missing"),
        (_COMMIT, 403, "AccessDenied", "store-access-denied"),
        (_COMMIT, 503, "SlowDown", "store-failed"),
    ):
        with written.store.rule("GET", path, status=status, code=code) as rule:
            assert written.problem().slug == slug
        assert rule.met
    assert written.files()


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("s3://elsewhere/orders/part-0.parquet", "delta-source-unreadable"),
        ("hdfs://name:8020/orders/part-0.parquet", "delta-source-unreadable"),
        ("at=2024-03-01%2010:00:00/part-0.parquet", "bad-file-name"),
    ],
)
def test_files_that_nobody_may_read(
    object_store: ObjectStore, tmp_path: Path, path: str, slug: str
) -> None:
    """Those of a shallow clone are elsewhere; one with a colon in its name is not Spark's."""
    written = Written(object_store, tmp_path, "orders")
    written.orders.append()
    log = written.orders.folder / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    added = next(one["add"] for one in lines if "add" in one)
    commit = json.dumps({"add": {**added, "path": path}})
    log.with_name(f"{1:020}.json").write_text(commit, encoding="utf-8")
    written.mirror()

    assert written.problem().slug == slug
