"""What a plan takes from stored tables, and whether it may."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planning.strips import DAILY, built, planned, project

from infold.core.definition import Category, How, Loss, Lost, Redefinition
from infold.core.model import OnLoss
from infold.core.plan import Destroyed, Plan, PlanOptions
from infold.core.project import AppliedDefinitions, Node, Project
from infold.core.target import Apply, Target
from infold.core.type_changes import Type
from infold.messages.errors import ExitCode, InfoldError
from infold.planning.destructive import destroyed, loss_notes, lost_types, refuse_destructive

NEW = replace(DAILY, columns=("day", "n"))
OLD = replace(DAILY, fingerprint="old", columns=("day", "n", "amount"))
DROPS = Redefinition(
    "daily",
    Category.BREAKING,
    (),
    How.REBUILD,
    OLD,
    NEW,
    losses=("amount",),
    destroys=(Loss(Lost.COLUMN, "amount"),),
)
PROD = Target("prod", protected=True, apply=Apply.MANUAL)
NOTHING = PlanOptions()


def shop(target: Target = PROD, node: Node = NEW, applies: tuple[str, ...] = ("daily",)) -> Project:
    """A project of the daily table, to be applied on a target."""
    return replace(project(node), target=target, applied=AppliedDefinitions({}, applies))


def found(
    of: Project, change: Redefinition | None = DROPS, asked: PlanOptions = NOTHING, *more: str
) -> tuple[Destroyed, ...]:
    """What the rebuild of a table with these columns, and ``more``, destroys."""
    node, changes = of["daily"], [] if change is None else [change]
    replaces = planned(node, daily=built(replace(node, fingerprint="old")))
    return destroyed(of, replaces, changes, lambda _: ("day", "n", "amount", *more), asked)


@pytest.mark.parametrize(
    ("target", "on"),
    [
        (PROD, OnLoss.ERROR),
        (Target("prod", protected=True), OnLoss.ERROR),
        (Target("prod", apply=Apply.MANUAL), OnLoss.ERROR),
        (Target("dev"), OnLoss.WARN),
    ],
)
def test_the_default_is_the_target_s(target: Target, on: OnLoss) -> None:
    """Where somebody relies upon the tables a loss is an error; elsewhere a note."""
    [one] = found(shop(target))
    assert (one.model, one.on, [loss.name for loss in one.losses]) == ("daily", on, ["amount"])


@pytest.mark.parametrize("own", list(OnLoss))
@pytest.mark.parametrize("target", [PROD, Target("dev")], ids=["prod", "dev"])
def test_a_model_s_own_key_holds(own: OnLoss, target: Target) -> None:
    """Whatever the target; and the option allows it once, for the models that it names."""
    node = replace(NEW, model=replace(NEW.model, on_destructive_change=own))
    [one] = found(shop(target, node))
    assert one.on is own
    for name, on in (("daily", OnLoss.ALLOW), ("weekly", own)):
        allowed = PlanOptions(allow_destructive=frozenset({name}))
        [one] = found(shop(target, node), DROPS, allowed)
        assert one.on is on


def test_real_columns_count() -> None:
    """A column that somebody added by hand would go too, also where no definition changed."""
    for change in (DROPS, None):
        [one] = found(shop(), change, NOTHING, "note")
        assert [loss.name for loss in one.losses] == ["amount", "note"]


def test_what_was_applied_is_permitted() -> None:
    """Only columns that none ever had are asked about; what is kept or new loses nothing."""
    first = planned(NEW, daily=replace(built(NEW), trace=None))
    for made in (Plan(()), first):
        assert destroyed(shop(), made, [DROPS], lambda _: ("day", "n", "amount"), NOTHING) == ()
    later = shop(applies=())
    assert found(later) == ()
    [one] = found(later, DROPS, NOTHING, "note")
    assert [loss.name for loss in one.losses] == ["note"]
    assert found(later, replace(DROPS, before=None), NOTHING, "note") == ()


@pytest.mark.parametrize("own", [None, OnLoss.ALLOW])
def test_a_removed_model(own: OnLoss | None) -> None:
    """What it said last holds; where definitions come from the files it keeps its table."""
    gone = Redefinition("old", Category.REMOVED, (), How.NOTHING, None, None, on_loss=own)
    gone = replace(gone, destroys=(Loss(Lost.TABLE, "old"),))
    [one] = destroyed(shop(), Plan(()), [gone], lambda _: (), NOTHING)
    assert (one.model, one.on) == ("old", own or OnLoss.ERROR)
    free = shop(Target("prod", protected=True))
    assert destroyed(free, Plan(()), [gone], lambda _: (), NOTHING) == ()


def test_a_refusal_names_everything() -> None:
    """Each model with each loss, and the option for each; warnings are notes and refuse nothing."""
    losses = (Loss(Lost.COLUMN, "amount"), Loss(Lost.TYPE, "n", "bigint", "int"))
    other = Destroyed("old", (Loss(Lost.TABLE, "old", before="models/old.sql"),), OnLoss.ERROR)
    with pytest.raises(InfoldError) as raised:
        refuse_destructive(shop(), (Destroyed("daily", losses, OnLoss.ERROR), other))

    assert raised.value.exit_code == ExitCode.REFUSED
    assert raised.value.facts[1:] == (
        ("daily", "column amount is dropped"),
        ("daily", "type of n: bigint → int"),
        ("old", "its table is no longer kept up to date (models/old.sql)"),
    )
    assert "--allow-destructive daily --allow-destructive old" in raised.value.todo
    for on in (OnLoss.WARN, OnLoss.ALLOW):
        refuse_destructive(shop(), (Destroyed("daily", losses, on),))
    notes = [list(loss_notes((Destroyed("daily", losses, on),), planned=True)) for on in OnLoss]
    text = "daily: column amount is dropped; type of n: bigint → int"
    assert notes == [[f"{text}: refused; --allow-destructive daily allows it"], [text], []]


def test_types_are_compared_column_by_column() -> None:
    """Whatever the case of names; columns that are not there have no type to lose."""
    struct: Type = {"type": "struct", "fields": [{"name": "a", "type": "long"}]}
    columns: dict[str, Type] = {"Day": "date", "n": "long", "s": struct, "gone": "string"}
    after: dict[str, Type] = {"day": "date", "n": "integer", "s": {"type": "struct", "fields": []}}
    losses = lost_types(NEW, columns, after)
    assert [(loss.name, loss.before, loss.after) for loss in losses] == [
        ("n", "bigint", "int"),
        ("s.a", "bigint", ""),
    ]
