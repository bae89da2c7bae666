"""Files with any name and in any state are read, set aside, or named in an error; none is lost."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.project import WHOLE
from tests.spark.reading.folder import Folder
from tests.spark.reading.landing import COLUMNS, MODEL, LandingProject
from tests.spark.time_range.daily_project import DAILY, DailyProject, model

from infold import api
from infold.core.files import folder_values
from infold.core.model import Column, Drift
from infold.core.report import RunFailed
from infold.messages.errors import InfoldError
from infold.spark.reading.paths import LINKS, takeable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


NAMES = (
    "2024-03-08T10:00:00.json", "a:[1].json", "a:b/x.json", "c:[d]/x.json", "x[1].json",
    "{a,b}.json", "s*r.json", "q?.json", "p%20q.json", "h#h.json", "b\\s.json", "b\\:s.json",
    "sp ace.json", " lead.json", "a\nb.json", "ü:ü.json", "file:.json", "x:y.json.gz", "-.json",
    "q\"u'o.json", "\u200c\u200bx.json", "\ufeff.json", "a\u00adb.json", "a\u00a0b.json",
    "\u2028.json", "\u0085.json", "\ue000.json", "\u0378.json", "\U000e0001.json", "..",
    "x..json", "e\u0301.json", "\U0001f600.json",
)  # fmt: skip


@pytest.mark.spark
def test_files_with_any_name(tmp_path: Path, warehouse: Path) -> None:
    """Files whose names have colons, patterns, escapes,
    blanks or any letters are read, and removed when deleted.
    """
    land = LandingProject(tmp_path / "p [1]", warehouse, "landing/**")
    names = [name for name in NAMES if name != ".."]
    for name in names:
        line = json.dumps({"id": name, "at": "2024-03-01"}) + "\n"
        land.put(name, gzip.compress(line.encode()) if name.endswith(".gz") else line)
    land.put("_not_yet.json", "{")
    land.put(".hidden/x.json", "{")
    land.declare("format: json")
    assert land.run().arrived == len(names)
    assert land.values() == sorted(names)
    (land.root / "landing" / NAMES[0]).unlink()
    land.run()
    assert land.values() == sorted(names[1:])


MANY = pa.table({"id": [str(at) for at in range(10_000)], "at": ["2024-03-01"] * 10_000})
GOOD = {
    "json": '{"id":"good","at":"2024-03-01"}\n',
    "csv": "id,at\ngood,2024-03-01\n",
    "parquet": MANY.slice(0, 1).set_column(0, "id", pa.array(["good"])),
}


def several(
    land: LandingProject, kinds: Sequence[str], keys: str = "", columns: str = COLUMNS
) -> None:
    """Declare a source of each format, with its files in a folder of its own."""
    sources = "".join(
        f"  raw.{kind}:\n    path: landing/{kind}\n    format: {kind}\n    {keys}\n"
        f"    event_time_column: at\n    columns: {columns}\n"
        for kind in kinds
    )
    land.declare_all(sources)
    (land.root / "models" / "c.sql").unlink(missing_ok=True)


def spoilt(land: LandingProject) -> set[str]:
    """Files that cannot be read, with a good one beside each; their paths."""
    lines = "".join(f'{{"id":"{at}","at":"2024-03-01"}}\n' for at in range(20_000))
    rows = b"id,at\n" + b"".join(b"%d,2024-03-01\n" % i for i in range(19_999))
    for name, content in (("json/cut.json.gz", lines.encode()), ("csv/cut.csv.gz", rows)):
        packed = gzip.compress(content)
        land.put(name, packed[: len(packed) // 2])
    land.put("parquet/brotli.parquet", MANY, compression="brotli", use_dictionary=False)
    whole = land.put("parquet/cut.parquet", MANY, use_dictionary=False).read_bytes()
    land.put("parquet/cut.parquet", whole[: len(whole) // 2])
    land.put("parquet/damaged.parquet", whole[:200] + b"\xff" * 5_000 + whole[5_200:])
    bad = {f"landing/{path.parent.name}/{path.name}" for path in land.root.glob("landing/*/*")}
    for kind, content in GOOD.items():
        land.put(f"{kind}/good.{kind}", content)
    return bad


@pytest.mark.spark
def test_files_that_cannot_be_read_are_named_or_set_aside(tmp_path: Path, warehouse: Path) -> None:
    """Unreadable files are named in an error or set aside,
    by choice, and ingested once they are corrected.
    """
    land = LandingProject(tmp_path, warehouse, "landing")
    bad = spoilt(land)
    several(land, [*GOOD])
    for kind in GOOD:
        land.model(f"of_{kind}", MODEL.replace("raw.c", f"raw.{kind}"))
    found = land.failures()
    assert found.keys() == {f"of_{kind}" for kind in GOOD}
    for name, error in found.items():
        assert error.slug == "unreadable-file"
        named = dict(error.facts)["file"]
        assert named in bad
        assert named.startswith(f"landing/{name.removeprefix('of_')}/")

    several(land, [*GOOD], "on_unreadable: set_aside")
    done = land.receipts()
    assert {name: dict(one.set_aside_by) for name, one in done.items()} == {
        "of_json": {"unreadable": 1},
        "of_csv": {"unreadable": 1},
        "of_parquet": {"unreadable": 3},
    }
    assert {land.values(f"of_{kind}")[0] for kind in GOOD} == {"good"}
    aside = land.whole_aside()
    assert {file for file, _ in aside} == bad
    assert all(why.startswith("unreadable: ") for _, why in aside)

    for file in bad:
        (land.root / file).unlink()
        kind = Path(file).parent.name
        land.put(f"{kind}/bad.{kind}", GOOD[kind])
    land.run()
    assert land.whole_aside() == []


@pytest.mark.spark
def test_a_file_that_vanishes_is_named(
    tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that disappears between listing and reading is
    named in an error, and the next run succeeds.
    """
    from infold.spark.reading import source_rows

    land = LandingProject(tmp_path, warehouse, "landing/*.json", "on_unreadable: set_aside")
    land.row("a.json", "a")
    land.row("b:b.json", "b")
    read = source_rows.read_counted
    for gone, before in (("a.json", True), ("b:b.json", False)):

        def vanishing(*given: Any, gone: str = gone, before: bool = before, **more: Any) -> Any:
            if before:
                (land.root / "landing" / gone).unlink()
            found = read(*given, **more)
            if not before:
                (land.root / "landing" / gone).unlink()
            return found

        monkeypatch.setattr(source_rows, "read_counted", vanishing)
        with pytest.raises(InfoldError) as raised:
            land.run()
        assert raised.value.slug == "source-changed"
        assert raised.value.facts == (("file", f"landing/{gone}"),)
        land.row(gone, gone[0])
    monkeypatch.undo()
    land.run()
    assert land.values() == ["a", "b"]


@pytest.mark.spark
def test_rows_that_the_model_leaves_out_arrive_too(tmp_path: Path, warehouse: Path) -> None:
    """What arrived is counted before WHERE, whether files say how many rows they have or not."""
    land, kinds = LandingProject(tmp_path, warehouse, "landing"), ("parquet", "json")
    several(land, kinds)
    for kind in kinds:
        land.model(f"of_{kind}", MODEL.replace("raw.c", f"raw.{kind} WHERE id <> 'b'"))
    for name, ids in (("first", "abc"), ("second", "bcd"), ("third", "bbb")):
        rows = pa.table({"id": list(ids), "at": [f"2024-03-0{day}" for day in (1, 2, 3)]})
        land.put(f"parquet/{name}.parquet", rows)
        if ids != "bbb":  # Spark forgets what it saw in a plan that turned out to be empty
            land.put(f"json/{name}.json", "\n".join(map(json.dumps, rows.to_pylist())))
        done = land.receipts()
        assert {(one.arrived, one.read) for one in done.values()} == {(3, 3)}
    for kind in kinds:
        assert land.values(f"of_{kind}") == ["a", "c", "c", "d"]


@pytest.mark.spark
def test_optional_columns(tmp_path: Path, warehouse: Path) -> None:
    """
    Files without an optional column give NULL or the default, in each format; a NULL in a file
    stays NULL.
    """
    columns = (
        "{id: string, at: timestamp, a: {type: string, optional: true}, "
        "d: {type: 'decimal(5,2)', optional: true, default: 1.5}, "
        "t: {type: date, optional: true, default: 2024-01-01}}"
    )
    files: dict[str, dict[str, str | pa.Table]] = {
        "csv": {
            "x": "id,at\nx,2024-03-01\n",
            "y": "id,at,t,a,d\ny,2024-03-01,2024-02-02,A,2\nz,2024-03-01,,,\n",
        },
        "json": {
            "x": '{"id":"x","at":"2024-03-01"}\n',
            "y": '{"id":"y","at":"2024-03-01","a":"A","d":2,"t":"2024-02-02"}\n'
            '{"id":"z","at":"2024-03-01","a":null,"d":null,"t":null}\n',
        },
        "parquet": {
            "x": pa.table({"id": ["x"], "at": ["2024-03-01"]}),
            "y": pa.table(
                {
                    "id": ["y", "z"],
                    "at": ["2024-03-01"] * 2,
                    "a": ["A", None],
                    "d": pa.array([2, None], pa.decimal128(3, 0)),
                    "t": ["2024-02-02", None],
                }
            ),
        },
    }
    land = LandingProject(tmp_path, warehouse, "landing")
    several(land, [*files], columns=columns)
    query = "id, at, a, cast(d AS string) AS d, cast(t AS string) AS t"
    for kind, contents in files.items():
        land.model(f"of_{kind}", MODEL.replace("id, at", query).replace("raw.c", f"raw.{kind}"))
        for name, content in contents.items():
            land.put(f"{kind}/{name}.{kind}", content)
    land.run()
    for kind in files:
        assert land.values(f"of_{kind}", "id", "a", "d", "t") == [
            ("x", None, "1.50", "2024-01-01"),
            ("y", "A", "2.00", "2024-02-02"),
            ("z", None, None, None),
        ]


@pytest.mark.spark
def test_columns_are_declared_later(tmp_path: Path, warehouse: Path) -> None:
    """
    To declare an optional column builds nothing, whether ingested files have it or not, nor of a
    landed source. Only the files that were set aside for it are read again, and their rows leave.
    """
    land = LandingProject(tmp_path, warehouse, "landing")

    def declare(new: str, columns: str) -> None:
        """The sources: one ignores other columns, one sets files aside for them, one is landed."""
        sources = "".join(
            f"  raw.{name}:\n    path: landing/{name}/*.json\n    event_time_column: at\n"
            f"    on_new_columns: {how}\n    columns: {columns}\n"
            for name, how in (("c", new), ("s", "set_aside"), ("t", "error"))
        )
        land.declare_all(sources)

    total = WHOLE + "SELECT {} AS total, max(id) AS id FROM raw.t"
    land.model("s", MODEL.replace("raw.c", "raw.s"))
    land.model("t", total.format("count(*)"))
    declare("ignore", COLUMNS)
    for name in ("c/a", "s/a", "t/a"):
        land.row(f"{name}.json", "a")
    land.row("c/b.json", "b", n=1)
    land.row("s/b.json", "b", n=1)
    done = land.receipts()
    assert (done["s"].arrived, done["s"].set_aside) == (2, 1)
    assert land.whole_aside() == [("landing/s/b.json", "drift: extra column n")]

    declare("error", "{id: string, at: timestamp, n: {type: int, optional: true, default: 7}}")
    land.row("c/c.json", "c", n="no number")
    land.row("c/d.json", "d")
    done = land.receipts()
    assert done.keys() == {"c", "s"}
    assert (done["c"].arrived, done["c"].read, done["c"].set_aside) == (2, 2, 0)
    assert (done["s"].arrived, done["s"].written, done["s"].set_aside) == (1, 1, 0)
    assert (land.values("c"), land.values("s"), land.whole_aside()) == ([*"abcd"], [*"ab"], [])

    land.model("c", MODEL.replace("id, at", "id, at, n"))
    land.model("t", total.format("sum(n)"))
    done = land.receipts()
    assert done.keys() == {"c", "t", "raw.t"}
    assert land.values("c", "id", "n") == [("a", 7), ("b", 1), ("d", 7)]
    assert land.values("t", "total", "id") == [(7, "a")]
    assert land.whole_aside() == [("landing/c/c.json", "unparsable: n is not int")]


@pytest.mark.spark
def test_models_may_read_what_was_set_aside(tmp_path: Path, warehouse: Path) -> None:
    """A model may read the rows set aside as a source; they
    are one run behind, and leave with their file.
    """
    land = LandingProject(tmp_path, warehouse, "landing/*.json")
    land.put("a.json", '{"id":"1","at":"2024-03-01"}\n{"id":"2","at":"soon"}\n')
    land.put("b.json", '{"id":"3","at":"never"}\n')
    land.run()
    source = f"  own.set_aside: {{table: {land.name}.infold__set_aside}}\n"
    land.configure("targets:", f"{source}targets:")
    land.model("bad", f"{WHOLE}SELECT file, count(*) AS n FROM own.set_aside GROUP BY file")
    land.run()
    assert land.values("bad", "file", "n") == [("landing/a.json", 1), ("landing/b.json", 1)]
    land.put("b.json", '{"id":"3","at":"2024-03-03"}\n')
    land.put("c.json", '{"id":"4","at":"soon"}\n{"id":"5","at":"soon"}\n')
    land.run()
    land.run()
    assert land.values("bad", "file", "n") == [("landing/a.json", 1), ("landing/c.json", 2)]


SHOWN = {
    "a.json": None,
    "a.json.gz": None,
    "a.json.GZ": None,
    "a.json.zst": None,
    "a.json.gzip": ".gz",
    "a.json.GZIP": ".gz",
    "a.json.zstd": ".zst",
    "a.json.deflate": "",
    "a.json.lz4": "",
    "a.json.Snappy": "",
    "a:b.json.gz": ".gz",
    "a:b.json.gzip": ".gz",
    "a:b.json.lz4": "",
    "a:b.json": "",
    "_a.snappy": "",
}
"""Names of files, and the ending of the link that Spark is given in place of one."""


@pytest.mark.parametrize("name", SHOWN)
def test_what_spark_is_given(tmp_path: Path, name: str) -> None:
    """A file by its own name, or by a link whose ending says what infold takes it for."""
    (tmp_path / name).write_text("{}")

    given = Path(takeable(tmp_path, name))

    if SHOWN[name] is None:
        assert given == tmp_path / name
    else:
        assert given.parent == tmp_path / LINKS
        assert given.resolve() == (tmp_path / name).resolve()
        assert given.suffix == SHOWN[name]


PACKED = [".gz", ".GZ", ".gzip", ".zstd", ".Bz2"]
PLAIN = [".lz4", ".snappy", ".deflate"]
HIDDEN = ["_a", ".b"]
"""Spark does not look at files that begin so, but these are named by their paths."""


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["json", "long json", "csv"])
def test_a_file_says_the_same_whatever_its_name_and_size(
    folder: Folder, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """
    Those that are packed as their names say are unpacked, and those of no such name are not. Lines
    of JSON are read in this process, or by Spark as those of long files. A file that is padded with
    zeros behind gzip is unreadable, and can be set aside as others can.
    """
    if kind == "long json":
        monkeypatch.setattr("infold.spark.reading.json_lines.IN_PROCESS", 0)
        kind = "json"
    text = '{"id": "a"}\n{"id": "b"}\n' if kind == "json" else "id\na\nb\n"
    names = [f"{at}.{kind}{ending}" for at, ending in enumerate(["", *PACKED, *PLAIN])]
    names += [f"{start}.{kind}" for start in HIDDEN]
    for name in names:
        folder.put(name, text)
    wanted = {name: [("a",), ("b",)] for name in names}

    assert folder.by_name({"id": "string"}) == wanted

    (folder.root / f"z.{kind}.gz").write_bytes(gzip.compress(text.encode()) + b"\0" * 512)
    folder.listed(f"z.{kind}.gz")
    found = folder.by_name({"id": "string"}, on_unreadable=Drift.SET_ASIDE)
    [[_, problem]] = found.pop(f"z.{kind}.gz")
    assert problem.startswith("unreadable: ")
    assert found == wanted


@pytest.mark.spark
def test_a_long_packed_file_is_read_by_one_task(
    folder: Folder, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be divided, however its name ends."""
    monkeypatch.setattr("infold.spark.reading.json_lines.IN_PROCESS", 0)
    chosen = random.Random(7)
    lines = [f'{{"id": "{chosen.randbytes(30).hex()}"}}\n' for _ in range(5_000)]
    folder.put("a.json.gzip", "".join(lines))
    assert (folder.root / "a.json.gzip").stat().st_size > 150_000
    spark.conf.set("spark.sql.files.maxPartitionBytes", "50000")
    try:
        assert folder.frame({"id": "string"}).count() == 5_000
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


COUNTRY, HOUR, DAY = Column("country", "string"), Column("hour", "int"), Column("dt", "date")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("in/country=DE/hour=01/a.json", {"country": "DE", "hour": "01"}),
        ("s3://b/in/hour=1/country=a%3Db%2F%20c/x=1/a.json", {"country": "a=b/ c", "hour": "1"}),
        ("country=__HIVE_DEFAULT_PARTITION__/country=/a", {"country": ""}),
        ("country=/country=__HIVE_DEFAULT_PARTITION__/a", {"country": None}),
        ("Country=DE/hour/country=DE.json", {}),
    ],
)
def test_values_in_a_path(path: str, found: dict[str, str | None]) -> None:
    """The file's own name has none, and names are compared letter by letter."""
    assert folder_values(path, ["country", "hour"]) == found


def of_folders(*columns: Column) -> dict[str, Any]:
    """What a source has besides the columns of its files."""
    return {"of_folders": columns, "partition_columns": tuple(one.name for one in columns)}


@pytest.mark.spark
@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_rows_are_those_that_spark_finds(folder: Folder, format_: str) -> None:
    """Escaped values and NULL are read as Spark writes them."""
    spark = folder.spark
    rows = [("a", "DE", 1), ("b", "a=b/c: %", 23), ("c", None, 7), ("d", "é", None)]
    frame = spark.createDataFrame(rows, "id string, country string, hour int")
    written = frame.coalesce(1).write.partitionBy("country", "hour").format(format_)
    written.option("header", "true").save(str(folder.root / "in"))
    for file in sorted((folder.root / "in").rglob(f"*.{format_}")):
        folder.listed(str(file.relative_to(folder.root)))

    found = folder.frame({"id": "string"}, **of_folders(COUNTRY, HOUR)).toArrow().to_pylist()

    assert {(row["id"], row["country"], row["hour"]) for row in found} == set(rows)
    assert {row["_problem"] for row in found} == {None}


@pytest.mark.spark
def test_folders_that_do_not_fit(folder: Folder) -> None:
    """Rows of a value that is none of its type are set aside, and files in no such folder drift;
    these go by `on_drift`.
    """
    for name in ("dt=2024-03-01/a.json", "dt=yesterday/b.json"):
        folder.put(name, '{"id":1}\n{"id":1.5}\n')
    found = folder.frame({"id": "int"}, **of_folders(DAY)).toArrow().to_pylist()
    assert {(row["id"], row["dt"], row["_problem"]) for row in found} == {
        (1, date(2024, 3, 1), None),
        (None, None, "unparsable: id is not int"),
        (None, None, "unparsable: dt is not date"),
    }

    folder.put("c.json", '{"id":7}\n')
    with pytest.raises(InfoldError) as raised:
        folder.frame({"id": "int"}, **of_folders(DAY))
    assert raised.value.slug == "drift"
    assert raised.value.facts == (("c.json", "missing folder dt="),)
    aside = folder.frame({"id": "int"}, on_drift=Drift.SET_ASIDE, **of_folders(DAY))
    assert (None, None, "drift: missing folder dt=") in {
        (row["id"], row["dt"], row["_problem"]) for row in aside.toArrow().to_pylist()
    }


HEADER = "id,who,ts,day,amount\n"


@pytest.mark.spark
def test_files_cut_to_their_headers_are_refused(tmp_path: Path) -> None:
    """
    Files cut to their headers are refused and leave the tables as they are, until it is allowed;
    also where a declaration changed, and all files are taken in anew. As many rows at other times
    are no loss.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.models(daily=model(DAILY))
    for _ in range(30):
        shop.land("2024-03-01T10:00:00Z", "2024-03-02T10:00:00Z")
    api.run(shop.project())
    files = sorted((shop.root / "landing").iterdir())
    for file in files:
        file.write_text(file.read_text().replace("2024-03", "2024-04"))
    api.run(shop.project())
    assert str(shop.rows("daily")[0][0]) == "2024-04-01"

    before = shop.rows("daily"), shop.rows("raw__clicks")
    for file in files[:16]:
        file.write_text(HEADER)
    text = (shop.root / "infold.yml").read_text()
    for type_ in ("decimal(18,2)", "double"):
        (shop.root / "infold.yml").write_text(text.replace("decimal(18,2)", type_))
        with pytest.raises(RunFailed) as caught:
            api.run(shop.project())
        [error] = caught.value.errors
        assert (error.slug, caught.value.exit_code) == ("source-shrank", 3)
        gone = "16 of 30 files replaced by ones with fewer rows: 32 of 60 rows gone"
        assert error.facts == (("raw.clicks", gone),)
        assert (shop.rows("daily"), shop.rows("raw__clicks")) == before

    api.run(shop.project(), allow_removals=True)
    assert [row[1] for row in shop.rows("daily")] == [14, 14]
