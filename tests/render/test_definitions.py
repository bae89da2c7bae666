"""Changed definitions are shown with their category, what differs and where, and what is lost."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

from tests.analysis.fingerprints import ALL, redefinitions
from tests.declare.shop import project

from infold.core.definition import Category, Difference, How, Redefinition
from infold.core.interval import Ranges, parse_instant_text
from infold.core.plan import UP_TO_DATE, Action, Plan, Reason, Skipped, Step
from infold.core.trace import Cause
from infold.messages import apply_errors
from infold.messages.errors import Spot
from infold.planning.derivations import ADDED_UP, FOLLOWS
from infold.render.definitions import definitions_json, definitions_part


def changes() -> tuple[Redefinition, ...]:
    """Some changes of a project, one of each kind."""
    files = {
        **ALL,
        "models/sessions.sql": ALL["models/sessions.sql"].replace("30 minutes", "20 minutes"),
        "models/paid.sql": ALL["models/paid.sql"].replace("amount > 0", "(amount > 0) AND TRUE"),
        "models/totals.sql": ALL["models/totals.sql"].replace("sum(amount)", "max(amount)").replace(
            "FROM paid", "FROM paid WHERE user_id <> 'a'"
        ),
        "models/clicks.sql": ALL["models/clicks.sql"].replace("---\n", "---\ntags: [raw]\n", 1),
    }  # fmt: skip
    return tuple(redefinitions(ALL, files).values())


def build(model: str, rows: int) -> Step:
    """A step that builds a table."""
    reason = Reason(Cause.DEFINITION, "its definition changed", Ranges.ever(), rows)
    return Step(model, Action.BUILD, Ranges.ever(), (reason,))


def plan_of(*redefinitions: Redefinition, steps: tuple[Step, ...] = ()) -> Plan:
    """A plan for changed definitions."""
    return Plan(steps, redefinitions=redefinitions)


def test_the_screen() -> None:
    """Each change has its differences, places and cost; then come followers and losses."""
    steps = build("sessions", 1204), build("daily", 300)

    assert definitions_part(project(ALL), plan_of(*changes(), steps=steps)) == dedent(
        """\
        Definitions: 4 of 5 models differ from what was applied
          clicks    metadata  tags + raw                         models/clicks.sql:1
                              no row is written
          sessions  breaking  gap 30 minutes → 20 minutes        models/sessions.sql:1
                              rebuild: about 1,204 rows to read
          paid      none      the same in other words
                              a view: no rows of its own
          totals    breaking  total  sum(amount) → max(amount)   models/totals.sql:4
                              WHERE + user_id <> 'a'             models/totals.sql:4
                              not built by this plan
        Follow
          daily  where sessions differs: at most 300 rows to read
        Lost: nothing"""
    )
    assert definitions_part(project(ALL), plan_of()) == ""


def test_losses_and_long_texts() -> None:
    """Columns that go are named as lost, and long texts are cut."""
    gone = Difference("column", "note", "concat(" + "a, " * 40 + "b)", "")
    change = Redefinition(
        "orders", Category.BREAKING, (gone,), How.REBUILD, None, None, losses=("note",)
    )

    lines = definitions_part(project(ALL), plan_of(change)).splitlines()

    assert lines[0] == "Definitions: 1 of 5 models differs from what was applied"
    assert lines[1].endswith("…")
    assert lines[-2:] == ["Lost", "  orders  note"]
    assert max(map(len, lines)) <= 100


def test_the_same_rows_in_other_cells() -> None:
    """The line says that no row is read, or that they are counted; a rebuild is called so."""
    head = ALL["models/daily.sql"].replace("granularity: day", "granularity: week")
    (change,) = redefinitions(ALL, {**ALL, "models/daily.sql": head}).values()
    reason = Reason(Cause.DEFINITION, ADDED_UP)
    step = replace(build("daily", 0), action=Action.REBUCKET, reasons=(reason,))

    lines = definitions_part(project(ALL), plan_of(change, steps=(step,))).splitlines()
    assert lines[1].split()[:5] == ["daily", "metadata", "granularity", "day", "→"]
    assert lines[2].strip() == "same rows, cells add up: 0 rows read"
    rebuilt = definitions_part(project(ALL), plan_of(change, steps=(build("daily", 9),)))
    assert "rebuild: about 9 rows to read" in rebuilt
    assert "not built by this plan" in definitions_part(project(ALL), plan_of(change))


def test_a_table_that_is_built_and_a_reader_of_unknown_cost() -> None:
    """An environment has the table; of a reader that is planned later no rows are shown."""
    change = next(one for one in changes() if one.model == "sessions")
    plan = Plan((), (Skipped("sessions", UP_TO_DATE),), redefinitions=(change,))
    lines = definitions_part(replace(project(ALL), environment="dev"), plan).splitlines()
    steps = build("sessions", 3), build("daily", 0)

    assert lines[0] == "Definitions: 1 model differs from production"
    assert lines[2].strip() == "built in this environment"
    found = definitions_part(project(ALL), plan_of(change, steps=steps))
    assert "  daily  where sessions differs\n" in found


def test_rows_that_follow_from_stored_rows() -> None:
    """The line says so; programs get the expressions and conditions over stored columns."""
    head, query = ALL["models/daily.sql"].split("FROM")
    files = {**ALL, "models/daily.sql": f"{head}FROM{query.rstrip()} HAVING count(*) > 1\n"}
    (change,) = redefinitions(ALL, files).values()
    reason = Reason(Cause.DEFINITION, FOLLOWS)
    derive = replace(build("daily", 0), action=Action.DERIVE, reasons=(reason,))

    lines = definitions_part(project(ALL), plan_of(change, steps=(derive,))).splitlines()
    assert lines[2].strip() == "follows from stored rows: 0 input rows read"
    rebuilt = definitions_part(project(ALL), plan_of(change, steps=(build("daily", 9),)))
    assert "rebuild: about 9 rows to read" in rebuilt
    assert "not built by this plan" in definitions_part(project(ALL), plan_of(change))
    reread = replace(derive, reasons=(replace(reason, detail="column url: 1 file read"),))
    assert "column url: 1 file read" in definitions_part(
        project(ALL), plan_of(change, steps=(reread,))
    )
    (found,) = definitions_json(plan_of(change, steps=(derive,)))
    assert found["how"] == "derive"
    assert found["derived"] == {
        "columns": [{"name": name, "sql": f"`{name}`"} for name in ("day", "sessions", "revenue")],
        "where": ["`sessions` > 1"],
    }


def test_json() -> None:
    """Programs get every difference with its place."""
    kept = frozenset({"revenue", "day"})
    shown = {"part": "column", "name": "avg_revenue", "before": "", "after": "avg(revenue)"}
    at = Spot("models/daily.sql", 14, 3)
    difference = Difference("column", "avg_revenue", "", "avg(revenue)", at)
    change = Redefinition("daily", Category.ADDITIVE, (difference,), How.REBUILD, None, None, kept)

    assert definitions_json(plan_of(change, steps=(build("daily", 300),))) == [
        {
            "model": "daily",
            "category": "additive",
            "differences": [shown | {"file": "models/daily.sql", "line": 14}],
            "how": "rebuild",
            **dict.fromkeys(("effective_from", "rewrites_until", "derived")),
            "rows": 300,
            "columns_kept": ["day", "revenue"],
            "losses": [],
        }
    ]


def test_forward_only_changes() -> None:
    """Of a forward-only change the instant is shown, and why one is refused, if it is."""
    at = parse_instant_text("2024-04-01")
    change = Redefinition(
        "daily", Category.FORWARD_ONLY, (), How.DERIVE, None, None, effective_from=at
    )
    refused = replace(
        change,
        effective_from=None,
        refused=apply_errors.not_forward_only(model="daily", why="its start changed"),
    )

    first, second = (definitions_part(project(ALL), plan_of(one)) for one in (change, refused))

    assert "daily  forward-only  forward-only: cells before 2024-04-01 keep their rows" in first
    assert "daily  forward-only  refused: its start changed" in second
    assert definitions_json(plan_of(change))[0]["effective_from"] == "2024-04-01T00:00:00Z"
