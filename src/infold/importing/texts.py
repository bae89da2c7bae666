"""The files of a project as text: infold.yml with what is to be filled in, and front matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import yaml

from infold.importing.draft import Draft, DraftModel, DraftSource

TO_FILL = "# to fill in"


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """
    The columns of a source, type by type, and those whose type is only supposed.

    ``event_time`` is the column that makes the source one with event time, if there is one.
    ``dropped`` are columns with names that are infold's own.
    """

    types: Mapping[str, str]
    supposed: frozenset[str]
    event_time: str = ""
    dropped: frozenset[str] = frozenset()


def flow(value: Any) -> str:
    """A value of YAML on one line."""
    if isinstance(value, date | datetime):
        value = value.isoformat()
    text = yaml.safe_dump(
        [plain(value)],
        default_flow_style=True,
        width=1 << 30,
        sort_keys=False,
        allow_unicode=True,
    )
    return text.strip()[1:-1]


def plain(value: Any) -> Any:
    """The same of plain dicts, lists, numbers and texts, as a dumper knows them."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if value is None or isinstance(value, bool | int | float | date):
        return value
    return str(value)


def model_text(model: DraftModel) -> tuple[str, dict[int, int]]:
    """A model's file, and which of its audits begins in each line that has one."""
    lines = ["---"]
    lines += [f"{key}: {flow(value)}" for key, value in model.ways[0].keys.items()]
    audits: dict[int, int] = {}
    if model.audits:
        lines.append("audits:")
    for i, audit in enumerate(model.audits):
        lines.append(f"  - {flow(audit.entry)}")
        audits[len(lines)] = i
    lines += ["---", model.query.strip(), ""]
    return "\n".join(lines), audits


def project_text(draft: Draft, columns: Mapping[str, SourceColumns], tool: str) -> str:
    """infold.yml."""
    lines = [
        f"# Imported from {tool}; import-report.md says what came over and what did not.",
        f"name: {draft.name}",
    ]
    lines += [f"{key}: {flow(value)}" for key, value in draft.keys.items()]
    if draft.sources:
        lines += ["", "sources:"]
    for source in draft.sources:
        lines += _source(source, columns[source.name])
    if any(seed.keys for seed in draft.seeds):
        lines += ["", "seeds:"]
    for seed in draft.seeds:
        if seed.keys:
            lines.append(f"  {flow(seed.name)}:")
            lines += [f"    {key}: {flow(value)}" for key, value in seed.keys.items()]
    lines += [
        "",
        "targets:",
        '  dev: {storage: iceberg, warehouse: warehouse, ledger: "sqlite:///.infold/ledger.db"}',
        "",
    ]
    return "\n".join(lines)


def _source(source: DraftSource, columns: SourceColumns) -> list[str]:
    lines = [f"  {flow(source.name)}:"]
    keys = dict(source.keys)
    if "path" not in keys:
        where = source.name.replace(".", "/")
        lines.append(f"    path: landing/{where}/*.parquet  {TO_FILL}: where its files land")
    if columns.event_time:
        keys.setdefault("event_time_column", columns.event_time)
    lines += [f"    {key}: {flow(value)}" for key, value in keys.items()]
    lines.append("    columns:")
    if not columns.types:
        lines.append(f"      to_fill_in: string  {TO_FILL}: no query names a column")
    for name, type_ in columns.types.items():
        comment = f"  {TO_FILL}: its type" if name in columns.supposed else ""
        lines.append(f"      {flow(name)}: {flow(type_)}{comment}")
    return lines
