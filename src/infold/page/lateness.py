"""The document of how late rows are, and of what each run brought."""

from __future__ import annotations

from infold.core.interval import SECOND, datetime_of
from infold.core.lateness import Heat, Measures
from infold.core.ports import Lake
from infold.core.project import Node, Project
from infold.inspecting.lateness import lateness_of
from infold.ledger import SqlLedger
from infold.ledger.glimpses import steps_by_id
from infold.page.shapes import JsonObject, files_of_step, rows_before, seconds_of, version_shape
from infold.render.formatting import iso

ARRIVALS = 30
"""How many runs with arrivals are listed."""


def lateness_document(project: Project, ledger: SqlLedger, lake: Lake, name: str) -> JsonObject:
    """The lateness of the rows of one table of events."""
    found = lateness_of(project, ledger, lake, name)
    return {
        "model": name,
        "source": found.source,
        "how": found.how.value,
        "column": found.column,
        "since": None if found.since is None else iso(found.since),
        **({} if found.measures is None else _shapes(found.measures)),
        "arrivals": _arrivals(ledger, project[name]),
    }


def _shapes(found: Measures) -> JsonObject:
    """The picture, the shares by age, and the lookbacks."""
    return {
        "rows": found.rows,
        "heat": _heat_shape(found.heat),
        "ages": [{"age": age, "rows": rows} for age, rows in found.ages],
        "lookbacks": [
            {"days": one.days, "rows": one.rows, "event_days": one.event_days}
            for one in found.lookbacks
        ],
        "longest_days": found.longest_days,
        "worst": [[day // SECOND, rows] for day, rows in found.worst],
    }


def _heat_shape(found: Heat) -> JsonObject:
    """With as many columns as lines, both are of one unit."""
    return {
        "unit": found.event_unit.value,
        "cells": [
            [event // SECOND, received // SECOND, rows] for event, received, rows in found.cells
        ],
        "left_out": found.left_out,
        "since": datetime_of(found.since).date().isoformat(),
    }


def _arrivals(ledger: SqlLedger, node: Node) -> list[JsonObject]:
    """What each of the newest runs brought, by which files, and for which times."""
    every = ledger.versions(node.name)
    versions, before = every[-ARRIVALS:][::-1], rows_before(every)
    if not versions:
        return []
    steps = steps_by_id(ledger.database, (one.step for one in versions))
    changes = ledger.changes_by_version(node.name, versions[-1].number - 1)
    files, found = ledger.files(node.name), []
    for one in versions:
        step, made = steps.get(one.step), changes.get(one.number, ())
        added = [change for change in made if change.added]
        late = [change for change in added if change.rows_before]
        came = files_of_step(files, step)
        found.append(
            version_shape(one, before[one.number], step, made)
            | {
                "late": None if one.whole else sum(change.added for change in late),
                "late_cells": None if one.whole else len(late),
                "oldest": seconds_of(min(added, key=lambda c: c.cell).cell.start)
                if added
                else None,
                "files": [file.path for file in came[:8]],
                "more_files": len(came[8:]),
            }
        )
    return found
