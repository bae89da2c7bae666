"""The queries of the rules: each file's cases, and the project around a case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from tests.declare.shop import read

from infold.messages.errors import InfoldError

HERE = Path(__file__).parent


PROJECT = """
name: shop
sources:
  raw.clicks:
    path: clicks/*.json
    event_time_column: event_ts
    columns: {event_id: string, user_id: string, event_ts: timestamp, url: string, amount: "decimal(18,2)", code: string, unit: string, tags: array<string>}
  raw.holidays:
    path: holidays/*.csv
    event_time_column: day
    columns: {day: date, name: string}
  raw.countries:
    path: countries.csv
    columns: {code: string, country: string, parent: string, since: timestamp}
"""  # noqa: E501


MODELS = {
    "clicks": "---\nmaterialization: events\nunique_key: event_id\n"
    "timeseries: {event_time_column: event_ts}\n---\nSELECT * FROM raw.clicks",
    "sessions": "---\nmaterialization: sessions\nsessions: {user: user_id, gap: 30 minutes}\n---\n"
    "SELECT count(*) AS events, sum(amount) AS revenue FROM clicks",
    "daily": "---\nmaterialization: table\nincremental: {}\n"
    "timeseries: {event_time_column: session_start, partition_column: day}\n---\n"
    "SELECT cast(session_start AS date) AS day, user_id, count(*) AS n FROM sessions GROUP BY 1, 2",
    "arrivals": "---\nmaterialization: table\nincremental: {}\n"
    "timeseries: {event_time_column: day, partition_column: day}\n---\n"
    "SELECT to_date(c.event_ts) AS day, to_date(s.session_start) AS came FROM clicks AS c "
    "LEFT JOIN sessions AS s ON s.session_start = c.event_ts",
    "paid": "---\nmaterialization: view\n---\nSELECT * FROM clicks WHERE amount > 0",
    "coded": "---\nmaterialization: view\n---\n"
    "SELECT c.*, k.country FROM raw.clicks AS c LEFT JOIN raw.countries AS k ON k.code = c.code",
    "coded_twice": "---\nmaterialization: view\n---\n"
    "SELECT * FROM raw.clicks UNION ALL SELECT * FROM raw.clicks",
    "coded_apart": "---\nmaterialization: view\n---\n"
    "SELECT c.* FROM raw.clicks AS c JOIN raw.countries AS k ON k.code < c.code",
    "users": "---\nmaterialization: table\n---\n"
    "SELECT user_id, min(event_ts) AS first_seen FROM clicks GROUP BY user_id",
}


@dataclass(frozen=True)
class Case:
    """One query of a file with what is expected of it."""

    file: str
    line: int
    claim: str
    front: dict[str, object]
    refused: tuple[tuple[str, str], ...]
    sql: str
    alike: str = ""
    elsewhere: str = ""
    page: str = ""
    about: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.claim}"


@cache
def cases() -> tuple[Case, ...]:
    """All cases of all files."""
    found = []
    for path in sorted(HERE.glob("*.sql")):
        text = path.read_text()
        front = yaml.safe_load(text.splitlines()[0].removeprefix("-- front:"))
        for match in re.finditer(
            r"^-- (?:accepted|refused|with|page[^:]*):(?:.+\n?)+", text, re.MULTILINE
        ):
            line = text.count("\n", 0, match.start()) + 1
            found.append(_case(path.name, line, front, match[0]))
    return tuple(found)


def _case(file: str, line: int, front: dict[str, object], block: str) -> Case:
    more: dict[str, object] = {}
    refused, claim, alike, elsewhere, about, page, sql = [], "", "", "", "", "", []
    for text in block.splitlines():
        if text.startswith("-- with:"):
            more = yaml.safe_load(text.removeprefix("-- with:"))
        elif text.startswith("-- accepted:"):
            claim = text.removeprefix("-- accepted:").strip()
        elif text.startswith("-- alike:"):
            alike = text.removeprefix("-- alike:").strip()
        elif text.startswith("-- elsewhere:"):
            elsewhere = text.removeprefix("-- elsewhere:").strip()
        elif match := re.match(r"-- page(?: (\S+))?: (.*)", text):
            about, page = match[1] or "", match[2]
        elif match := re.match(r"-- refused: (\S+) `(.*)`(?:: (.*))?", text):
            refused.append((match[1], match[2]))
            claim = claim or match[3] or match[1]
        else:
            sql.append(text)
    front = {**front, **more}
    return Case(
        file, line, claim, front, tuple(refused), "\n".join(sql), alike, elsewhere, page, about
    )


def around(sql: str) -> dict[str, str]:
    """The project's files as far as a query names them, or a model that it names does."""
    found: dict[str, str] = {}
    texts = [sql]
    while texts:
        words = set(re.findall(r"\w+", texts.pop().lower()))
        new = {name: text for name, text in MODELS.items() if name in words - found.keys()}
        found |= new
        texts += new.values()
    return {"infold.yml": PROJECT} | {f"models/{name}.sql": text for name, text in found.items()}


def files(case: Case) -> dict[str, str]:
    """A project with a case's query as one of its models."""
    return {**around(case.sql), "models/subject.sql": _model(case)}


def _model(case: Case) -> str:
    return f"---\n{yaml.safe_dump(case.front)}---\n{case.sql}"


def findings(case: Case) -> list[InfoldError]:
    """What is found in a case's query, and in nothing else of its project."""
    return _findings(case.file)[case.line]


@cache
def _findings(file: str) -> Mapping[int, list[InfoldError]]:
    """What is found in each query of a file: one project has all of them as models."""
    own = [case for case in cases() if case.file == file]
    names = {f"models/line_{case.line}.sql": case for case in own}
    others = {name: text for case in own for name, text in around(case.sql).items()}
    _, errors = read(others | {name: _model(case) for name, case in names.items()})
    found: dict[int, list[InfoldError]] = {case.line: [] for case in own}
    for error in errors:
        assert error.at is not None, f"a finding without a place: {error}"
        assert error.at.file in names, f"a finding in none of the queries: {error}"
        found[names[error.at.file].line].append(error)
    return found


def under_caret(error: InfoldError) -> str:
    """The text above the caret."""
    if error.at is None:
        return ""
    return error.at.text[error.at.column - 1 :][: error.at.width]
