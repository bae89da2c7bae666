"""CSV files: a look at one finds what letter by letter is there, and it says the same however its
lines end.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.spark.reading.folder import Folder

from infold.core.model import Drift
from infold.spark.reading import csv_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SIZES = st.integers(1, 9)


def records(text: str) -> list[tuple[str, str]]:
    """The records of a text and their ends, letter by letter; a quote at a field's start counts."""
    found, at, began, quoted, starts = [], 0, 0, False, True
    while at < len(text):
        letter, before = text[at], at
        at += 1
        if quoted:
            doubled = text[at : at + 1] == '"'
            at += letter == '"' and doubled
            quoted = letter != '"' or doubled
        elif letter == '"' and starts:
            quoted = True
        elif letter in "\r\n":
            at += letter == "\r" and text[at : at + 1] == "\n"
            found.append((text[began:before], text[before:at]))
            began = at
        starts = letter in ",\r\n"
    return [*found, (text[began:], "")]


def cut(text: str, *, quoted: bool) -> list[str]:
    """The records of a text by its lines, as Spark's reader of text has them: LF ends one."""
    lines = text.encode().removesuffix(b"\n").split(b"\n") if text else []
    return [record.decode() for record in csv_files.records(lines, ",", quoted=quoted)]


@given(text=st.text('a,"\n\r', max_size=30), size=SIZES)
@example(text='a,"\n"\r\nb', size=1)
@example(text='"a"a,"\n"\r\n', size=1)
@example(text='"\n","\n\n""\n"\n"a', size=1)
@example(text='"a"\n"b",c', size=9)
def test_records(text: str, size: int) -> None:
    """
    Ends in quotes are text, and others end records, where no quote swallows lines; whether there is
    any in quotes is found. Wherever what is looked at ends.
    """
    with patch.object(csv_files, "_CHUNK", size):
        found = csv_files.quotes_of(io.BytesIO(text.encode()), ",")
    assume(found.swallows is None)
    wanted = [record for record, _ in records(text)]

    with patch.object(csv_files, "_TOGETHER", size):
        assert cut(text, quoted=True)[: len(wanted)] == wanted[: len(wanted) - (not wanted[-1])]
    assert found.spans == any(re.search("[\r\n]", record) for record in wanted)


@given(text=st.text('a,"\n\r', max_size=30), size=SIZES)
def test_without_quotes_lines_are_records(text: str, size: int) -> None:
    """Where nothing is quoted a quote is a letter."""
    with patch.object(csv_files, "_TOGETHER", size):
        assert cut(text, quoted=False) == [
            line.rstrip("\r\n") for line in io.StringIO(text, newline="").readlines()
        ]


def test_a_mark_before_a_quote() -> None:
    """It is none of a field, which may extend over lines."""
    text = '\ufeff"i\nd",n\n1,2\n'
    assert csv_files.quotes_of(io.BytesIO(text.encode()), ",") == (None, True)


LETTERS = 'a \t\0\x0b,\n\r"\ufeff\u00e4'


@given(text=st.text(LETTERS, max_size=12), cut=st.integers(0, 12), size=SIZES, one=st.booleans())
@example(text="a \0\n", cut=0, size=1, one=False)
@example(text="\ufeff\n \n", cut=0, size=9, one=True)
def test_bytes_of_a_file(text: str, cut: int, size: int, one: bool) -> None:
    """Quotes, bytes that are no text, and lines of controls are found."""
    raw = text.encode()[cut:]
    with patch.object(csv_files, "_CHUNK", size):
        found = csv_files.bytes_of(io.BytesIO(raw), " \t", one_field=one)

    trimmed = [line for line in re.split(b"[\r\n]", raw) if not line.strip(bytes(range(0x21)))]
    blanks = b"" if one else b" \t"
    assert found.quotes == (b'"' in raw)
    assert found.odd == any(line.strip(blanks) for line in trimmed)
    assert found.text == (raw.decode(errors="replace").count("\ufffd") == 0)


def test_records_are_those_of_pythons_reader() -> None:
    """A record that is well quoted is one of Python's, and has its fields."""
    text = 'id,"a\r\n""b"""\r\n"x\n","y\r"\rc,\n\r\n'
    rows = list(csv.reader(io.StringIO(text, newline="")))

    found = cut(text, quoted=True)

    assert [
        next(csv.reader(io.StringIO(one, newline="")), []) for one in found[: len(rows)]
    ] == rows


COLUMNS = {"id": "string", "note": "string", "n": "int"}
HEAD = "id,note,n"
ROWS = ["a,x,1", "b,,", ",y,3"]
QUOTED = ['a,"x, ""y""",1', '"b",z,', '"c","z","3"']


def lines(*texts: str, end: str) -> str:
    """Lines that end alike."""
    return "".join(text + end for text in texts)


def spans(inner: str) -> str:
    """Fields with an end of a line in them, everywhere in a row."""
    return f'"a{inner}",x,1|b,"{inner}y",2|c,"y{inner}{inner}z","3"|"{inner}",w,'


ENDS = {"LF": "\n", "CRLF": "\r\n", "CR": "\r"}
CONTENTS: dict[str, str] = {
    **{name: lines(HEAD, *ROWS, end=end) for name, end in ENDS.items()},
    **{f"{name}, no last": lines(HEAD, *ROWS, end=end)[: -len(end)] for name, end in ENDS.items()},
    **{
        f"{first}, then {name}": lines(HEAD, "0,0,0", end=ENDS[first]) + lines(*ROWS, end=end)
        for name, end in ENDS.items()
        for first in ENDS
        if first != name
    },
    **{f"{name}, quotes": lines(HEAD, *QUOTED, end=end) for name, end in ENDS.items()},
    **{
        f"{name}, {inner} in quotes": lines(HEAD, *spans(ENDS[inner]).split("|"), end=end)
        for name, end in ENDS.items()
        for inner in ENDS
    },
    **{
        f"{first}, then {name}, {inner} in quotes": lines(HEAD, end=ENDS[first])
        + lines(*spans(ENDS[inner]).split("|"), end=end)
        for name, end in ENDS.items()
        for first in ENDS
        for inner in ENDS
        if first != name
    },
    **{
        f"{name}, blank lines": lines("", HEAD, " ", "a,x,1", "", "\t ", 'b,"y",2', " ", end=end)
        for name, end in ENDS.items()
    },
    **{
        f"{name}, blank lines first": lines("", "  ", "\t", HEAD, *ROWS, end=end)
        for name, end in ENDS.items()
    },
    **{
        f"{name}, wrong rows": lines(HEAD, "a", "b,x,1,2", "c,x,3", end=e)
        for name, e in ENDS.items()
    },
    **{
        f"{name}, NUL": lines(HEAD, '"a\0b","c\0""d""",1', 'a\0,"\0","2"', '"\0",x,"\0"', end=end)
        for name, end in ENDS.items()
    },
    "blanks alone": "  \n\t",
    "a mark": "\ufeff" + lines(" ", HEAD, *ROWS, end="\r\n"),
    "CRLF, long": lines(
        HEAD, *(f'{n},"{"x" * (n % 97)}""{n}\r\ny",{n}' for n in range(5_000)), end="\r\n"
    ),
}
MORE: dict[str, str] = {
    "": "",
    "quoted": '"more","q",9',
    "spanning": '"more","q\r\n\n\rq",9',
    "not UTF-8": "more\udce9,q,9",
}
"""Another row that decides how the file is read."""


def with_more(text: str, more: str) -> str:
    """A text with another row, if it has any."""
    if not more or not text.strip():
        return text
    end = next((end for end in ("\r\n", "\r", "\n") if text.endswith(end)), "")
    return text + ("" if end else "\n") + more + end


def wanted(text: str, *, header: bool = True, **dialect: Any) -> list[tuple[Any, ...]]:
    """The rows that Python's reader finds, in the order of their texts."""
    lines = StringIO(text.removeprefix("\ufeff"), newline="")
    rows = [
        row for row in csv.reader(lines, **dialect) if len(row) > 1 or "".join(row).strip(" \t")
    ]
    assert not header or rows[:1] in ([], [HEAD.split(",")])
    return sorted(map(value, rows[1:] if header else rows), key=str)


def value(row: Sequence[str]) -> tuple[Any, ...]:
    """What a row says."""
    if "\udce9" in "".join(row):
        return ("unparsable: not UTF-8",)
    if len(row) != 3:
        return ("unparsable: wrong number of fields", ",".join(row))
    texts = [one or None for one in row]
    if texts[2] is not None and not texts[2].isdigit():
        return ("unparsable: n is not int",)
    return (*texts[:2], None if texts[2] is None else int(texts[2]))


Rows = list[tuple[Any, ...]]


def read(
    root: Path, spark: SparkSession, contents: Mapping[str, str], **keys: Any
) -> dict[str, Rows]:
    """The rows of files by their names, all read at once."""
    folder = Folder(root, spark)
    for number, (name, text) in enumerate(contents.items()):
        ending = ".csv.gz" if name.endswith(" gz") else ".csv"
        folder.put(f"{number}{ending}", text.encode(errors="surrogateescape"))
    found: dict[str, Rows] = {name: [] for name in contents}
    names = list(contents)
    for row in folder.frame(COLUMNS, **keys).toArrow().to_pylist():
        problem, values = row["_problem"], tuple(row[name] for name in COLUMNS)
        aside = (problem, row["_raw"]) if "fields" in (problem or "") else (problem,)
        found[names[row["_source_file"] - 1]].append(aside if problem else values)
    return {name: sorted(rows, key=str) for name, rows in found.items()}


def in_all_ways(contents: Mapping[str, str]) -> dict[str, str]:
    """The contents with other rows in them, plain and packed."""
    return {
        f"{name} + {how}{packed}": with_more(text, more)
        for name, text in contents.items()
        for how, more in MORE.items()
        for packed in ([""] if '"' in more else ["", " gz"])
    }


def unlike(found: Mapping[str, Rows], wanted: Mapping[str, Rows]) -> dict[str, tuple[Rows, Rows]]:
    """The first rows, of files with others than wanted."""
    assert found.keys() == wanted.keys()
    return {
        name: (rows[:5], wanted[name][:5]) for name, rows in found.items() if rows != wanted[name]
    }


@pytest.mark.spark
def test_a_file_says_what_pythons_reader_finds(tmp_path: Path, spark: SparkSession) -> None:
    """Every value is as the file has it, in whatever way the file has to be read."""
    contents = in_all_ways(CONTENTS)
    assert not unlike(
        read(tmp_path, spark, contents), {name: wanted(text) for name, text in contents.items()}
    )


@pytest.mark.spark
def test_files_that_were_judged_before(tmp_path: Path, spark: SparkSession) -> None:
    """Where a file's quotes were looked at before, its ends are found all the same."""
    found = read(tmp_path, spark, CONTENTS, on_unreadable=Drift.SET_ASIDE)

    assert not unlike(found, {name: wanted(text) for name, text in CONTENTS.items()})


@pytest.mark.spark
def test_a_file_in_several_parts(tmp_path: Path, spark: SparkSession) -> None:
    """Fields go on from one part to the next, in order, also where parts of files are mixed."""
    text = CONTENTS["CRLF, long"]
    contents = {"CRLF": text, "LF": text.replace("\r\n", "\n"), "turned": text + "0,z,1\n"}
    spark.conf.set("spark.sql.files.maxPartitionBytes", "40000")
    try:
        found = read(tmp_path, spark, contents)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")

    assert not unlike(found, {name: wanted(text) for name, text in contents.items()})


@pytest.mark.spark
def test_quotes_that_quote_nothing(tmp_path: Path, spark: SparkSession) -> None:
    """Text behind a closing quote, and quotes inside of a field, stay in the file's last field."""
    strays = ['1,"a"b,"c"d', '2,"a" ,"b"\t', '3,"a" b,"c" "d', '4,a"b,c"', '5,"a""b,c"d,e"f""']
    texts = {name: lines("n,id,note", *strays, end=end) for name, end in ENDS.items()}

    found = read(tmp_path, spark, in_all_ways(texts))

    for name, rows in found.items():
        good = sorted((n, id_, note) for id_, note, n in (row for row in rows if len(row) == 3))
        assert good == [
            (1, '"a"b', '"c"d'),
            (2, "a", "b"),
            (3, '"a" b', '"c" "d'),
            (4, 'a"b', 'c"'),
            (5, '"a"b,c"d', 'e"f""'),
        ], name


@pytest.mark.parametrize(
    ("keys", "dialect"),
    [
        ({"positions": tuple(COLUMNS)}, {}),
        ({"positions": tuple(COLUMNS), "quoted": False}, {"quoting": csv.QUOTE_NONE}),
        ({"delimiter": "\u00a6"}, {"delimiter": "\u00a6"}),
    ],
    ids=["no header", "no quotes", "a delimiter beyond ASCII"],
)
@pytest.mark.spark
def test_other_dialects(
    tmp_path: Path, spark: SparkSession, keys: dict[str, Any], dialect: dict[str, Any]
) -> None:
    """Without a header or quotes, and with another delimiter, a file says the same as well."""
    header, quoted = "positions" not in keys, keys.get("quoted", True)
    rows = [*ROWS, *QUOTED, *spans("\r\n").split("|")] if quoted else [*ROWS, 'a,"x,1', '"b",z",']
    texts = {
        f"{first}, then {name}{odd}": lines(*([HEAD] if header else []), "0,0,0", end=ENDS[first])
        + lines(*rows, odd, end=end)
        for name, end in ENDS.items()
        for first in ENDS
        for odd in ("", "\0\0", MORE["not UTF-8"])
    }
    texts = {name: text.replace(",", keys.get("delimiter", ",")) for name, text in texts.items()}

    found = read(
        tmp_path, spark, {name + at: texts[name] for name in texts for at in ("", " gz")}, **keys
    )

    assert found == {
        name + at: wanted(text, header=header, **dialect)
        for name, text in texts.items()
        for at in ("", " gz")
    }


@pytest.mark.spark
def test_one_column(folder: Folder) -> None:
    """Blanks are a value where a record has one field, but before the header."""
    wanted = {}
    for end, ending in ((end, ending) for end in ENDS for ending in ("csv", "csv.gz")):
        text = ["", " ", "id", "a", "", "  "]
        for name, last, value in (
            ("plain", "b", "b"),
            ("quoted", f'"b{ENDS[end]}"', f"b{ENDS[end]}"),
        ):
            folder.put(f"{name} {end}.{ending}", lines(*text, last, end=ENDS[end]))
            wanted[f"{name} {end}.{ending}"] = sorted([("  ",), ("a",), (value,)], key=str)

    assert folder.by_name({"id": "string"}) == wanted
