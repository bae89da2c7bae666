"""What an events model ingests, how it joins lookups, and what is landed for it."""

from __future__ import annotations

import pytest
from tests.declare import shop

from infold.core.project import Node, Project

VIEW = "---\nmaterialization: view\n---\n"
TABLE = "---\nmaterialization: table\n---\n"
EVENTS = "\n".join(shop.CLICKS.splitlines()[:5]) + "\n"
JOINED = (
    "SELECT e.*, c.country FROM raw.clicks AS e LEFT JOIN raw.countries AS c ON c.code = lower(url)"
)


def project(clicks: str, **others: str) -> Project:
    """A project with such events and some more models."""
    return shop.project(
        shop.SHOP
        | {"models/clicks.sql": EVENTS + clicks}
        | {f"models/{name}.sql": text for name, text in others.items()}
    )


def matched(node: Node) -> list[str]:
    """How lookups are matched, as ``lookup: source.sql = own``."""
    return [
        f"{match.lookup}: {match.input} " + ", ".join(f"{a} = {b}" for a, b in match.pairs)
        for match in node.matches
    ]


BY_URL = ["raw.countries: raw.clicks LOWER(`url`) = `code`"]


@pytest.mark.parametrize(
    ("clicks", "others"),
    [
        (JOINED, {}),
        ("SELECT * FROM v", {"v": VIEW + JOINED}),
        ("SELECT * FROM w WHERE url <> ''", {"v": VIEW + JOINED, "w": VIEW + "SELECT * FROM v"}),
        (
            "SELECT v.*, c.country FROM v LEFT JOIN raw.countries AS c ON c.code = folded",
            {"v": VIEW + "SELECT *, lower(url) AS folded FROM raw.clicks"},
        ),
    ],
)
def test_the_source_is_ingested_and_the_lookup_landed(clicks: str, others: dict[str, str]) -> None:
    """An events model ingests its source directly, or through views that nothing else reads."""
    found = project(clicks, **others)
    node = found["clicks"]

    assert node.source == "raw.clicks"
    assert [entry.name for entry in node.stored_inputs] == ["raw.countries"]
    assert matched(node) == BY_URL
    assert [one.name for one in found if one.landed] == ["raw.countries"]


def test_a_view_that_a_table_reads_lands_its_source() -> None:
    """A view that a table reads lands its source, while the
    events model still ingests the files itself.
    """
    found = project("SELECT * FROM v", v=VIEW + JOINED, t=TABLE + "SELECT count(*) AS n FROM v")

    assert found["clicks"].source == "raw.clicks"
    assert {one.name for one in found if one.landed} == {"raw.clicks", "raw.countries"}
    assert [entry.name for entry in found["clicks"].stored_inputs] == ["raw.countries"]


def test_another_join_in_a_view_is_another_definition() -> None:
    """A changed join in a view changes the events that are ingested through it."""
    one, other = (
        project("SELECT * FROM v", v=VIEW + join)["clicks"].fingerprint
        for join in (JOINED, JOINED.replace("LEFT JOIN", "JOIN"))
    )
    assert one != other
