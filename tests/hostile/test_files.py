"""Broken files, data and words: each has its error, and none breaks anything."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkRuntimeError
from tests.declare.shop import CLICKS, DAILY, INFOLD, SHOP, read, write
from tests.hostile import contents
from tests.hostile.contents import FILES
from tests.hostile.outcome import command, error_fault, judged

from infold import api
from infold.core.files import ListedFile
from infold.messages.errors import InfoldError
from infold.spark.reading import csv_files, source_rows

pytestmark = pytest.mark.deep

BOMB = "a: &a [x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}, *{chr(97 + n)}]\n"
    for n in range(20)
)
CONTENTS: list[bytes] = [
    *(b"", b"\n", b"   \n\t\n", b"\0", b"name: sh\0op\n", bytes(range(256)) * 4),
    *(b"name: caf\xe9\n", b"name: \xed\xa0\x80\n", b'name: "\\ud800"\n'),
    *(INFOLD.encode("utf-16"), b"\xef\xbb\xbf" + INFOLD.encode()),
    *(INFOLD.replace("\n", "\r\n").encode(), INFOLD.replace("\n", "\r").encode()),
    *(INFOLD.rstrip("\n").encode(), b"name: " + b"a" * 500_000 + b"\n"),
    *(b"# nothing\n" * 50_000 + INFOLD.encode(), b"# shop\n", b"7\n", b"shop\n"),
    *(b"- name: shop\n", b"null\n", b"{", b"name: 'shop\n"),
    *(b"name:\tshop\nsources:\n\traw.clicks: {}\n", b"name: *nobody\n"),
    *(b"name: shop\nsources: &s {raw.x: *s}\n", BOMB.encode()),
    b"name: shop\nsources: {<<: {raw.x: {path: x.csv, columns: {a: int}}}}\n",
    *(b"name: shop\nsources: {<<: abc}\n", b"name: !!python/object/apply:os.system ['true']\n"),
    *(b"name: !shop 1\n", b"name: shop\n---\nname: other\n", b"name: shop\n...\nname: other\n"),
    *(b"%YAML 9.9\n---\nname: shop\n", b"? [a, b]\n: c\n", b"{{a: b}: c}\n", b"~: shop\n"),
    *(b"1: shop\n1.5: x\ntrue: y\n", b"name: shop\nname: shop\n", b"name: shop\nNAME: shop\n"),
    *(b"name: 1_000\n", b"name: 0777\n", b"name: 12:30:45\n"),
    *(b"name: shop\nstart: 2024-02-31\n", b"name: " + b"9" * 5_000 + b"\n"),
    b"name: " + b"[" * 2_000 + b"]" * 2_000 + b"\n",
    b"name: " + b"{a: " * 2_000 + b"1" + b"}" * 2_000 + b"\n",
    "".join("  " * n + f"k{n}:\n" for n in range(800)).encode(),
    *("name: \u202eshop\u202c\n".encode(), "name: shop\u2028start: x\n".encode()),
    *("name: shop\u0085start: x\n".encode(), b"name: !!binary c2hvcA==\n"),
    *(b"name: !!set {a, b}\n", b"name: $(touch /tmp/x)\n"),
]
SQL: dict[str, bytes] = {
    "no end of the front matter": b"---\nmaterialization: table\nSELECT 1 AS a",
    "only front matter": b"---\nmaterialization: table\n---\n",
    "only dashes": b"---\n---\n---\n",
    "front matter twice": b"---\nmaterialization: table\n---\n" + CLICKS.encode(),
    "no front matter": b"SELECT 1 AS a\n",
    "front matter behind blanks": b"\n\n" + DAILY.encode(),
    "dashes of Windows": DAILY.replace("\n", "\r\n").encode(),
    "a mark before the dashes": b"\xef\xbb\xbf" + DAILY.encode(),
    "more dashes": DAILY.replace("---", "-----").encode(),
    "a query of NULs": DAILY.encode() + b"\0\0\0",
    "a query that is not UTF-8": DAILY.encode() + b"-- caf\xe9\n",
    "a comment that does not end": DAILY.encode() + b"/* and",
    "a text that does not end": DAILY.encode() + b" HAVING 'a",
    "a semicolon": DAILY.encode() + b";",
    "many semicolons": DAILY.encode() + b";;;;",
    "a template": DAILY.encode() + b"{% if true %} LIMIT 1 {% endif %}",
    "a call of a template": DAILY.replace("sessions GROUP", "{{ ref('sessions') }} GROUP").encode(),
}


def tried(name: str, content: bytes) -> str:
    """What is wrong with how a project with this file is read."""
    try:
        _, errors = read({**SHOP, name: content})
        return "; ".join(filter(None, map(error_fault, errors)))
    except RecursionError as error:
        return repr(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
        return f"{type(error).__name__}: {error}"[:300]


@pytest.mark.parametrize("file", ["infold.yml", "models/daily.sql", "models/new.sql"])
def test_files_with_any_content(file: str) -> None:
    """YAML and SQL files with any content are accepted, or are a named error."""
    contents = {f"{content!a}"[:60]: content for content in CONTENTS}
    if file != "infold.yml":
        as_front = (b"---\n" + text + b"---\nSELECT 1 AS a\n" for text in CONTENTS)
        contents |= SQL | {f"{text!a}"[:60]: text for text in as_front}
    wrong = {name: tried(file, content) for name, content in contents.items()}

    judged(file, wrong)


NAMES = [
    *("models/.sql", "models/a b.sql", "models/a.b.sql", "models/A.sql", "models/DAILY.sql"),
    *("models/select.sql", "models/1.sql", "models/_hidden.sql", "models/.hidden.sql"),
    *("models/\u00fc.sql", "models/\U0001f600.sql", "models/a`b.sql", "models/a'b.sql"),
    *('models/a"b.sql', "models/a\nb.sql", "models/a:b.sql", "models/a*b.sql"),
    *("models/raw.clicks.sql", "models/infold.sql", "models/set_aside.sql", "models/__init__.sql"),
    *(f"models/{'n' * 250}.sql", "models/deep/er/daily2.sql", "models/deep/daily.sql"),
    *("models/x.SQL", "models/x.sql.bak", "models/x.yml", "models/x.py", "models/x.sql.sql"),
]


def test_models_with_strange_names(tmp_path: Path) -> None:
    """It is accepted if tables can have the name, and is a named error otherwise."""
    wrong = {}
    for number, name in enumerate(NAMES):
        folder = write(tmp_path / str(number), {**SHOP, name: DAILY})
        wrong[ascii(name)] = command(folder, "check") or command(folder, "plan")

    judged("name", wrong)


def file_above(path: Path) -> None:
    """A file has the place of the folder."""
    shutil.rmtree(path.parent)
    path.parent.write_text("")


SHAPES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,  # whoever reads it waits for ever
    "a folder": Path.mkdir,
    "a link to nothing": lambda path: path.symlink_to("nobody"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "nothing": lambda path: None,
    "a device": lambda path: path.symlink_to("/dev/null"),
    "a file above": file_above,
}
"""What is where a file was."""
PLACES = ["infold.yml", "models/daily.sql", "models/clicks.sql", "landing/clicks/a.json"]
PLACES += [".infold/ledger.db", "warehouse/catalog.db", "countries.csv", ".infold/cache"]


@pytest.mark.parametrize("place", PLACES)
def test_something_else_in_place_of_a_file(place: str, tmp_path: Path) -> None:
    """Anything else in place of a file is a named error, and no command waits for ever."""
    wrong = {}
    for name, shape in SHAPES.items():
        if name == "a file above" and "/" not in place:
            continue
        folder = write(tmp_path / name, {**SHOP, place: SHOP.get(place, '{"event_id": "a"}\n')})
        (folder / place).unlink()
        shape(folder / place)
        for line in ("check", "plan", "status", "history", "plan --json"):
            wrong[f"{name}, {line}"] = command(folder, *line.split())

    judged(place, wrong)


class AskedForError(Exception):
    """Spark was to read the file."""


class NoSpark:
    """Stands in for a session: nothing is wrong with a file as a whole once it is asked for."""

    def __getattr__(self, name: str) -> None:
        raise AskedForError(name)


def test_a_file_of_another_format_is_a_named_error(tmp_path: Path) -> None:
    """Before Spark starts, unless such files are set aside."""
    contents.write(tmp_path, aside=False)
    project, wrong = api.open_project(tmp_path), {}
    cases = [(one, file) for one in ("csv", "packed", "json", "parquet") for file in FILES[one]]
    for kind, file in cases:
        source = project.sources[f"raw.{contents.KINDS[kind][0]}"]
        seen = ListedFile(contents.path_of(kind, file), len(file.content), 0, "1")
        try:
            source_rows.read(NoSpark(), project, source, [(1, seen)])  # type: ignore[arg-type]
            what = "no error"
        except InfoldError as error:
            what = error_fault(error) or (
                "" if file.whole or file.aside else f"an error: {error.slug}"
            )
        except (AskedForError, PySparkRuntimeError):  # types, too, are Spark's to read
            what = "Spark was asked" if file.whole else ""
        wrong[f"{kind} {file.name}"] = what

    judged("whole", wrong)


def swallowing(text: str) -> int | None:
    """The same letter by letter: the line of the first quoted field that takes in others."""
    line, at = 1, 0
    starts = True
    while at < len(text):
        if text[at] != '"' or not starts:
            line += text[at] == "\n"
            starts = text[at] in ",\r\n"
            at += 1
            continue
        begins, began, taken = line, at, False
        at += 1
        while at < len(text):
            if text[at] == '"':
                if text[at + 1 : at + 2] != '"':
                    break
                at += 1
            at += 1
        inside = text[began:at]
        taken = "\n" in inside or "\r" in inside
        line += inside.count("\n")
        if at == len(text) or (taken and text[at + 1 : at + 2] not in ("", ",", "\r", "\n")):
            return begins
        at += 1
        starts = False
    return None


@given(text=st.text('a,"\n\r', max_size=30), size=st.integers(1, 9))
def test_quotes_that_span_lines_are_found(text: str, size: int) -> None:
    """In any text, wherever it is cut into pieces."""
    with patch.object(csv_files, "_CHUNK", size):
        found = csv_files.quotes_of(io.BytesIO(text.encode()), ",")

    assert found.swallows == swallowing(text)


ODD = [
    *("", " ", "-", "--", "*", "nobody", "clicks,daily", "CLICKS", "+", "+nobody+", "tag:"),
    *("tag:nobody", "../clicks", "\U0001f600", "a" * 5_000, "'; DROP TABLE clicks; --"),
    *("\udcff", "0"),
]
TIMES = [
    *("", "yesterday", "2024-02-30", "2024-03-01T25:00", "0001-01-01", "9999-12-31"),
    *("10000-01-01", "-1", "1e9", "2024-03-01T00:00:00+99:00", "2024-03-01 10:00:30", "2024-W10"),
    *("\u0662\u0660\u0662\u0664-03-01", "2024-03-01\n", "now"),
]
NUMBERS = ["-1", "0", "1.5", "ten", "9" * 30, "", "nan", "\u0663"]
WHERES = [
    *("", "nobody = 1", "events", "events = 'a' OR", "events = 1; DROP TABLE sessions", "(" * 500),
    *("events IN ()", "events = (SELECT 1)", "session_start > 'soon'", "true", "1 = 1", "NULL"),
    "events = 1 OR " * 300 + "true",
]
STARTS = ("*", "CLICKS", "clicks,daily", "--", "-")
"""Terms that mean models: a command that builds them would start Spark."""

SAFE = [odd for odd in ODD if odd not in STARTS]
COMMANDS: dict[str, list[tuple[str, Sequence[str]]]] = {
    "plan": [
        *(("plan --select _", ODD), ("plan --exclude _", ODD), ("plan --start _", TIMES)),
        *(("plan --start 2024-03-01 --end _", TIMES), ("plan --as-of _", TIMES)),
        *(("plan --batch-size _", NUMBERS), ("plan _", ["clicks", "--nobody"])),
        ("plan --start _ --end 2024-03-01", ["2024-03-02"]),
        ("plan --auto --start 2024-03-01 --end _", ["2024-03-01"]),
    ],
    "run": [
        ("run --jobs _", ["-1", "1.5", "ten", "", "nan"]),
        ("run --max-rows _", ["-1", "1.5", "ten", ""]),
        *(("run --select _", SAFE), ("run --start _ --end 2024-03-02", ["2024-03-01T00:30"])),
    ],
    "show": [
        *(("show _", ODD), ("show sessions --where _", WHERES), ("show sessions -n _", NUMBERS)),
        *(("show sessions --columns _", ODD), ("show sessions --json _", ["/"])),
        ("show sessions --format csv --output _", ["/nobody/a.csv"]),
    ],
    "explain": [
        *(("explain _", ODD), ("explain daily _", ODD), ("explain daily _", TIMES)),
        ("explain session _", ODD),
    ],
    "others": [
        *(("history -n _", NUMBERS), ("history _", ODD), ("status _", ODD), ("restate _", SAFE)),
        *(("forget --yes _", ODD), ("backbuild _ --dry-run", ODD), ("quarantine list _", ODD)),
        *(("quarantine add _ x", ODD), ("quarantine add sessions _", ODD)),
        ("quarantine release sessions _", ODD),
        ("manifest _", [odd for odd in ODD if odd and "/" not in odd and len(odd) < 99]),
        *(("--target _ check", ODD), ("-C _ check", ODD), ("_", ODD)),
        ("init _", ["", "/dev/null", "/dev/null/x", "models", "infold.yml"]),
        *(("check --json _", ["--json"]), ("check _", ["x"])),
    ],
}
"""Command lines, each with what may be in the place of its ``_``."""


@pytest.mark.parametrize("name", COMMANDS)
def test_unexpected_words(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command with unexpected words is carried out, or a named error says which word is wrong."""
    folder = write(tmp_path / "shop", SHOP)
    (folder / "landing").mkdir()
    (folder / "landing" / "clicks").mkdir()
    (folder / "countries.csv").write_text("code,country\nDE,Germany\n")
    monkeypatch.chdir(folder)
    lines = [
        [odd if word == "_" else word for word in line.split()]
        for line, odds in COMMANDS[name]
        for odd in odds
    ]
    wrong = {f"{words!a}"[:120]: command(Path(), *words) for words in [*lines, []]}

    judged(name, wrong)
