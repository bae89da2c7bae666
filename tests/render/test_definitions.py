"""Changed definitions are shown with their category, what differs and where, and what is lost."""

from __future__ import annotations

from textwrap import dedent

from tests.analysis.fingerprints import ALL
from tests.declare.shop import project

from infold.analysis.definitions.compare import compare_projects
from infold.core.definition import Category, Difference, How, Redefinition
from infold.messages.errors import Spot
from infold.render.definitions import definitions_json, definitions_part


def changes() -> tuple[Redefinition, ...]:
    """Some changes of a project, one of each kind."""
    files = {
        **ALL,
        "models/sessions.sql": ALL["models/sessions.sql"].replace("30 minutes", "20 minutes"),
        "models/daily.sql": ALL["models/daily.sql"].replace(
            "AS revenue\n", "AS revenue,\n  avg(revenue) AS avg_revenue\n"
        ),
        "models/paid.sql": ALL["models/paid.sql"].replace("amount > 0", "(amount > 0) AND TRUE"),
        "models/totals.sql": ALL["models/totals.sql"].replace("sum(amount)", "max(amount)").replace(
            "FROM paid", "FROM paid WHERE user_id <> 'a'"
        ),
        "models/clicks.sql": ALL["models/clicks.sql"].replace("---\n", "---\ntags: [raw]\n", 1),
    }  # fmt: skip
    before, after = project(ALL), project(files)
    return compare_projects(before.nodes, before.sources, after.nodes, after.sources)


def test_the_screen() -> None:
    """Each change is a row with its place; the last line lists losses."""
    assert definitions_part(changes(), 5) == dedent(
        """\
        Definitions: 5 of 5 models differ from what was applied
          clicks    metadata  tags + raw                        models/clicks.sql:1
          sessions  breaking  gap 30 minutes → 20 minutes       models/sessions.sql:1
          daily     additive  + avg_revenue  avg(revenue)       models/daily.sql:7
          paid      none      the same in other words
          totals    breaking  total  sum(amount) → max(amount)  models/totals.sql:4
                              WHERE + user_id <> 'a'            models/totals.sql:4
          Lost  nothing"""
    )


def test_nothing_changed() -> None:
    """Without a change there is no such part."""
    assert definitions_part((), 5) == ""


def test_losses_and_long_texts() -> None:
    """Columns that go are named as lost, and long texts are cut."""
    gone = Difference("column", "note", "concat(" + "a, " * 40 + "b)", "")
    change = Redefinition(
        "orders", Category.BREAKING, (gone,), How.REBUILD, None, None, losses=("note",)
    )

    lines = definitions_part((change,), 214).splitlines()

    assert lines[0] == "Definitions: 1 of 214 models differs from what was applied"
    assert lines[1].endswith("…")
    assert lines[2] == "  Lost  orders: note"
    assert max(map(len, lines)) <= 100


def test_json() -> None:
    """Programs get every difference with its place."""
    at = Spot("models/daily.sql", 14, 3)
    difference = Difference("column", "avg_revenue", "", "avg(revenue)", at)
    change = Redefinition(
        "daily",
        Category.ADDITIVE,
        (difference,),
        How.REBUILD,
        None,
        None,
        frozenset({"revenue", "day"}),
    )

    assert definitions_json((change,)) == [
        {
            "model": "daily",
            "category": "additive",
            "differences": [
                {
                    "part": "column",
                    "name": "avg_revenue",
                    "before": "",
                    "after": "avg(revenue)",
                    "file": "models/daily.sql",
                    "line": 14,
                }
            ],
            "how": "rebuild",
            "columns_kept": ["day", "revenue"],
            "losses": [],
        }
    ]
