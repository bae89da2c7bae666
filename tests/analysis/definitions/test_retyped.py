# ruff: noqa: E501 (one case is one row of a table)
"""A source column that is declared with a wider type: which stored tables evolve, and how."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.fingerprints import redefinitions
from tests.declare.shop import project

from infold.core.definition import Category, How, Redefinition
from infold.core.files import IngestedFile
from infold.core.interval import Ranges
from infold.core.plan import Action, FileDiff, ModelObservation, Observations, PlanOptions
from infold.core.trace import Trace
from infold.core.type_changes import Retyping, shown, type_losses, type_of_text, widenings
from infold.planning.derivations import REHASHES, WIDENS
from infold.planning.planner import plan

CONFIG = """
name: shop
sources:
  raw.clicks:
    path: landing/*.{format}
    event_time_column: at
    columns: {{id: int, at: timestamp, other: int, v: {{type: "{type}", optional: true}}}}
"""
MODEL = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at, granularity: day}
---
"""
PASSED = "SELECT id, at, v FROM raw.clicks"


def files(type_: str, sql: str, format_: str = "json") -> dict[str, str]:
    """A source and a model of it."""
    return {
        "infold.yml": CONFIG.format(type=type_, format=format_),
        "models/clicks.sql": f"{MODEL}{sql}\n",
    }


def redefined(before: str, after: str, sql: str = PASSED, format_: str = "json") -> Redefinition:
    """What becomes of the model by another declared type."""
    return redefinitions(files(before, sql, format_), files(after, sql, format_))["clicks"]


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ("int", "bigint", [("v", "int", "bigint", False)]),
        ("smallint", "INT", [("v", "smallint", "int", True)]),
        ("decimal(5,2)", "decimal(18, 2)", [("v", "decimal(5,2)", "decimal(18, 2)", True)]),
        ("decimal(19,2)", "decimal(38,2)", [("v", "decimal(19,2)", "decimal(38,2)", True)]),
        ("decimal(18,2)", "decimal(19,2)", [("v", "decimal(18,2)", "decimal(19,2)", False)]),
        ("struct<a:int,b:string>", "struct<a:bigint,b:string>", [("v.a", "int", "bigint", True)]),
        ("array<struct<a:int>>", "array<struct<a:bigint>>", [("v.element.a", "int", "bigint", True)]),
        ("map<string,decimal(9,2)>", "map<string,decimal(20,2)>", [("v.value", "decimal(9,2)", "decimal(20,2)", True)]),
        ("struct<`a b`: int, c: int>", "struct<`a b`:bigint,c:bigint>", [("v.a b", "int", "bigint", True), ("v.c", "int", "bigint", True)]),
    ],
)  # fmt: skip
def test_a_wider_type(before: str, after: str, parts: list[tuple[str, str, str, bool]]) -> None:
    """The stored column evolves; nothing else is claimed to be kept, as rows may be added."""
    found = redefined(before, after)

    assert (found.how, found.category) == (How.EVOLVE, Category.METADATA)
    shown_parts = [(".".join(p.path), p.before, p.after, p.keeps_hash) for p in found.retyped]
    assert shown_parts == parts
    assert (found.columns_kept, found.kept_if_evolved) == (frozenset(), frozenset({"id", "at"}))
    assert (found.losses, found.destroys) == ((), ())


@pytest.mark.parametrize(
    ("before", "after", "sql", "format_"),
    [
        ("bigint", "int", PASSED, "json"),
        ("int", "decimal(12,0)", PASSED, "json"),
        ("decimal(9,2)", "decimal(12,3)", PASSED, "json"),
        ("int", "string", PASSED, "json"),
        ("struct<a:int>", "struct<a:bigint,b:int>", PASSED, "json"),
        ("struct<a:int,b:int>", "struct<b:int,a:int>", PASSED, "json"),
        ("map<int,int>", "map<bigint,int>", PASSED, "json"),
        ("float", "double", PASSED, "json"),
        ("array<float>", "array<double>", PASSED, "csv"),
        ("int", "bigint", "SELECT id, at, v FROM raw.clicks WHERE v > 1", "json"),
        ("int", "bigint", "SELECT id, at, v + 1 AS v FROM raw.clicks", "json"),
        ("int", "bigint", "SELECT id, at, v, v * v AS w FROM raw.clicks", "json"),
        ("int", "bigint", "SELECT id, at, cast(v AS string) AS v FROM raw.clicks", "json"),
        ("struct<a:int>", "struct<a:bigint>", "SELECT id, at, v.a FROM raw.clicks", "json"),
    ],
)  # fmt: skip
def test_what_is_built(before: str, after: str, sql: str, format_: str) -> None:
    """Other values, numbers that were rounded, and whatever is made of the column."""
    assert redefined(before, after, sql, format_).how is How.REBUILD


def test_what_is_widened_all_the_same() -> None:
    """Typed files have the digits of a float; the order of declared columns does not matter; a
    star passes all on. A model that does not name an optional column has no change.
    """
    assert redefined("float", "double", format_="parquet").how is How.EVOLVE
    assert (
        redefined("int", "bigint", "SELECT v AS w, at, id FROM raw.clicks AS c").how is How.EVOLVE
    )
    assert redefined("int", "bigint", "SELECT * FROM raw.clicks").how is How.EVOLVE
    old, new = (files(type_, "SELECT id, at FROM raw.clicks") for type_ in ("int", "string"))
    assert redefinitions(old, new) == {}


FILE = IngestedFile(1, "a", 1, "f", 0, rows=3)


@pytest.mark.parametrize(
    ("after", "file", "action", "why"),
    [
        ("decimal(12,2)", FILE, Action.EVOLVE, WIDENS),
        ("decimal(12,2)", replace(FILE, dropped=1), Action.EVOLVE, WIDENS),
        ("decimal(12,2)", replace(FILE, set_aside=1), Action.BUILD, "its definition changed"),
        ("decimal(12,2)", replace(FILE, rows=0, set_aside=1), Action.BUILD, "its definition changed"),
        ("decimal(12,2)", replace(FILE, rows=0, set_aside=1, fingerprint="f|p"), Action.EVOLVE, WIDENS),
        ("decimal(20,2)", FILE, Action.EVOLVE, REHASHES),
        ("decimal(20,2)", replace(FILE, dropped=1), Action.BUILD, "its definition changed"),
    ],
)  # fmt: skip
def test_what_the_ledger_tells(after: str, file: IngestedFile, action: Action, why: str) -> None:
    """A row that was set aside may fit now; where the hash is another one, so may be the copy that
    is kept. A file that was set aside as a whole is read again after the step.
    """
    change = redefined("decimal(9,2)", after)
    assert change.before is not None
    seen = ModelObservation(
        trace=Trace("clicks", change.before.fingerprint),
        version=1,
        files=FileDiff("raw.clicks", ingested=(file,)),
        rows=3,
        redefined=change,
    )
    now = project(files(after, PASSED))

    [step] = plan(now, Observations(0, {"clicks": seen}), PlanOptions()).steps

    assert (step.action, step.reasons[0].detail) == (action, why)
    assert step.retyped == (change.retyped if action is Action.EVOLVE else ())
    assert step.cells == (Ranges() if action is Action.EVOLVE else Ranges.ever())


_LEAVES = st.sampled_from(
    ["int", "bigint", "smallint", "decimal(5,2)", "decimal(20,2)", "string", "float", "double"]
)
_NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)
TYPES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        inner.map("array<{}>".format),
        st.tuples(_LEAVES, inner).map(lambda pair: f"map<{pair[0]},{pair[1]}>"),
        _NAMES.flatmap(
            lambda names: st.tuples(*[inner for _ in names]).map(
                lambda types: (
                    "struct<"
                    + ",".join(f"{name}:{type_}" for name, type_ in zip(names, types, strict=True))
                    + ">"
                )
            )
        ),
    ),
    max_leaves=4,
)


@given(old=TYPES, new=TYPES)
def test_a_widening_loses_nothing(old: str, new: str) -> None:
    """Texts of types are read as they are written; what is called wider has every value. Keys of
    maps are told from values, whatever fields are called.
    """
    assert Retyping(("v", "key"), "int", "bigint").is_in_a_key
    assert not Retyping(("key",), "int", "bigint").is_in_a_key
    one, two = type_of_text(old), type_of_text(new)

    assert shown(one) == old
    found = list(widenings(one, two, ("v",)))
    if None not in found:
        assert not list(type_losses(one, two, "v"))
    if not found:
        assert old == new
    assert list(widenings(one, one, ("v",))) == []
