"""What a look at a CSV file finds is what letter by letter is there, wherever it is cut up."""

from __future__ import annotations

import csv
import io
import re
from unittest.mock import patch

from hypothesis import assume, example, given
from hypothesis import strategies as st

from infold.spark.reading import csv_shape

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


@given(text=st.text('a,"\n\r', max_size=30), size=SIZES)
@example(text='a,"\n"\r\nb', size=1)
@example(text='"a"a,"\n"\r\n', size=1)
def test_records_and_their_ends(text: str, size: int) -> None:
    """Ends in quotes are text, and the others are found, where no quote swallows lines."""
    with patch.object(csv_shape, "_CHUNK", size):
        rough = csv_shape.quotes_of(io.BytesIO(text.encode()), ",")
        close = csv_shape.quotes_of(io.BytesIO(text.encode()), ",", closely=True)
    assume(rough.swallows is None)
    wanted = records(text)

    assert [*csv_shape.records(text.encode(), ",", quoted=True)][: len(wanted)] == [
        record.encode() for record, _ in wanted
    ]
    ends = {end for _, end in wanted if end}
    assert close.ends == ends <= rough.ends
    assert close.spans == any(re.search("[\r\n]", record) for record, _ in wanted) <= rough.spans
    assert rough.strays == close.strays


@given(text=st.text('a,"\n\r', max_size=30), size=SIZES)
def test_without_quotes_lines_are_records(text: str, size: int) -> None:
    """Where nothing is quoted a quote is a letter."""
    with patch.object(csv_shape, "_CHUNK", size):
        found = csv_shape.quotes_of(io.BytesIO(text.encode()), ",", quoted=False)
    lines = io.StringIO(text, newline="").readlines()
    ends = {line[len(line.rstrip("\r\n")) :] for line in lines} - {""}

    assert found == csv_shape.Quotes(None, strays=False, spans=False, ends=frozenset(ends))
    assert [*csv_shape.records(text.encode(), ",", quoted=False)] == [
        row.encode() for row in re.split("\r\n|\r|\n", text.removesuffix("\n").removesuffix("\r"))
    ][: len(lines)]


LETTERS = 'a \t\0\x0b,\n\r"\ufeff\u00e4'


@given(text=st.text(LETTERS, max_size=12), cut=st.integers(0, 12), size=SIZES, one=st.booleans())
@example(text="a \0\n", cut=0, size=1, one=False)
@example(text="\ufeff\n \n", cut=0, size=9, one=True)
def test_bytes_of_a_file(text: str, cut: int, size: int, one: bool) -> None:
    """Quotes, CR, bytes that are no text, and lines of controls are found, and blanks first."""
    raw = text.encode()[cut:]
    with patch.object(csv_shape, "_CHUNK", max(size, 9)):
        found = csv_shape.bytes_of(io.BytesIO(raw), " \t", one_field=one, quoted=False)
        quoted = csv_shape.bytes_of(io.BytesIO(raw), " \t", one_field=one)

    trimmed = [line for line in re.split(b"[\r\n]", raw) if not line.strip(bytes(range(0x21)))]
    blanks = b"" if one else b" \t"
    first = next(iter(re.split(b"[\r\n]+", raw.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n"))))
    assert quoted == found._replace(quotes=b'"' in raw, odd=quoted.odd)
    assert quoted.odd == found.odd or quoted.quotes
    assert not found.quotes
    assert found.returns == (b"\r" in raw)
    assert found.odd == any(line.strip(blanks) for line in trimmed)
    assert found.text == (raw.decode(errors="replace").count("\ufffd") == 0)
    assert found.blank == (bool(first) and not first.strip(b" \t"))


def test_records_are_those_of_pythons_reader() -> None:
    """A record that is well quoted is one of Python's, and has its fields."""
    text = 'id,"a\r\n""b"""\r\n"x\n","y\r"\rc,\n\r\n'
    rows = list(csv.reader(io.StringIO(text, newline="")))

    found = [one.decode() for one in csv_shape.records(text.encode(), ",", quoted=True)]

    assert [
        next(csv.reader(io.StringIO(one, newline="")), []) for one in found[: len(rows)]
    ] == rows
