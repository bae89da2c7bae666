"""Which models of an environment need tables of their own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest
from tests.declare.shop import SHOP, project

from infold.core.interval import MIN, Interval, Ranges
from infold.core.trace import EarlierCells, Trace
from infold.inspecting.own_models import OwnModels, own_models

FILES = {
    **SHOP,
    "models/big.sql": "---\nmaterialization: view\n---\nSELECT * FROM daily WHERE sessions > 1\n",
    "models/best.sql": "---\nmaterialization: table\n---\nSELECT max(sessions) AS n FROM big\n",
    "models/urls.sql": "---\nmaterialization: table\n---\nSELECT DISTINCT url FROM raw.clicks\n",
}
"""clicks → sessions → daily → big (a view) → best; raw.clicks (landed) → urls."""


def changed(*changes: tuple[str, str, str]) -> dict[str, str]:
    """The files with a text replaced in some of them."""
    files = dict(FILES)
    for name, old, new in changes:
        path = name if "." in name else f"models/{name}.sql"
        assert old in files[path]
        files[path] = files[path].replace(old, new)
    return files


GAP = ("sessions", "30 minutes", "20 minutes")
COLUMN = ("sessions", "sum(amount)", "max(url) AS last_url, sum(amount)")
OTHER = ("daily", "count(*) AS sessions", "count(*) + 1 AS sessions")


def decided(
    files: Mapping[str, str],
    equal: Mapping[str, bool] | None = None,
    *,
    assume: bool = False,
    stretched: Mapping[str, Trace] = MappingProxyType({}),
) -> OwnModels:
    """What is decided over production by FILES; ``equal`` are the tables that were compared."""
    known = equal or {}
    return own_models(
        project(dict(files)),
        project(FILES),
        lambda model, _: known.get(model),
        assume=assume,
        stretched=stretched,
    )


def test_nothing_is_proven_of_cells_of_earlier_definitions() -> None:
    """A column that a change keeps has other values there, so readers of it are not shared."""
    files = changed(("daily", "count(*) AS sessions", "count(*) AS sessions, max(events) AS most"))
    old = EarlierCells(Ranges((Interval(MIN, 86_400_000_000),)), "an earlier one")
    stretched = {"daily": Trace("daily", "f", earlier=(old,))}

    assert decided(files).waiting == ()
    found = decided(files, stretched=stretched)
    assert (list(found.identities), found.waiting) == (["daily"], ("best",))
    assert (found.changes[0].model, str(found.changes[0].category)) == ("daily", "breaking")
    assert decided(FILES, stretched=stretched).identities == {}
    same = decided(FILES)
    assert (same.identities, same.waiting, same.changes) == ({}, (), ()), "all tables are shared"


@pytest.mark.parametrize(
    ("files", "own", "waiting"),
    [
        (changed(OTHER), ["daily"], ("best",)),
        (changed(GAP), ["sessions"], ("daily", "best")),
        (changed(GAP, OTHER), ["sessions", "daily"], ("best",)),
        (changed(COLUMN), ["sessions"], ()),
        (changed(("sessions", "sum(amount)", "2 * sum(amount)")), ["sessions"], ("daily", "best")),
        (changed(("sessions", "first(url)", "last(url)")), ["sessions"], ()),
        (changed(("daily", "FROM sessions", "FROM sessions WHERE true")), [], ()),
        (changed(("daily", "FROM sessions", "/* all */ FROM sessions")), [], ()),
        (changed(("big", "> 1", "> 2")), ["best"], ()),
        (changed(("big", "> 1", "> 1 AND true")), [], ()),
        (changed(("urls", "DISTINCT url", "DISTINCT user_id, url")), ["urls"], ()),
        (changed(("infold.yml", "amount: decimal(18,2)", "amount: decimal(19,2)")), None, None),
        (changed(("infold.yml", "landing/clicks/*", "landing/*")), [], ()),
    ],
)
def test_what_is_own_before_anything_is_built(
    files: Mapping[str, str], own: list[str] | None, waiting: tuple[str, ...] | None
) -> None:
    """A changed model is its own; readers of what may have changed wait, others are shared."""
    found = decided(files)

    if own is None:
        assert list(found.identities) == ["raw.clicks", "clicks"]
        assert found.waiting == ("sessions", "daily", "best", "urls")
    else:
        assert (list(found.identities), found.waiting) == (own, waiting)


@pytest.mark.parametrize(
    ("equal", "assume", "own", "waiting"),
    [
        ({"sessions": True}, False, ["sessions"], ()),
        ({"sessions": False}, False, ["sessions", "daily"], ("best",)),
        ({"sessions": False, "daily": True}, False, ["sessions", "daily"], ()),
        ({}, True, ["sessions", "daily", "best"], ()),
        ({"daily": True}, True, ["sessions", "daily"], ()),
    ],
)
def test_equal_rows_end_it(
    equal: dict[str, bool], assume: bool, own: list[str], waiting: tuple[str, ...]
) -> None:
    """Readers of equal tables are production's, others own; a plan assumes the worst."""
    found = decided(changed(GAP), equal, assume=assume)

    assert (list(found.identities), found.waiting) == (own, waiting)


def test_columns_kept_pass_through_own_inputs() -> None:
    """A column more leaves others alone, unless the input has other rows."""
    more = ("daily", "sum(revenue)", "max(last_url) AS url, sum(revenue)")

    found = decided(changed(COLUMN, more))
    assert (list(found.identities), found.waiting) == (["sessions", "daily"], ())
    found = decided(changed(GAP, COLUMN, more), {"sessions": False})
    assert (list(found.identities), found.waiting) == (["sessions", "daily"], ("best",))


def test_tables_are_known_by_all_that_they_follow_from() -> None:
    """The same definition over another own input is another table; and so is each model's."""
    one, two = (
        decided(changed(change), {"sessions": False})
        for change in (GAP, ("sessions", "30 minutes", "10 minutes"))
    )

    assert one.identities["daily"] != two.identities["daily"]
    again = decided(changed(GAP), {"sessions": False})
    assert again.identities == one.identities
    assert len(set(one.identities.values())) == 2


def test_a_model_that_production_has_not_is_own() -> None:
    """New models, and those of removed inputs, are built in the environment."""
    files = {
        **FILES,
        "models/n.sql": "---\nmaterialization: table\n---\nSELECT count(*) AS n FROM clicks\n",
    }
    gone = {name: text for name, text in FILES.items() if name != "models/urls.sql"}

    found = decided(files)
    assert (list(found.identities), [one.category.value for one in found.changes]) == (
        ["n"],
        ["new"],
    )
    removed = {one.model for one in decided(gone).changes}
    assert removed == {"urls", "raw.clicks"}
