"""Changed definitions, and tables that are built apart by them: parts of a screen, and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from infold.core.definition import Category, Difference, How, Redefinition
from infold.core.interval import show_instant
from infold.core.model import OnLoss
from infold.core.plan import UP_TO_DATE, Plan, Step
from infold.core.project import Project
from infold.messages.errors import Spot
from infold.planning.forward_only import FORWARD
from infold.render import formatting

if TYPE_CHECKING:
    from infold.core.report import BuiltApart

_CLAUSE_NAMES = {
    "from": "FROM",
    "where": "WHERE",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "window": "WINDOW",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
}
_HARMLESS_CHANGES = {
    "layout": "comments and layout",
    "wording": "the same in other words",
    "order of columns": "order of columns",
    "query": "another query",
    "rows of the file": "rows of the file",
}
_WIDTH = 56
"""How many characters of a difference are shown."""


def definitions_part(project: Project, plan: Plan) -> str:
    """
    The definitions that changed since they were applied; nothing without a change.

    Each model has its category, its differences with their places, and what carrying it out costs.
    Then come the models that follow, and what is lost.
    """
    changes = plan.redefinitions
    if not changes:
        return ""
    verb = "differ" if len(changes) > 1 else "differs"
    if project.environment:  # its project has no models but its own, and what these read
        head = f"Definitions: {formatting.count(len(changes), 'model')} {verb} from production"
    else:
        models = formatting.count(len(project.nodes), "model")
        head = f"Definitions: {len(changes):,} of {models} {verb} from what was applied"
    steps = {step.model: step for step in plan.steps}
    rows = [row for change in changes for row in _table_rows(plan, change, steps.get(change.model))]
    lines = [head, *formatting.columns(rows)]
    following = [_follower(project, plan, step) for step in _followers(project, plan)]
    if following:
        lines += ["Follow", *formatting.columns(following)]
    lost = [row for change in changes if (row := _loss_lines(plan, change))]
    lines += ["Lost", *formatting.columns(lost)] if lost else ["Lost: nothing"]
    return "\n".join(lines)


def _loss_lines(plan: Plan, change: Redefinition) -> list[str]:
    """What a change loses, and whether it may; nothing where it loses nothing."""
    others = [loss.name for loss in change.destroys if loss.name not in change.losses]
    names = ", ".join(dict.fromkeys((*change.losses, *others)))
    refused = any(one.model == change.model and one.on is OnLoss.ERROR for one in plan.destroyed)
    return [change.model, names, "refused" if refused else ""] if names else []


def _table_rows(plan: Plan, change: Redefinition, step: Step | None) -> Iterator[list[str]]:
    told = list(change_rows(change)) if change.differences else []
    yield from told
    names = ["", ""] if told else [change.model, str(change.category)]
    yield [*names, _cost_text(plan, change, step), ""]


def _cost_text(plan: Plan, change: Redefinition, step: Step | None) -> str:
    """What carrying out a change costs, in a line."""
    if change.category is Category.REMOVED:
        return "its table stays as it is"
    if change.after is not None and change.after.model.kind.is_view:
        return "a view: no rows of its own"
    if change.refused is not None:
        return f"refused: {dict(change.refused.facts).get('why', change.refused.what)}"
    if change.effective_from is not None:
        return FORWARD.format(show_instant(change.effective_from))
    if change.how in (How.NOTHING, How.RESTAMP):
        return "no row is written"
    if _is_up_to_date(plan, change.model):
        return "built in this environment"
    if change.how is How.REBUILD or (step is not None and step.action.value != change.how.value):
        return _cost_of_building(change, step)
    return step.reasons[0].detail if step is not None else "not built by this plan"


def _is_up_to_date(plan: Plan, model: str) -> bool:
    return any(one.model == model and one.why == UP_TO_DATE for one in plan.skipped)


def _cost_of_building(change: Redefinition, step: Step | None) -> str:
    """What building a table costs, by a step of the plan or a later one."""
    why = "; the earlier one was not kept" if change.category is Category.UNKNOWN else ""
    if change.rewrites_until is not None:
        why = f"; cells before {show_instant(change.rewrites_until)} get its rows too"
    if step is None:
        return f"not built by this plan{why}"
    verb = "build" if change.category is Category.NEW else "rebuild"
    rows = formatting.count(step.rows_to_read, "row")
    return f"{verb}: about {rows} to read{why}" if step.rows_to_read else verb + why


def _followers(project: Project, plan: Plan) -> Iterator[Step]:
    """The steps of models that are built because of a changed definition upstream."""
    built = {step.model for step in plan.steps}
    changed = {change.model for change in plan.redefinitions} & built
    for step in plan.steps:
        if step.model not in changed and changed & project.upstream([step.model]):
            yield step


def _follower(project: Project, plan: Plan, step: Step) -> list[str]:
    built = {other.model for other in plan.steps}
    entries = project[step.model].stored_inputs
    because = formatting.names(entry.name for entry in entries if entry.name in built)
    rows = formatting.count(step.rows_to_read, "row")
    known = f": at most {rows} to read" if step.rows_to_read else ""
    return [step.model, f"where {because} differs{known}"]


def _place_text(at: Spot | None) -> str:
    return "" if at is None else str(at)


def _in_words(difference: Difference) -> str:
    """One difference: ``+ column``, ``- condition``, ``before → after``."""
    part, name = difference.part, difference.name
    if part in _HARMLESS_CHANGES:
        return _HARMLESS_CHANGES[part]
    before, after = difference.before, difference.after
    if part == "function":
        return f"function {name}"
    if part in ("column", "source column"):
        source = part.removesuffix("column")
        return f"{source}{_added_or_removed(before, after)}{name}  {_change_text(before, after)}"
    word = _CLAUSE_NAMES.get(part, part)
    within = f"{name}: " if name else ""
    return f"{within}{word} {_added_or_removed(before, after)}{_change_text(before, after)}"


def _added_or_removed(before: str, after: str) -> str:
    return "+ " if not before else "- " if not after else ""


def _change_text(before: str, after: str) -> str:
    return f"{before} → {after}" if before and after else before or after


def definitions_json(plan: Plan) -> list[dict[str, object]]:
    """The changed definitions of a plan for programs; ``rows`` is None without a step."""
    rows = {step.model: step.rows_to_read for step in plan.steps}
    return changes_json(plan.redefinitions, rows)


def change_rows(change: Redefinition) -> Iterator[list[str]]:
    """A changed definition without what it costs: model, category, difference and place."""
    model, category = change.model, str(change.category)
    for difference in change.differences:
        text = formatting.clip(_in_words(difference), _WIDTH)
        yield [model, category, text, _place_text(difference.at)]
        model = category = ""
    if model:
        yield [model, category, "", ""]


def changes_json(
    changes: Iterable[Redefinition], rows: Mapping[str, int] | None = None
) -> list[dict[str, object]]:
    """Changed definitions for programs, with about how many rows each reads, where it is known."""
    return [
        {
            "model": change.model,
            "category": str(change.category),
            "differences": [_difference(difference) for difference in change.differences],
            "how": str(change.how),
            "effective_from": formatting.iso(change.effective_from),
            "rewrites_until": formatting.iso(change.rewrites_until),
            "derived": _derived(change),
            "rows": (rows or {}).get(change.model),
            "columns_kept": sorted(change.columns_kept),
            "losses": list(change.losses),
        }
        for change in changes
    ]


def destructive_json(plan: Plan) -> list[dict[str, object]]:
    """What a plan takes from stored tables, for programs, and what is to happen then."""
    return [
        {
            "model": one.model,
            "on": str(one.on),
            "losses": [
                {
                    "part": str(loss.part),
                    "name": loss.name,
                    "before": loss.before,
                    "after": loss.after,
                    "file": loss.at.file if loss.at else None,
                    "line": loss.at.line if loss.at else None,
                }
                for loss in one.losses
            ],
        }
        for one in plan.destroyed
    ]


def _derived(change: Redefinition) -> dict[str, object] | None:
    derivation = change.derivation
    if derivation is None or change.how is not How.DERIVE:
        return None
    columns = [{"name": name, "sql": sql} for name, sql in derivation.columns]
    files = {"from_files": list(derivation.from_files)} if derivation.from_files else {}
    return {"columns": columns, "where": list(derivation.where), **files}


def _difference(difference: Difference) -> dict[str, object]:
    at = difference.at
    return {
        "part": difference.part,
        "name": difference.name,
        "before": difference.before,
        "after": difference.after,
        "file": at.file if at else None,
        "line": at.line if at else None,
    }


def apart_text(table: BuiltApart) -> str:
    """How far a table is: ``being built apart: 2 of 9 days (1.2 MB), replaces … when complete``."""
    unit = table.granularity.value if table.granularity is not None else "cell"
    size = f" ({table.bytes / 1_000_000:,.1f} MB)" if table.bytes else ""
    many = f"{table.built:,} of {table.cells:,} {unit if table.cells == 1 else unit + 's'}"
    return f"being built apart: {many}{size}, replaces {table.model} when complete"


def apart_note(table: BuiltApart) -> str:
    """That text as a note of a run or a plan, with the model's name before it."""
    return f"{table.model}: {apart_text(table)}; until then readers have the old table"


def apart_json(table: BuiltApart) -> Mapping[str, Any]:
    """Its object in JSON; ``built`` and ``cells`` are numbers of cells."""
    return {
        "model": table.model,
        "table": table.key,
        "built": table.built,
        "cells": table.cells,
        "bytes": table.bytes,
    }


def waiting_notes(project: Project) -> tuple[str, ...]:
    """What is said of models whose definition waits for a table that is built apart."""
    tables = ", ".join(sorted(project.apart.values()))
    said = f"its definition waits until the table of {tables} is replaced"
    return tuple(f"{name}: {said}" for name in project.waits)
