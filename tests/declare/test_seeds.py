"""Seeds and audits as they are declared."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import CLICKS, SHOP, model, project, read, write
from tests.declare.test_mistakes import shown

from infold.core.audits import AuditKind, Severity, Within
from infold.core.model import Kind
from infold.declare import check, load
from infold.declare.seeds import MOST_BYTES, fits
from infold.declare.seeds import TYPES as TYPES_OF_SEEDS
from infold.messages.errors import InfoldErrors
from infold.planning.plan_notes import tables_of_audits

FILE = "seeds/prices.csv"
URL = "url\n"
TYPES = 'seeds: {prices: {columns: {rate: "decimal(5,2)", n: int}}}\n'


def mistakes(content: str | bytes, keys: str = "") -> list[str]:
    """What is wrong with a project that has a seed, one line each."""
    files = {**SHOP, "infold.yml": SHOP["infold.yml"] + keys, FILE: content}
    return [shown(error) for error in read(files)[1]]


def test_a_seed_is_a_table_with_the_columns_of_its_file() -> None:
    """A seed is a table built whole, named by its file; its rows are in its definition."""
    content = 'url,rate,n\n/a,1.50,\n"/b ""b""\n",2,-3\n'
    project, errors = read({**SHOP, "infold.yml": SHOP["infold.yml"] + TYPES, FILE: content})
    assert project is not None

    node = project["prices"]

    assert errors == []
    assert (node.model.kind, node.columns, node.model.place.file) == (
        Kind.TABLE,
        ("url", "rate", "n"),
        FILE,
    )
    assert r'["/a", "1.50", null], ["/b \\"b\\"\\n", "2", "-3"]' in node.model.sql


def test_another_row_is_another_definition(tmp_path: Path) -> None:
    """A changed row, order of rows or type changes the fingerprint; a description does not."""
    prints = []
    for content, keys in (
        ("url,n\n/a,1\n", ""),
        ("url,n\n/a,2\n", ""),
        ("url,n\n/a,2\n", "seeds: {prices: {columns: {n: int}}}\n"),
        ("url,n\n/a,2\n", "seeds: {prices: {columns: {n: int}, description: of pages}}\n"),
    ):
        files = {**SHOP, "infold.yml": SHOP["infold.yml"] + keys, FILE: content}
        prints.append(load(write(tmp_path / "shop", files))["prices"].fingerprint)

    assert len(set(prints[:3])) == 3
    assert prints[2] == prints[3]


def test_a_seed_that_is_gone_is_no_table(tmp_path: Path) -> None:
    """Without its file a seed is an unknown table for its readers, and an unknown key."""
    reader = "---\nmaterialization: table\n---\nSELECT * FROM prices"
    files = {**SHOP, "models/reader.sql": reader, FILE: "url\n/a\n"}
    root = write(tmp_path / "shop", files)
    load(root)

    (root / FILE).unlink()
    (root / "infold.yml").write_text(SHOP["infold.yml"] + TYPES)

    with pytest.raises(InfoldErrors) as raised:
        load(root)
    assert "seeds/ has no key 'prices'" in str(raised.value)
    assert [error.slug for error in check(root)] == ["unknown-key", "unknown-table"]


ARRAY = "seeds: {prices: {columns: {url: 'array<int>'}}}\n"
MISTAKES: list[tuple[str | bytes, str, str]] = [
    ("url,n\n/a,1\n/b\n", "", "bad-seed @:3 `/b`"),
    ("url,n\n/a,1\n\n/b,1,2\n", "", "bad-seed @:4 `/b,1,2`"),
    ("n,rate\n1.5,1\n,1.234\n", TYPES, "bad-seed @:2 `1.5,1`; bad-seed @:3 `,1.234`"),
    ("n,rate\n99999999999,1e3\n", TYPES, "; ".join(2 * ["bad-seed @:2 `99999999999,1e3`"])),
    ("url,n,URL\n", "", "bad-seed @:1 `url,n,URL`"),
    ("url,\n", "", "bad-seed @:1 `url,`"),
    ("url,_n\n", "", "reserved-column @:1 `url,_n`"),
    ("", "", "bad-seed @:1 ``"),
    ("\n  \n", "", "bad-seed @:1 ``"),
    (b"url\n/a\n/\xe9\n", "", "not-utf8 @:3 `` (8)"),
    ("url\n/a\n".encode("utf-16"), "", "not-utf8 @:1 `` (0)"),
    ('url\n/a\n"/b\n', "", 'bad-seed @:3 `"/b`'),
    ('url\n"/a"b\n', "", 'bad-seed @:2 `"/a"b`'),
    ("url\n" + "/a\n" * (MOST_BYTES // 3), "", "bad-seed @:1 ``"),
    (URL, "seeds: {prices: {columns: {rl: string}}}\n", "unknown-column infold.yml:21 `rl` (url)"),
    (URL, ARRAY, f"bad-seed infold.yml:21 `'array<int>'` ({', '.join(TYPES_OF_SEEDS)})"),
    (URL, "seeds: {prices: {delimiter: tab}}\n", "wrong-type infold.yml:21 `tab`"),
    (URL, "seeds: {prizes: {}}\n", "unknown-key infold.yml:21 `prizes` (prices)"),
    (URL, "seeds: {prices: {types: {}}}\n",
     "unknown-key infold.yml:21 `types` (columns, delimiter, tags, description)"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "keys", "wanted"), MISTAKES)
def test_a_mistake_in_a_seed_has_its_line(content: str | bytes, keys: str, wanted: str) -> None:
    """Every mistake is one error with the file, which is `@` here, and the line."""
    assert "; ".join(mistakes(content, keys)).replace(FILE, "@") == wanted


def test_a_model_of_the_same_name(tmp_path: Path) -> None:
    """A seed and a model cannot have one name; a folder that cannot be read is an error."""
    files = {**SHOP, "seeds/clicks.csv": "url\n"}

    assert [error.slug for error in read(files)[1]] == ["duplicate-name"]
    root = write(tmp_path / "shop", SHOP)
    (root / "seeds").write_text("")
    with pytest.raises(Exception, match="unreadable-seeds"):
        load(root)


def test_readers_of_a_broken_seed_have_no_errors_of_their_own() -> None:
    """A model that joins a seed which cannot be read is not blamed."""
    joins = SHOP["models/clicks.sql"].replace(
        "FROM raw.clicks", "FROM raw.clicks LEFT JOIN prices USING (url)"
    )
    files = {**SHOP, "models/clicks.sql": joins, FILE: "url,url\n"}

    assert [shown(error) for error in read(files)[1]] == ["bad-seed seeds/prices.csv:1 `url,url`"]


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        ("double", "1 -1.5 .5 1e-3 2E10", "NaN 1e999 x 1f 0x1"),
        ("timestamp", "2024-03-01T10:00 2024-03-01T10:00:00.123456+02:00 2024-03-01T10:00Z",
         "2024-03-01 2024-03-01T25:00 2024-03-01T10:00:00.1234567 2024-02-30T10:00"),
        ("float", "3.4e38 -1", "3.5e38"),
        ("timestamp_ntz", "2024-03-01T10:00", "2024-03-01T10:00Z"),
        ("date", "2024-02-29", "2023-02-29 2024-3-1 20240301"),
        ("decimal(3,1)", "12.3 12 12.30 -0.5", "12.34 123 1e1"),
        ("boolean", "true FALSE", "1 yes"),
        ("tinyint", "127 -128 +1", "128 1.0"),
    ],
)  # fmt: skip
def test_values_that_fit(type_: str, good: str, bad: str) -> None:
    """A value fits if Spark casts it to exactly what is written."""
    assert all(fits(text, type_) for text in good.split())
    assert not any(fits(text, type_) for text in bad.split())


# ruff: noqa: E501 (one case is one row of a table)


AT = "models/clicks.sql"


def with_audit(*audits: str) -> dict[str, str]:
    """The project with these entries in `audits` of clicks, the first in line 4."""
    lines = "".join(f"- {one}\n" for one in audits)
    return {**SHOP, AT: CLICKS.replace("unique_key", f"audits:\n{lines}unique_key", 1)}.copy()


MISTAKES_OF_AUDITS = [
    ("not_null: usr_id", "unknown-column models/clicks.sql:4 `` (user_id)"),
    ("not_nul: user_id", "unknown-key models/clicks.sql:4 `not_nul` (not_null)"),
    ("{}", "bad-audit models/clicks.sql:4 `{}`"),
    ("not_null: []", "bad-audit models/clicks.sql:4 `not_null: []`"),
    ("unique: {column: event_id}", "unknown-key models/clicks.sql:4 `column` (columns)"),
    ("unique: {columns: event_id, within: day}", "bad-value models/clicks.sql:4 `day`"),
    ("accepted_values: {column: url, values: []}",
     "bad-audit models/clicks.sql:4 `{column: url, values: []}`"),
    ("accepted_range: {column: amount}", "bad-audit models/clicks.sql:4 `{column: amount}`"),
    ("accepted_range: {column: amount, min: [1]}", "wrong-type models/clicks.sql:4 `[1]`"),
    ("row_count: {min: many}", "wrong-type models/clicks.sql:4 `many`"),
    ("freshness: {max_age: soon}", "bad-duration models/clicks.sql:4 `soon`"),
    ("expression: amount >", "bad-sql models/clicks.sql:4 ``"),
    ("expression: nothing > 0", "unknown-column models/clicks.sql:4 ``"),
    ("expression: amount > 0) AND (1 = 1", "bad-audit models/clicks.sql:4 ``"),
    ("expression: sum(amount) > 0", "bad-audit models/clicks.sql:4 ``"),
    ("expression: event_ts < now()", "bad-audit models/clicks.sql:4 ``"),
    ("expression: rand() < amount", "bad-audit models/clicks.sql:4 ``"),
    ("relationship: {column: user_id, to: users}", "unknown-table models/clicks.sql:4 ``"),
    ("relationship: {column: user_id, to: sessions}", "bad-audit models/clicks.sql:4 ``"),
    ("relationship: {column: user_id, to: raw.countries}", "bad-audit models/clicks.sql:4 ``"),
]  # fmt: skip


@pytest.mark.parametrize(("audit", "wanted"), MISTAKES_OF_AUDITS)
def test_a_mistake_has_its_place(audit: str, wanted: str) -> None:
    """A mistake in an audit is the only error of its project, with file and line."""
    _, errors = read(with_audit(audit))

    assert [shown(error)[: len(wanted)] for error in errors] == [wanted]


QUERIES = [
    ("model: clicks\nsevere: warn", "SELECT * FROM clicks", "unknown-key audits/a.sql:3"),
    ("severity: warn", "SELECT * FROM clicks", "missing-key audits/a.sql"),
    ("model: clics", "SELECT * FROM clicks", "unknown-table audits/a.sql:2 `clics` (clicks)"),
    ("model: clicks", "SELECT * FRO clicks", "bad-sql audits/a.sql:4"),
    ("model: clicks", "SELECT nope FROM clicks", "unknown-column audits/a.sql:4 `nope`"),
    ("model: sessions", "SELECT 1 AS one FROM clicks", "bad-audit audits/a.sql:4"),
    ("model: clicks", "SELECT url FROM clicks WHERE event_ts > now()",
     "bad-audit audits/a.sql:4 `now"),
    ("model: clicks", "SELECT 1 AS a FROM clicks, daily", "bad-audit audits/a.sql:2"),
]  # fmt: skip


@pytest.mark.parametrize(("front", "sql", "wanted"), QUERIES)
def test_a_mistake_in_a_file_has_its_place(front: str, sql: str, wanted: str) -> None:
    """A mistake in a file of audits/ is the only error, with its place in that file."""
    _, [error] = read({**SHOP, "audits/a.sql": f"---\n{front}\n---\n{sql}"})

    assert shown(error).startswith(wanted)


def test_two_audits_of_one_name() -> None:
    """Two audits of one model cannot have the same name, wherever they are declared."""
    files = with_audit("{not_null: url, name: A}")
    _, errors = read({**files, "audits/a.sql": "---\nmodel: clicks\n---\nSELECT * FROM clicks"})

    assert [error.slug for error in errors] == ["duplicate-name"]


JOINED = "SELECT d.day FROM daily d %s clicks c ON cast(c.event_ts AS date) = d.day"
BY_ROW = {
    "SELECT * FROM daily WHERE revenue < 0": True,
    "SELECT day FROM daily GROUP BY day": False,
    "SELECT DISTINCT day FROM daily": False,
    "SELECT count(*) AS n FROM daily": False,
    "SELECT row_number() OVER (ORDER BY day) AS n FROM daily": False,
    "SELECT a.day FROM daily a JOIN daily b ON a.day = b.day": False,
    "SELECT * FROM daily WHERE revenue > (SELECT avg(revenue) FROM daily)": False,
    "SELECT * FROM (SELECT * FROM daily)": False,
    "WITH c AS (SELECT * FROM daily) SELECT * FROM c": False,
    "SELECT * FROM daily LIMIT 3": False,
    JOINED % "JOIN": True,
    JOINED % "LEFT JOIN": True,
    JOINED % "RIGHT JOIN": False,
    JOINED % "FULL JOIN": False,
    JOINED % "LEFT ANTI JOIN": True,
}


@pytest.mark.parametrize("sql", BY_ROW)
def test_a_query_is_judged_on_written_rows_only_if_each_row_is_alone(sql: str) -> None:
    """A SELECT whose bad rows depend on other rows of the model, or that gives rows without a row
    of it, is judged on the whole table.
    """
    found = project({**SHOP, "audits/a.sql": f"---\nmodel: daily\n---\n{sql}"})

    [audit] = found["daily"].model.audits
    assert audit.by_row is BY_ROW[sql]


def test_audits_as_declared() -> None:
    """Names, severities, defaults and literals are as they were written."""
    found = project(
        with_audit(
            "not_null: [USER_ID]",
            "{accepted_values: {column: url, values: ['it''s', 3, 2024-01-01, true]}, severity: warn}",
            "row_count: {min: 1}",
            "freshness: {max_age: 1 day}",
            "no_gaps",
        )
    )

    first, values, rows, fresh, gaps = found["clicks"].model.audits
    assert (first.name, first.columns) == ("not_null(USER_ID)", ("user_id",))
    assert values.values == (r"'it\'s'", "3", "'2024-01-01'", "true")
    assert (values.severity, rows.within) == (Severity.WARN, Within.CELL)
    assert (fresh.columns, gaps.kind) == (("event_ts",), AuditKind.NO_GAPS)


def test_the_tables_that_audits_read() -> None:
    """Of a view those that it reads: they come before the model, and are to be built before it is
    judged. They are no part of its definition.
    """
    files = {
        "models/zoo.sql": "---\nmaterialization: table\n---\nSELECT user_id FROM clicks",
        "models/named.sql": "---\nmaterialization: view\n---\nSELECT user_id FROM zoo",
        "audits/unnamed.sql": "---\nmodel: daily\n---\nSELECT d.* FROM Daily d, NAMED WHERE d.day IS NULL",
    }
    found = project({**SHOP, **files})

    assert tables_of_audits(found, found["daily"]) == {"zoo"}
    assert not tables_of_audits(found, found["zoo"])
    names = [node.name for node in found]
    assert names.index("zoo") < names.index("daily")
    assert found["daily"].fingerprint == project()["daily"].fingerprint


def test_a_model_over_a_landed_source_has_audits() -> None:
    """A source that is landed has the name of what it reads, and comes before its reader."""
    codes = model("table\naudits: [{not_null: code}]", "SELECT code FROM raw.countries")

    names = [node.name for node in project({**SHOP, "models/codes.sql": codes})]

    assert names.index("raw.countries") < names.index("codes")
