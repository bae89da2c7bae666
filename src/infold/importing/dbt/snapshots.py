"""Snapshots of dbt as tables of versions, where the rows have the time of a version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from infold.importing.dbt.folder import DbtFolder
from infold.importing.dbt.templates import NotRenderedError, Templates
from infold.importing.dialects import SPARK, NotTranslatedError, to_spark
from infold.importing.draft import DraftModel, Way, project_name
from infold.importing.report import Line, changed, left
from infold.importing.yaml_lines import as_list

_BLOCK = re.compile(r"\{%-?\s*snapshot\s+(\w+)\s*-?%\}(.*?)\{%-?\s*endsnapshot\s*-?%\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot: its query as a template, moved down to its line, and its settings."""

    name: str
    file: str
    text: str
    settings: Mapping[str, Any]


def snapshots_of(folder: DbtFolder, lines: list[Line]) -> Iterator[Snapshot]:
    """The snapshots of files with blocks, and of properties files."""
    del lines
    for file, text in folder.snapshots.items():
        blocks = list(_BLOCK.finditer(text))
        for block in blocks:
            above = "\n" * text.count("\n", 0, block.start(2))
            name = block[1]
            yield Snapshot(name, file, above + block[2], folder.settings("snapshots", file, name))
        if not blocks:
            name = PurePosixPath(file).stem
            yield Snapshot(name, file, text, folder.settings("snapshots", file, name))
    for entry in folder.entries.get("snapshots", ()):
        if relation := entry.found.get("relation"):
            name = str(entry.found.get("name", ""))
            text = "SELECT * FROM {{ " + str(relation) + " }}"
            settings = folder.settings("snapshots", entry.file, name)
            yield Snapshot(name, entry.at, text, settings)


def read_snapshot(
    snapshot: Snapshot, templates: Templates, dialect: str, lines: list[Line]
) -> DraftModel | None:
    """The model of a snapshot; None if it does not come over."""
    name = project_name(snapshot.name)
    what = f"snapshot {name}"
    try:
        rendered = templates.render(snapshot.file, snapshot.text)
        query = rendered.text if dialect in SPARK else to_spark(rendered.text, dialect)
    except NotRenderedError as error:
        lines.append(left(what, error.at, f"jinja that only dbt resolves: {error.what}"))
        return None
    except NotTranslatedError as error:
        lines.append(left(what, snapshot.file, f"SQL that cannot be read as Spark's: {error}"))
        return None
    settings = {**snapshot.settings, **rendered.config}
    updated_at = str(settings.get("updated_at") or "")
    keys = [str(key) for key in as_list(settings.get("unique_key"))]
    if not updated_at:
        why = (
            "strategy check has no column with the time of a row; name one in updated_at, or "
            "file_time_column of the source"
        )
        lines.append(left(what, snapshot.file, why))
        return None
    versions: dict[str, Any] = {"updated_at": updated_at}
    if settings.get("strategy") == "check":
        columns = [str(column) for column in as_list(settings.get("check_cols"))]
        versions["columns"] = "*" if columns == ["all"] else columns
    why = (
        "the history begins with the rows of the source: what dbt stored before is not in it; "
        "dbt_valid_from and dbt_valid_to are valid_from and valid_to"
    )
    lines.append(changed(what, snapshot.file, why))
    if settings.get("invalidate_hard_deletes") or settings.get("hard_deletes") == "invalidate":
        why = "hard deletes: only for sources of whole snapshots, by invalidate_hard_deletes"
        lines.append(changed(what, snapshot.file, why))
    keys_of = {"materialization": "scd_type_2", "unique_key": keys, "scd_type_2": versions}
    return DraftModel(
        name, snapshot.file, query.strip().rstrip(";"), (Way(keys_of),), called="snapshot"
    )
