"""A model of dbt: its rendered query in Spark SQL, and the ways in which infold may keep it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from sqlglot import exp

from infold.importing.dbt.folder import DbtFolder
from infold.importing.dbt.templates import NotRenderedError, Rendered, Templates
from infold.importing.dbt.values import THIS
from infold.importing.dialects import SPARK, NotTranslatedError, parsed, spark_text
from infold.importing.draft import DraftModel, Way, any_result, project_name
from infold.importing.grouped import grouped_by
from infold.importing.report import Line, came, changed, left
from infold.importing.yaml_lines import as_list

CELLS = ("hour", "day", "week", "month", "quarter", "year")
_NEWEST = re.compile(r"\bmax\s*\(\s*(?:\w+\.)?(\w+)\s*\)", re.IGNORECASE)
_NOT_KEPT = {
    "pre_hook": "hooks: start commands before and after `infold run`",
    "post_hook": "hooks: start commands before and after `infold run`",
    "alias": "the table is named as the model",
}
_EQUAL = "infold keeps what dbt's --full-refresh gives"


def read_model(
    folder: DbtFolder,
    templates: Templates,
    dialect: str,
    file: str,
    text: str,
    lines: list[Line],
) -> DraftModel | None:
    """The model of a file; None if it does not come over, and the report says why."""
    name = PurePosixPath(file).stem
    what = f"model {project_name(name)}"
    try:
        rendered = templates.render(file, text)
    except NotRenderedError as error:
        lines.append(left(what, error.at, f"jinja that only dbt resolves: {error.what}"))
        return None
    settings = {**folder.settings("models", file, name), **rendered.config}
    if str(settings.get("enabled", True)).lower() == "false":
        lines.append(left(what, file, "it is disabled"))
        return None
    if THIS in rendered.text:
        why = "its query reads its own table ({{ this }}), so it has no definition of its own"
        lines.append(left(what, file, why))
        return None
    try:
        tree = parsed(rendered.text, dialect)
        query = rendered.text if dialect in SPARK else spark_text(tree)
    except NotTranslatedError as error:
        lines.append(left(what, file, f"SQL that cannot be read as Spark's: {error}"))
        return None
    if not isinstance(tree, exp.Query):
        lines.append(left(what, file, "it is no SELECT"))
        return None
    own = {**(entry.config if (entry := folder.properties("models", name)) else {})}
    _say_notes(what, file, {**own, **rendered.config}, rendered, lines)
    ways, time = ways_to_keep(what, file, settings, rendered, tree, lines)
    about = _about(folder, name, settings)
    ways = tuple(replace(way, keys={**way.keys, **about}) for way in ways)
    return DraftModel(project_name(name), file, query.strip().rstrip(";"), ways, (), time)


def _say_notes(
    what: str, file: str, settings: Mapping[str, Any], rendered: Rendered, lines: list[Line]
) -> None:
    lines += [changed(what, file, note) for note in rendered.notes]
    for line, inner in rendered.filters:
        shown = " ".join(inner.split())[:80]
        why = f"the block of is_incremental() is gone, infold needs none: {shown}"
        lines.append(came(what, f"{file}:{line}", why))
    for key, why in _NOT_KEPT.items():
        if settings.get(key):
            lines.append(left(f"{key} of {what}", file, why))


def _about(folder: DbtFolder, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if tags := [str(tag) for tag in as_list(settings.get("tags"))]:
        found["tags"] = tags
    entry = folder.properties("models", name)
    text = " ".join(str(entry.found.get("description") or "").split()) if entry else ""
    if text and "{{" not in text:
        found["description"] = text
    return found


def ways_to_keep(
    what: str,
    file: str,
    settings: Mapping[str, Any],
    rendered: Rendered,
    tree: exp.Query,
    lines: list[Line],
) -> tuple[tuple[Way, ...], str]:
    """The ways to keep a model, best first, and its time column if there is one."""
    kind = str(settings.get("materialized", "view"))
    if kind in {"view", "ephemeral"}:
        if kind == "ephemeral":
            lines.append(came(what, file, "ephemeral: it is a view, which stores nothing"))
        return (Way({"materialization": "view"}), any_result({})), ""
    if kind not in {"table", "incremental"}:
        why = f"materialized: {kind} is a table, built again when an input changed"
        lines.append(changed(what, file, why))
    whole = Way({"materialization": "table"})
    if kind != "incremental":
        return (whole, any_result({})), ""
    strategy = str(settings.get("incremental_strategy", ""))
    keys = [str(key) for key in as_list(settings.get("unique_key"))]
    if strategy == "microbatch":
        time, cell = str(settings.get("event_time", "")), str(settings.get("batch_size", "day"))
        if settings.get("lookback"):
            why = "lookback is gone: late rows of any age are found by their files"
            lines.append(came(what, file, why))
    else:
        time, cell = _time_of(settings, rendered, tree)
        _say_what_differs(what, file, strategy, keys, tree, lines)
    ways = [whole, any_result({})]
    if keys and grouped_by(tree) == {key.lower() for key in keys}:
        ways.insert(
            0,
            Way(
                {"materialization": "cumulative_aggregate"},
                "it is a table, built whole when an input changed, and not folded by key",
            ),
        )
    if time:
        ways.insert(0, _by_cells(settings, time, cell, keys))
    elif ways[0] is whole:
        why = "it is built whole when an input changed: nothing names the time of its rows"
        lines.append(changed(what, file, why))
    return tuple(ways), time


def _by_cells(settings: Mapping[str, Any], time: str, cell: str, keys: list[str]) -> Way:
    incremental: dict[str, Any] = {}
    if keys:
        incremental["unique_key"] = keys
    if begin := settings.get("begin"):
        incremental["start"] = str(begin)
    granularity = cell if cell in CELLS else "day"
    return Way(
        {
            "materialization": "table",
            "timeseries": {"event_time_column": time, "granularity": granularity},
            "incremental": incremental,
        },
        "it cannot be built cell by cell, and is built whole when an input changed; what dbt "
        "computed over the rows of a run is computed over all rows",
    )


def _say_what_differs(
    what: str, file: str, strategy: str, keys: list[str], tree: exp.Query, lines: list[Line]
) -> None:
    """Where a merge or an append keeps rows that the query does not give any more."""
    if keys:
        why = f"rows that vanish upstream vanish here, where a merge keeps them: {_EQUAL}"
        lines.append(changed(what, file, why))
        if grouped_by(tree) != {key.lower() for key in keys}:
            why = (
                f"a merge keeps one row of {', '.join(keys)}, infold each row that the query "
                "gives: add an audit `unique`, or choose the newest in the query"
            )
            lines.append(changed(what, file, why))
    else:
        how = strategy or "append"
        why = f"rows that {how} added and the query does not give any more are gone: {_EQUAL}"
        lines.append(changed(what, file, why))
    if any(True for _ in tree.find_all(exp.Window)):
        why = "dbt computed window functions over the rows of a run, infold over all rows"
        lines.append(changed(what, file, why))


def _time_of(settings: Mapping[str, Any], rendered: Rendered, tree: exp.Query) -> tuple[str, str]:
    """The output column by which rows are placed, and the cell, as far as the model says it."""
    outputs = {name.lower() for name in tree.named_selects}
    partition = settings.get("partition_by")
    if isinstance(partition, dict) and partition.get("field"):
        cell = str(partition.get("granularity", "day")).lower()
        if str(partition.get("data_type", "date")).lower() in {"date", "timestamp", "datetime"}:
            return str(partition["field"]), cell
    if settings.get("event_time"):
        return str(settings["event_time"]), "day"
    for _, inner in rendered.filters:
        for match in _NEWEST.finditer(inner):
            if match[1].lower() in outputs or tree.is_star:
                return match[1], "day"
    return "", "day"
