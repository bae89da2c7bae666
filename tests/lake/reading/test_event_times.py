"""The estimate finds the cells that new files touch from
their event times, in every format and notation.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.reading.written import TABLES, packed

from infold.core.files import ListedFile
from infold.core.formats import PACKINGS, Format
from infold.core.interval import (
    DAY,
    HOUR,
    Granularity,
    Interval,
    datetime_of,
    parse_instant_text,
    show_instant,
)
from infold.core.model import Source
from infold.core.trace import CellState
from infold.lake.reading.event_times import PER_FILE, estimate_cells

NOW = parse_instant_text("2100-01-01")


def look(
    root: Path,
    name: str,
    *,
    format: Format = Format.CSV,  # noqa: A002 - as the declaration has it
    granularity: Granularity = Granularity.DAY,
    budget: int = 1_000_000,
    **values: Any,
) -> dict[str, int] | None:
    """Rows by the start of their cell."""
    source = Source("raw.x", format, (), path="*", event_time_column="t", **values)
    file = ListedFile(name, (root / name).stat().st_size, 0, "")
    found = estimate_cells(root, source, [file], granularity, NOW, budget)
    return (
        None
        if found is None
        else {show_instant(state.cell.start): state.rows for state in found[0]}
    )


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("iso", ["2024-03-08T23:59:59.999999", "2024-03-09", "2024-03-09 01:00:00"]),
        ("iso", ["2024-03-09T01:30:00+02:00", "2024-03-09T00:00:00Z", "2024-03-09 05:00:00"]),
        ("epoch_seconds", ["1709942399", "1709942400", "1709942401"]),
        ("epoch_seconds", ["1709942399.5", "1709942400", "1709942401.25"]),
        ("epoch_millis", ["1709942399999", "1709942400000", "1709942400001"]),
        ("epoch_micros", ["1709942399999999", "1709942400000000", "1709942400000001"]),
        ("dd/MM/yy H:mm", ["08/03/24 23:59", "09/03/24 0:00", "09/03/24 1:02"]),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
         ["2024-03-08T23:59:59.999Z", "2024-03-09T03:00:00.000+03:00", "2024-03-09T23:00:00.000Z"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("bad", [[], ["", "soon"]], ids=["clean", "with rows that do not parse"])
def test_notations(tmp_path: Path, written: str, values: list[str], bad: list[str]) -> None:
    """A value that does not parse is skipped, and the others count."""
    lines = ["id,t", *(f"{i},{value}" for i, value in enumerate([*values, *bad]))]
    (tmp_path / "a.csv").write_text("\n".join(lines))

    found = look(tmp_path, "a.csv", timestamp_format=written)

    assert found == {"2024-03-08": 1, "2024-03-09": 2}


@pytest.mark.parametrize("ending", PACKINGS)
def test_packed_and_another_delimiter(tmp_path: Path, ending: str) -> None:
    """As the source declares them. Of a damaged file nothing is known; the ingest reports it."""
    name = f"a.csv{ending}"
    content = packed(name, b"t;x\n2024-03-09;a\n2024-03-10;b\n")
    (tmp_path / name).write_bytes(content)
    assert look(tmp_path, name, delimiter=";") == {"2024-03-09": 1, "2024-03-10": 1}

    (tmp_path / name).write_bytes(content[:-6])
    assert look(tmp_path, name, delimiter=";") is None


@pytest.mark.parametrize("last", ["", "\tmore"], ids=["as declared", "with a field more"])
def test_columns_by_their_places(tmp_path: Path, last: str) -> None:
    """Without a header a column is found by its place, and quotes may be letters."""
    (tmp_path / "a.tsv").write_text(f'"x\t2024-03-09{last}\ny"\t2024-03-10{last}\n')
    keys: dict[str, Any] = {"positions": ("id", "t"), "quoted": False, "delimiter": "\t"}

    assert look(tmp_path, "a.tsv", **keys) == {"2024-03-09": 1, "2024-03-10": 1}


JSON = '{"t": "2024-03-09T10:00:00", "x": {"y": [1]}}\n{"x": 2}\n{"t": null}\n'


@pytest.mark.parametrize(
    ("text", "how", "rows"),
    [
        *(
            (JSON + extra, {}, {"2024-03-09": 1})
            for extra in ("", "no json\n", '{"t": 7}\n', '{"t": {"a": 1}}\n[1]\n')
        ),
        ('{"t": 1709942400}\n{"t": "1709942401"}\n{"t": 1709942401.5}\n',
         {"timestamp_format": "epoch_seconds"}, {"2024-03-09": 3}),
        ('[{"t":\n"2024-03-09"}, {"t": "2024-03-09",}, 7]\n{"t": "2024-03-10"}',
         {"multiline": True}, {"2024-03-09": 1, "2024-03-10": 1}),
    ],
)  # fmt: skip
def test_json(tmp_path: Path, text: str, how: dict[str, Any], rows: dict[str, int]) -> None:
    """
    Broken lines and objects, missing and null values, and values of other types are skipped. Epochs
    may be numbers or texts, and objects of whole JSON lie over several lines and in lists.
    """
    (tmp_path / "a.json").write_text(text)

    assert look(tmp_path, "a.json", format=Format.JSON, **how) == rows


AT, NEXT = datetime(2024, 3, 9, 23, tzinfo=UTC), datetime(2024, 3, 10, tzinfo=UTC)


TIMES = (
    pa.array([AT, None, NEXT], pa.timestamp("us")),
    pa.array([AT, NEXT, None], pa.timestamp("ms", "UTC")),
    pa.array([AT.date(), None, NEXT.date()]),
    pa.array(["2024-03-09 23:00", "soon", "2024-03-10"]),
)
STORED = (Format.AVRO, Format.ORC, Format.PARQUET)


@pytest.mark.parametrize(
    ("format_", "times"),
    [
        *((format_, times) for format_ in STORED for times in TIMES),
        (Format.PARQUET, pa.array([AT, NEXT, None], pa.timestamp("ns", "Europe/Paris"))),
    ],
)
def test_stored_types(tmp_path: Path, format_: Format, times: pa.Array) -> None:
    """By their own types, and texts by what they say; of a damaged file nothing is known."""
    at = tmp_path / f"a.{format_.value}"
    TABLES[at.suffix](pa.table({"id": ["a", "b", "c"], "t": times}), at)
    assert look(tmp_path, at.name, format=format_) == {"2024-03-09": 1, "2024-03-10": 1}

    at.write_bytes(b"PAR1 and no more")
    assert look(tmp_path, at.name, format=format_) is None


@pytest.mark.parametrize(
    ("granularity", "starts"),
    [
        (Granularity.HOUR, {"1969-12-31 23:00": 1, "2024-02-29 23:00": 2}),
        (Granularity.WEEK, {"1969-12-29": 1, "2024-02-26": 2}),
        (Granularity.MONTH, {"1969-12-01": 1, "2024-02-01": 2}),
    ],
)
def test_granularities(tmp_path: Path, granularity: Granularity, starts: dict[str, int]) -> None:
    """The estimate cuts cells of every granularity, before the epoch too."""
    times = "1969-12-31 23:30:00\n2024-02-29 23:00:00\n2024-02-29 23:59:59"
    (tmp_path / "a.csv").write_text(f"t\n{times}\n")

    assert look(tmp_path, "a.csv", granularity=granularity) == starts


def test_cells_have_no_content_yet(tmp_path: Path) -> None:
    """Estimated cells have a number of rows and no content; a source without times has none."""
    (tmp_path / "a.csv").write_text("t\n2024-03-09\n")
    source = Source("raw.x", Format.CSV, (), path="*", event_time_column="t")
    listed = [ListedFile("a.csv", 13, 0, "")]

    found = estimate_cells(tmp_path, source, listed, Granularity.DAY, NOW)

    assert found is not None
    day = parse_instant_text("2024-03-09")
    assert list(found[0]) == [CellState(Interval(day, day + DAY), 1, 0)]
    lookup = replace(source, event_time_column=None)
    assert estimate_cells(tmp_path, lookup, listed, Granularity.DAY, NOW) is None


@pytest.mark.parametrize(
    "values",
    [
        {"budget": 3},
        {"timestamp_format": "yyyy-QQQ"},
        {"format": Format.PARQUET},
        {"delimiter": "|"},
    ],
    ids=["over budget", "a pattern of the engine's own", "not that format", "no such column"],
)
def test_files_that_cannot_be_estimated(tmp_path: Path, values: dict[str, Any]) -> None:
    """Files that cannot be estimated give no cells; the
    plan then says that cells are known after the ingest.
    """
    (tmp_path / "a.csv").write_text("t,x\n2024-03-09,1\n")

    assert look(tmp_path, "a.csv", **values) is None


def test_a_thousand_small_files_cost_more_than_one(tmp_path: Path) -> None:
    """Each is opened, so a plan over a hundred thousand does not look into all of them."""
    (tmp_path / "a.csv").write_text("t,x\n2024-03-09,1\n")
    source = Source("raw.x", Format.CSV, (), path="*", event_time_column="t")
    files = [ListedFile("a.csv", 17, 0, "")] * 20

    def estimated(*, budget: int) -> bool:
        return estimate_cells(tmp_path, source, files, Granularity.DAY, NOW, budget) is not None

    assert estimated(budget=30 * PER_FILE)
    assert not estimated(budget=10 * PER_FILE)


@pytest.mark.parametrize(
    ("received", "latest"), [(None, "2024-03-09 12:00"), ("received", "2024-03-09 13:00")]
)
@pytest.mark.parametrize("written", ["iso", "epoch_micros", "yyyy-MM-dd HH:mm:ss.SSSSSS"])
def test_rows_dated_in_the_future(
    tmp_path: Path, received: str | None, latest: str, written: str
) -> None:
    """Rows dated in the future touch no cell; a source with a received column allows an hour."""
    last = parse_instant_text(latest)
    at = [last - 1, last, last + 1, last + 40 * 24 * HOUR]
    texts = [datetime_of(time).isoformat(" ", "microseconds")[:26] for time in at]
    texts = [*map(str, at)] if written == "epoch_micros" else texts
    (tmp_path / "a.csv").write_text("\n".join(["t", *texts]))
    source = Source("raw.x", Format.CSV, (), path="*", event_time_column="t")
    source = replace(source, timestamp_format=written, received_column=received)
    listed, now = [ListedFile("a.csv", 99, 0, "")], parse_instant_text("2024-03-09 12:00")

    found = estimate_cells(tmp_path, source, listed, Granularity.DAY, now)

    assert found is not None
    rows = [(show_instant(state.cell.start), state.rows) for state in found[0]]
    assert (rows, found[1]) == ([("2024-03-09", 2)], 2)
