"""Which changes of a type lose nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest

from infold.core.type_changes import Type, holds_all_values, type_losses

WIDER = (
    ("tinyint", "smallint", "int", "bigint"),
    ("float", "double"),
    ("decimal(5,2)", "decimal(5, 2)", "decimal(18,2)", "decimal(38,2)"),
    ("decimal", "decimal(10,0)", "DECIMAL(11)"),
)
KINDS = ("int", "float", "decimal(18,2)", "string", "boolean", "date", "timestamp", "timestamp_ntz")


@pytest.mark.parametrize("rising", WIDER, ids=lambda rising: rising[0])
def test_a_wider_type_holds_all_values(rising: tuple[str, ...]) -> None:
    """Each type holds those of all before it; a narrower one does not hold those of a wider one."""
    for old, new in pairwise(rising):
        assert holds_all_values(old, new)
        same = holds_all_values(new, old)
        assert same is (old.replace(" ", "") in (new.replace(" ", ""), "decimal"))
    assert holds_all_values(rising[0], rising[-1])
    assert not holds_all_values(rising[-1], rising[0])


@pytest.mark.parametrize("old", KINDS)
@pytest.mark.parametrize("new", KINDS)
def test_another_kind_of_type_is_a_loss(old: str, new: str) -> None:
    """A type of another kind is one, even if every value could be written in it."""
    assert holds_all_values(old, new) is (old == new)


def test_digits_after_the_point_stay() -> None:
    """More of them leave fewer before it; Iceberg does not widen that either."""
    assert not holds_all_values("decimal(10,2)", "decimal(12,4)")
    assert not holds_all_values("decimal(10,2)", "decimal(10,1)")


def struct(**fields: Type) -> Type:
    """A struct as Spark writes it in JSON."""
    return {"type": "struct", "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def array(element: Type) -> Type:
    """An array as Spark writes it in JSON."""
    return {"type": "array", "elementType": element, "containsNull": True}


def by_text(value: Type) -> Type:
    """A map from texts as Spark writes it in JSON."""
    return {"type": "map", "keyType": "string", "valueType": value}


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (struct(a="integer", b="string"), struct(b="string", a="long", c="date"), []),
        (struct(a="integer", b="string"), struct(A="integer"), [("x.b", "string", "")]),
        (struct(a="long"), struct(a="integer"), [("x.a", "bigint", "int")]),
        (array(struct(a="long")), array(struct(b="long")), [("x[].a", "bigint", "")]),
        (by_text("double"), by_text("float"), [("x (values)", "double", "float")]),
        (by_text("float"), by_text("double"), []),
        (array("integer"), "integer", [("x", "array<int>", "int")]),
        (struct(a="integer"), by_text("date"), [("x", "struct<a:int>", "map<string,date>")]),
        (array("long"), by_text("short"), [("x", "array<bigint>", "map<string,smallint>")]),
    ],
)
def test_types_within_types(old: Type, new: Type, lost: list[tuple[str, str, str]]) -> None:
    """Fields may be added, widened and change places; one that goes or narrows is a loss."""
    assert list(type_losses(old, new, "x")) == lost
