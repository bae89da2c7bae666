"""Files with any name and in any state are read, set aside, or named in an error; none is lost."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.reading.landing import COLUMNS, MODEL, LandingProject

from infold.core.report import RunFailed
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAMES = (
    "2024-03-08T10:00:00.json", "a:[1].json", "a:b/x.json", "c:[d]/x.json", "x[1].json",
    "{a,b}.json", "s*r.json", "q?.json", "p%20q.json", "h#h.json", "b\\s.json", "b\\:s.json",
    "sp ace.json", " lead.json", "a\nb.json", "ü:ü.json", "file:.json", "x:y.json.gz", "-.json",
    "q\"u'o.json", "\u200c\u200bx.json", "\ufeff.json", "a\u00adb.json", "a\u00a0b.json",
    "\u2028.json", "\u0085.json", "\ue000.json", "\u0378.json", "\U000e0001.json", "..",
    "x..json", "e\u0301.json", "\U0001f600.json",
)  # fmt: skip


def test_files_with_any_name(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
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
    assert land.rows() == sorted(names)
    (land.root / "landing" / NAMES[0]).unlink()
    land.run()
    assert land.rows() == sorted(names[1:])


MANY = pa.table({"id": [str(at) for at in range(50_000)], "at": ["2024-03-01"] * 50_000})
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
    (land.root / "infold.yml").write_text(
        f"name: {land.name}\nsources:\n{sources}"
        f"targets:\n  dev: {{storage: iceberg, warehouse: '{land.warehouse}'}}\n"
    )
    (land.root / "models" / "c.sql").unlink(missing_ok=True)


def spoilt(land: LandingProject) -> set[str]:
    """Files that cannot be read, with a good one beside each; their paths."""
    lines = "".join(f'{{"id":"{at}","at":"2024-03-01"}}\n' for at in range(100_000))
    rows = b"id,at\n" + b"".join(b"%d,2024-03-01\n" % i for i in range(99_999))
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


def test_files_that_cannot_be_read_are_named_or_set_aside(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """Unreadable files are named in an error or set aside,
    by choice, and ingested once they are corrected.
    """
    land = LandingProject(tmp_path, warehouse, "landing")
    bad = spoilt(land)
    several(land, [*GOOD])
    for kind in GOOD:
        land.model(MODEL.replace("raw.c", f"raw.{kind}"), f"of_{kind}")
    with pytest.raises(RunFailed) as failed:
        land.run()
    found = {one.model: one.error for one in failed.value.result.failures}
    assert found.keys() == {f"of_{kind}" for kind in GOOD}
    for model, error in found.items():
        assert error.slug == "unreadable-file"
        named = dict(error.facts)["file"]
        assert named in bad
        assert named.startswith(f"landing/{model.removeprefix('of_')}/")

    several(land, [*GOOD], "on_unreadable: set_aside")
    done = land.receipts()
    assert {name: dict(one.set_aside_by) for name, one in done.items()} == {
        "of_json": {"unreadable": 1},
        "of_csv": {"unreadable": 1},
        "of_parquet": {"unreadable": 3},
    }
    assert {land.rows(f"of_{kind}")[0] for kind in GOOD} == {"good"}
    aside = land.aside()
    assert {file for file, _ in aside} == bad
    assert all(why.startswith("unreadable: ") for _, why in aside)

    for file in bad:
        (land.root / file).unlink()
        kind = Path(file).parent.name
        land.put(f"{kind}/bad.{kind}", GOOD[kind])
    land.run()
    assert land.aside() == []


def test_a_file_that_vanishes_is_named(
    tmp_path: Path, warehouse: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
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
    assert land.rows() == ["a", "b"]


def test_rows_that_the_model_leaves_out_arrive_too(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """What arrived is counted before WHERE, whether files say how many rows they have or not."""
    land, kinds = LandingProject(tmp_path, warehouse, "landing"), ("parquet", "json")
    several(land, kinds)
    for kind in kinds:
        land.model(MODEL.replace("raw.c", f"raw.{kind} WHERE id <> 'b'"), f"of_{kind}")
    for name, ids in (("first", "abc"), ("second", "bcd"), ("third", "bbb")):
        rows = pa.table({"id": list(ids), "at": [f"2024-03-0{day}" for day in (1, 2, 3)]})
        land.put(f"parquet/{name}.parquet", rows)
        if ids != "bbb":  # Spark forgets what it saw in a plan that turned out to be empty
            land.put(f"json/{name}.json", "\n".join(map(json.dumps, rows.to_pylist())))
        done = land.receipts()
        assert {(one.arrived, one.read) for one in done.values()} == {(3, 3)}
    for kind in kinds:
        assert land.rows(f"of_{kind}") == ["a", "c", "c", "d"]


def test_optional_columns(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
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
        land.model(MODEL.replace("id, at", query).replace("raw.c", f"raw.{kind}"), f"of_{kind}")
        for name, content in contents.items():
            land.put(f"{kind}/{name}.{kind}", content)
    land.run()
    for kind in files:
        assert land.rows(f"of_{kind}", "id", "a", "d", "t") == [
            ("x", None, "1.50", "2024-01-01"),
            ("y", "A", "2.00", "2024-02-02"),
            ("z", None, None, None),
        ]


def test_columns_are_declared_later(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
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
        text = (land.root / "infold.yml").read_text()
        (land.root / "infold.yml").write_text(
            f"name: {land.name}\nsources:\n{sources}{text[text.index('targets:') :]}"
        )

    total = "---\nmaterialization: table\n---\nSELECT {} AS total, max(id) AS id FROM raw.t"
    land.model(MODEL.replace("raw.c", "raw.s"), "s")
    land.model(total.format("count(*)"), "t")
    declare("ignore", COLUMNS)
    for name in ("c/a", "s/a", "t/a"):
        land.row(f"{name}.json", "a")
    land.row("c/b.json", "b", n=1)
    land.row("s/b.json", "b", n=1)
    done = land.receipts()
    assert (done["s"].arrived, done["s"].set_aside) == (2, 1)
    assert land.aside() == [("landing/s/b.json", "drift: extra column n")]

    declare("error", "{id: string, at: timestamp, n: {type: int, optional: true, default: 7}}")
    land.row("c/c.json", "c", n="no number")
    land.row("c/d.json", "d")
    done = land.receipts()
    assert done.keys() == {"c", "s"}
    assert (done["c"].arrived, done["c"].read, done["c"].set_aside) == (2, 2, 0)
    assert (done["s"].arrived, done["s"].written, done["s"].set_aside) == (1, 1, 0)
    assert (land.rows("c"), land.rows("s"), land.aside()) == ([*"abcd"], [*"ab"], [])

    land.model(MODEL.replace("id, at", "id, at, n"))
    land.model(total.format("sum(n)"), "t")
    done = land.receipts()
    assert done.keys() == {"c", "t", "raw.t"}
    assert land.rows("c", "id", "n") == [("a", 7), ("b", 1), ("d", 7)]
    assert land.rows("t", "total", "id") == [(7, "a")]
    assert land.aside() == [("landing/c/c.json", "unparsable: n is not int")]
    assert land.proven()


def test_models_may_read_what_was_set_aside(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """A model may read the rows set aside as a source; they
    are one run behind, and leave with their file.
    """
    land = LandingProject(tmp_path, warehouse, "landing/*.json")
    land.put("a.json", '{"id":"1","at":"2024-03-01"}\n{"id":"2","at":"soon"}\n')
    land.put("b.json", '{"id":"3","at":"never"}\n')
    land.run()
    config = land.root / "infold.yml"
    source = f"  own.set_aside: {{table: {land.name}.infold__set_aside}}\n"
    config.write_text(config.read_text().replace("targets:", f"{source}targets:"))
    land.model(
        "---\nmaterialization: table\n---\n"
        "SELECT file, count(*) AS n FROM own.set_aside GROUP BY file",
        "bad",
    )
    land.run()
    assert land.rows("bad", "file", "n") == [("landing/a.json", 1), ("landing/b.json", 1)]
    land.put("b.json", '{"id":"3","at":"2024-03-03"}\n')
    land.put("c.json", '{"id":"4","at":"soon"}\n{"id":"5","at":"soon"}\n')
    land.run()
    land.run()
    assert land.rows("bad", "file", "n") == [("landing/a.json", 1), ("landing/c.json", 2)]
