"""Seeds: CSV files in ``seeds/`` are tables, judged when the project is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import SHOP, read, write
from tests.declare.test_mistakes import shown

from infold.core.model import Kind
from infold.declare import check, load
from infold.declare.seeds import MOST_BYTES, fits
from infold.declare.seeds import TYPES as TYPES_OF_SEEDS
from infold.messages.errors import InfoldErrors

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
