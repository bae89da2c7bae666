"""Sources of dbt's properties files, with the columns whose types they declare."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from infold.importing.dbt.folder import DbtFolder
from infold.importing.dialects import spark_type
from infold.importing.draft import DraftSource, project_name
from infold.importing.report import Line, left
from infold.importing.yaml_lines import Lined, as_list, as_mapping, line_of


@dataclass(frozen=True, slots=True)
class Source:
    """A source of infold, and the two names that dbt calls it by."""

    dbt_name: tuple[str, str]
    draft: DraftSource


def read_sources(folder: DbtFolder, lines: list[Line], dialect: str) -> list[Source]:
    """Every table of every source; of a name that is declared twice the first."""
    found: dict[tuple[str, str], Source] = {}
    for entry in folder.entries.get("sources", ()):
        group = str(entry.found.get("name", ""))
        for table in as_list(entry.found.get("tables")):
            table = table if isinstance(table, Lined) else Lined({"name": str(table)})
            name = (group, str(table.get("name", "")))
            at = f"{entry.file}:{line_of(table) or line_of(entry.found)}"
            settings = {**entry.config, **as_mapping(table.get("config"))}
            if name not in found:
                draft = _draft(name, at, table, settings, dialect)
                taken = {source.draft.name for source in found.values()}
                while draft.name in taken:  # `a-b` and `a b` are both a_b
                    draft = replace(draft, name=f"{draft.name}_")
                found[name] = Source(name, draft)
            if entry.found.get("freshness") or table.get("freshness"):
                why = "`infold status` shows how far a source has come; `freshness` is an audit"
                lines.append(left(f"freshness of {group}.{name[1]}", at, why))
    return list(found.values())


def _draft(
    name: tuple[str, str], at: str, table: Lined, settings: dict[str, Any], dialect: str
) -> DraftSource:
    columns = {}
    for column in as_list(table.get("columns")):
        if isinstance(column, Lined) and column.get("data_type") and column.get("name"):
            type_ = spark_type(str(column["data_type"]), dialect)
            if type_ is not None:
                columns[str(column["name"])] = type_
    keys: dict[str, Any] = {}
    event_time = settings.get("event_time") or table.get("event_time")
    if event_time:
        keys["event_time_column"] = str(event_time)
    group, own = (project_name(part) for part in name)
    return DraftSource(f"{group}.{own}", at, columns, keys)
