"""Files with any name and in any state are read, set aside, or named in an error; none is lost."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.reading.landing import MODEL, LandingProject
from tests.spark.reading.written import TABLES

from infold import api
from infold.core.record import Receipt
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAMES = (
    "2024-03-08T10:00:00.json", "a:[1].json", "a:b/x.json", "c:[d]/x.json", "x[1].json",
    "{a,b}.json", "s*r.json", "q?.json", "p%20q.json", "h#h.json", "b\\s.json", "b\\:s.json",
    "sp ace.json", " lead.json", "a\nb.json", "ü:ü.json", "file:.json", "x:y.json.gz", "-.json",
    "q\"u'o.json", "..", "x..json", "e\u0301.json", "\U0001f600.json",
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
    assert land.proven()


@pytest.mark.parametrize("name", ["_a.json", ".b.json", "x._COPYING_"])
def test_a_file_with_an_exact_path_is_read(
    tmp_path: Path, warehouse: Path, spark: SparkSession, name: str
) -> None:
    """A file that is named by its path is read even if Spark would ignore its name."""
    land = LandingProject(tmp_path, warehouse, f"landing/{name}")
    land.declare("format: json")
    land.row(name, "x")
    land.run()
    assert land.rows() == ["x"]


MANY = pa.table({"id": [str(at) for at in range(50_000)], "at": ["2024-03-01"] * 50_000})
GOOD = {
    "json": '{"id":"good","at":"2024-03-01"}\n',
    "csv": "id,at\ngood,2024-03-01\n",
    "parquet": MANY.slice(0, 1).set_column(0, "id", pa.array(["good"])),
}


def spoil(land: LandingProject, kind: str) -> str:
    """A file that cannot be read; its ending."""
    lines = "".join(f'{{"id":"{at}","at":"2024-03-01"}}\n' for at in range(100_000))
    if kind == "cut json":
        packed = gzip.compress(lines.encode())
        land.put("bad.json.gz", packed[: len(packed) // 2])
        return "json"
    if kind == "cut csv":
        packed = gzip.compress(b"id,at\n" + b"".join(b"%d,2024-03-01\n" % i for i in range(99_999)))
        land.put("bad.csv.gz", packed[: len(packed) // 2])
        return "csv"
    how = {"compression": "brotli" if kind == "brotli" else "snappy", "use_dictionary": False}
    at = land.put("bad.parquet", MANY, **how)
    whole = at.read_bytes()
    if kind == "damaged":
        at.write_bytes(whole[:200] + b"\xff" * 5_000 + whole[5_200:])
    if kind == "cut parquet":
        at.write_bytes(whole[: len(whole) // 2])
    return "parquet"


@pytest.mark.parametrize("kind", ["cut json", "cut csv", "brotli", "damaged", "cut parquet"])
def test_a_file_that_cannot_be_read_is_named_or_set_aside(
    tmp_path: Path, warehouse: Path, spark: SparkSession, kind: str
) -> None:
    """An unreadable file is named in an error or set aside,
    by choice, and ingested once it is corrected.
    """
    land = LandingProject(tmp_path, warehouse, "landing")
    ending = spoil(land, kind)
    (bad,) = (path.name for path in (land.root / "landing").iterdir())
    land.put(f"good.{ending}", GOOD[ending])
    land.declare(f"format: {ending}")
    with pytest.raises(InfoldError) as raised:
        land.run()
    assert raised.value.slug == "unreadable-file"
    assert dict(raised.value.facts)["file"] == f"landing/{bad}"
    land.declare(f"format: {ending}\n    on_unreadable: set_aside")
    found = land.run()
    assert (found.set_aside, dict(found.set_aside_by)) == (1, {"unreadable": 1})
    assert land.rows() == ["good"]
    ((file, why),) = land.aside()
    assert file == f"landing/{bad}"
    assert why.startswith("unreadable: ")
    assert land.proven()
    (land.root / "landing" / bad).unlink()
    land.put(f"bad.{ending}", GOOD[ending])
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


@pytest.mark.parametrize("in_process", [True, False])
def test_json_nested_a_thousand_deep(
    tmp_path: Path,
    warehouse: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    in_process: bool,
) -> None:
    """JSON nested a thousand deep is read as far as Spark reads it, and set aside beyond."""
    if not in_process:
        monkeypatch.setattr("infold.spark.reading.json_lines.IN_PROCESS", 0)
    land = LandingProject(tmp_path, warehouse, "landing/*.json", "on_drift: set_aside")
    land.declare("on_drift: set_aside", "{id: string, at: timestamp, deep: string}")
    land.model(MODEL.replace("id, at", "id, at, length(deep) AS deep"))
    for name, depth in (("near", 990), ("far", 1_100)):
        deep = '{"a":' * depth + "1" + "}" * depth
        land.put(f"{name}.json", f'{{"id":"{name}","at":"2024-03-01","deep":{deep}}}\n')
    more = '{"a":' * 990 + "1" + "}" * 990
    land.put("more.json", f'{{"id":"m","at":"2024-03-01","deep":1,"more":{more}}}\n')
    land.run()
    assert land.rows("c", "id", "deep") == [("near", 6 * 990 + 1)]
    assert land.aside() == [
        ("landing/far.json", "unparsable: not one JSON object"),
        ("landing/more.json", "drift: extra column more"),
    ]


@pytest.mark.parametrize("ending", ["parquet", "orc", "json"])
def test_rows_that_the_model_leaves_out_arrive_too(
    tmp_path: Path, warehouse: Path, spark: SparkSession, ending: str
) -> None:
    """What arrived is counted before WHERE, whether files say how many rows they have or not."""
    land = LandingProject(tmp_path, warehouse, f"landing/*.{ending}")
    land.model(MODEL + " WHERE id <> 'b'")
    at = pa.array([datetime(2024, 3, day, tzinfo=UTC) for day in (1, 2, 3)])
    for name, ids in (("first", "abc"), ("second", "bcd"), ("third", "bbb")):
        if ids == "bbb" and ending == "json":
            break  # Spark forgets what it saw in a plan that turned out to be empty
        rows = pa.table({"id": list(ids), "at": at.cast(pa.timestamp("us", "UTC"))})
        path = land.root / "landing" / f"{name}.{ending}"
        if ending == "json":
            lines = [json.dumps({**row, "at": row["at"].isoformat()}) for row in rows.to_pylist()]
            path.write_text("\n".join(lines))
        else:
            TABLES[f".{ending}"](rows, path)
        done = land.run()
        assert (done.arrived, done.read) == (3, 3)
    assert land.rows() == ["a", "c", "c", "d"]
    assert land.proven()


class TestOptionalColumns:
    """Optional columns, defaults, and columns that are not declared."""

    OPTIONAL = "{id: string, at: timestamp, n: {type: int, optional: true, default: 7}}"

    def test_declaring_an_optional_column_builds_nothing(
        self, tmp_path: Path, warehouse: Path, spark: SparkSession
    ) -> None:
        """To declare an optional column builds nothing, whether ingested files have it or not."""
        land = LandingProject(tmp_path, warehouse, "landing/*.json", "on_new_columns: ignore")
        land.row("a.json", "a")
        land.row("b.json", "b", n=1)
        land.run()
        land.declare("on_new_columns: error", self.OPTIONAL)
        land.row("c.json", "c", n="no number")
        land.row("d.json", "d")
        found = land.run()
        assert (found.arrived, found.read, found.set_aside) == (2, 2, 0)
        assert land.rows() == ["a", "b", "c", "d"]
        assert land.proven()
        land.model(MODEL.replace("id, at", "id, at, n"))
        assert land.run().arrived == 4
        assert land.rows("c", "id", "n") == [("a", 7), ("b", 1), ("d", 7)]
        assert land.aside() == [("landing/c.json", "unparsable: n is not int")]
        assert land.proven()

    def test_a_landed_source_stores_declared_columns(
        self, tmp_path: Path, warehouse: Path, spark: SparkSession
    ) -> None:
        """A landed source stores the declared columns, and to declare another changes nothing."""
        land = LandingProject(tmp_path, warehouse, "landing/*.json")
        land.model(
            "---\nmaterialization: table\n---\nSELECT count(*) AS total, max(id) AS id FROM raw.c"
        )
        land.row("a.json", "a")
        land.run()
        land.declare("", self.OPTIONAL)
        assert api.run(api.open_project(land.root)).steps == ()
        land.model(
            "---\nmaterialization: table\n---\nSELECT sum(n) AS total, max(id) AS id FROM raw.c"
        )
        land.run()
        assert land.rows("c", "total", "id") == [(7, "a")]

    @pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
    def test_files_without_it_give_null_or_the_default(
        self, tmp_path: Path, warehouse: Path, spark: SparkSession, ending: str
    ) -> None:
        """Files without an optional column give NULL or the
        default, in each format; a NULL in a file stays NULL.
        """
        columns = (
            "{id: string, at: timestamp, a: {type: string, optional: true}, "
            "d: {type: 'decimal(5,2)', optional: true, default: 1.5}, "
            "t: {type: date, optional: true, default: 2024-01-01}}"
        )
        land = LandingProject(tmp_path, warehouse, "landing/*")
        land.declare(f"format: {ending}", columns)
        land.model(
            MODEL.replace("id, at", "id, at, a, cast(d AS string) AS d, cast(t AS string) t")
        )
        files: dict[str, dict[str, str | bytes | pa.Table]] = {
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
        for name, content in files[ending].items():
            land.put(f"{name}.{ending}", content)
        land.run()
        assert land.rows("c", "id", "a", "d", "t") == [
            ("x", None, "1.50", "2024-01-01"),
            ("y", "A", "2.00", "2024-02-02"),
            ("z", None, None, None),
        ]
        assert land.proven()

    def test_files_set_aside_for_a_column_enter_once_it_is_declared(
        self, tmp_path: Path, warehouse: Path, spark: SparkSession
    ) -> None:
        """When a column is declared, only the files that were
        set aside for it are read again, and their rows leave.
        """
        land = LandingProject(tmp_path, warehouse, "landing/*.json", "on_new_columns: set_aside")
        land.row("a.json", "a")
        land.row("b.json", "b", n=1)
        found = land.run()
        assert (found.arrived, found.set_aside) == (2, 1)
        assert land.aside() == [("landing/b.json", "drift: extra column n")]
        land.declare("on_new_columns: set_aside", self.OPTIONAL)
        found = land.run()
        assert (found.arrived, found.written, found.set_aside) == (1, 1, 0)
        assert land.rows() == ["a", "b"]
        assert land.aside() == []
        assert land.run() == Receipt()
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
    assert land.proven()
