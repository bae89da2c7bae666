"""A project of dbt as a draft of infold's."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from sqlglot import exp

from infold.importing.dbt.audits import audits_of, singular_tests
from infold.importing.dbt.folder import DbtFolder, Properties, read_folder, variables
from infold.importing.dbt.templates import (
    THIS,
    Macro,
    Names,
    NotRenderedError,
    Rendered,
    Templates,
    macros_in,
)
from infold.importing.dialects import (
    SPARK,
    NotTranslatedError,
    grouped_by,
    of_translation,
    parsed,
    spark_text,
    spark_type,
    to_spark,
)
from infold.importing.draft import (
    Case,
    Draft,
    DraftFile,
    DraftModel,
    DraftSeed,
    DraftSource,
    Line,
    Rows,
    Way,
    any_result,
    came,
    case_file,
    changed,
    left,
    project_name,
    to_fill,
)
from infold.importing.project_files import Lined, as_list, as_mapping, line_of


@dataclass(frozen=True, slots=True)
class Dbt:
    """A folder of dbt with what every part of it needs to be read."""

    folder: DbtFolder
    templates: Templates
    names: Names
    dialect: str


def read_dbt(root: Path, dialect: str) -> Draft:
    """What can be read of the project in ``root``, its SQL taken for that of ``dialect``."""
    folder = read_folder(root)
    lines: list[Line] = [*folder.lines, *of_translation(dialect)]
    sources = read_sources(folder, lines, dialect)
    snapshots = list(snapshots_of(folder, lines))
    names = _names(folder, sources, snapshots, dialect)
    macros = [macro for file, text in folder.macros.items() for macro in macros_in(file, text)]
    dbt = Dbt(folder, Templates(names, macros, folder.name), names, dialect)
    models = [*_models(dbt, lines), *_snapshots(dbt, snapshots, lines)]
    seeds, more = read_seeds(folder, dialect)
    lines += more
    names_kept = {model.name for model in models}
    files = [*singular_tests(folder, dbt.templates, dialect, lines)]
    files += read_unit_tests(folder, dbt.templates, lines)
    lines += _macro_lines(macros, dbt.templates.called)
    lines += [to_fill(f"env_var {name}", "", _VALUE) for name in sorted(dbt.templates.asked)]
    lines += [left(f"model {PurePosixPath(f).stem}", f, _PYTHON) for f in folder.python]
    lines += _tests_elsewhere(folder, names_kept)
    return Draft(
        project_name(folder.name),
        tuple(models),
        tuple(source.draft for source in sources),
        tuple(seeds),
        tuple(files),
        {},
        tuple(lines),
    )


_PYTHON = "a model in Python: infold's are functions of DataFrames, see write-models-in-python"

_VALUE = (
    "values are never copied: write yours where it is read, or give it a default, and import again"
)


def _names(
    folder: DbtFolder, sources: list[Source], snapshots: list[Snapshot], dialect: str
) -> Names:
    refs = {PurePosixPath(file).stem: file for file in (*folder.models, *folder.python)}
    refs |= {PurePosixPath(file).stem: file for file in folder.seeds}
    refs |= {snapshot.name: snapshot.file for snapshot in snapshots}
    return Names(
        {name: project_name(name) for name in refs},
        {source.dbt_name: source.draft.name for source in sources},
        variables(folder.project),
        dialect,
    )


def _models(dbt: Dbt, lines: list[Line]) -> Iterator[DraftModel]:
    for file, text in dbt.folder.models.items():
        name = PurePosixPath(file).stem
        entry = dbt.folder.properties("models", name)
        model = read_model(dbt.folder, dbt.templates, dbt.dialect, file, text, lines)
        if model is not None:
            yield _with_audits(dbt, model, entry, lines)


def _snapshots(dbt: Dbt, snapshots: list[Snapshot], lines: list[Line]) -> Iterator[DraftModel]:
    for snapshot in snapshots:
        model = read_snapshot(snapshot, dbt.templates, dbt.dialect, lines)
        if model is not None:
            entry = dbt.folder.properties("snapshots", snapshot.name)
            yield _with_audits(dbt, model, entry, lines)


def _with_audits(
    dbt: Dbt, model: DraftModel, entry: Properties | None, lines: list[Line]
) -> DraftModel:
    if entry is None:
        return model
    audits = audits_of(entry, model.name, dbt.templates, lines)
    return replace(model, audits=(*model.audits, *audits))


def _macro_lines(macros: list[Macro], called: set[str]) -> list[Line]:
    why = "its calls are replaced by what it returns"
    lines = [came(f"macro {m.name}", m.file, why) for m in macros if m.name in called]
    uncalled = [macro.name for macro in macros if macro.name not in called]
    if uncalled:
        lines.append(left(f"macros {', '.join(uncalled)}", "macros/", "no model calls them"))
    return lines


def _tests_elsewhere(folder: DbtFolder, models: set[str]) -> list[Line]:
    """Tests of sources and seeds, which have no audits."""
    del models
    lines: list[Line] = []
    parts: Mapping[str, tuple[Properties, ...]] = folder.entries
    for seed in parts.get("seeds", ()):
        lines += _left_tests(seed, f"seed {seed.found.get('name')}")
    for source in parts.get("sources", ()):
        for table in as_list(source.found.get("tables")):
            if isinstance(table, Lined):
                of = Properties(source.file, table)
                lines += _left_tests(of, f"source {source.found.get('name')}.{table.get('name')}")
    return lines


def _left_tests(entry: Properties, what: str) -> list[Line]:
    from infold.importing.dbt.audits import tests_in

    why = "sources and seeds have no audits: put it on a model that reads them"
    return [left(f"test of {what}: {test.shown}", test.at, why) for test in tests_in(entry)]


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
    keys: dict[str, Any] = {}
    if tags := [str(tag) for tag in as_list(settings.get("tags"))]:
        keys["tags"] = tags
    entry = folder.properties("models", name)
    text = " ".join(str(entry.found.get("description") or "").split()) if entry else ""
    if text and "{{" not in text:
        keys["description"] = text
    return keys


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
    as_table = Way({"materialization": "table"})
    if kind != "incremental":
        return (as_table, any_result({})), ""
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
    ways = [as_table, any_result({})]
    folded = bool(keys) and grouped_by(tree) == {key.lower() for key in keys}
    if folded:
        ways.insert(
            0,
            Way(
                {"materialization": "cumulative_aggregate"},
                "it is a table, built whole when an input changed, and not folded by key",
            ),
        )
    if time:
        lost = "" if folded else _WHOLE
        ways.insert(0, Way(_keys_by_cells(settings, time, cell, keys), lost))
    elif ways[0] is as_table:
        why = "it is built whole when an input changed: nothing names the time of its rows"
        lines.append(changed(what, file, why))
    return tuple(ways), time


_WHOLE = (
    "it cannot be built cell by cell, and is built whole when an input changed; what dbt "
    "computed over the rows of a run is computed over all rows"
)


def _keys_by_cells(
    settings: Mapping[str, Any], time: str, cell: str, keys: list[str]
) -> Mapping[str, Any]:
    incremental: dict[str, Any] = {}
    if keys:
        incremental["unique_key"] = keys
    if begin := settings.get("begin"):
        incremental["start"] = str(begin)
    granularity = cell if cell in CELLS else "day"
    return {
        "materialization": "table",
        "timeseries": {"event_time_column": time, "granularity": granularity},
        "incremental": incremental,
    }


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


_PAST_BYTES = 20_000_000
"""A larger file is no reference table; as a source it is read better."""


def read_seeds(folder: DbtFolder, dialect: str) -> tuple[list[DraftSeed], list[Line]]:
    """The seeds, and what is said of them."""
    seeds, lines = [], []
    for file in folder.seeds:
        name = PurePosixPath(file).stem
        settings = folder.settings("seeds", file, name)
        what = f"seed {project_name(name)}"
        path = folder.root / file
        if str(settings.get("enabled", True)).lower() == "false":
            lines.append(left(what, file, "it is disabled"))
            continue
        if path.stat().st_size > _PAST_BYTES:
            lines.append(left(what, file, "more than 20 MB: make it a source"))
            continue
        content = path.read_bytes()
        delimiter = str(settings.get("delimiter", ","))
        declared = as_mapping(settings.get("column_types"))
        types, guessed = _types(content, delimiter, declared, dialect)
        keys: dict[str, Any] = {"columns": types} if types else {}
        if delimiter != ",":
            keys["delimiter"] = delimiter
        seeds.append(DraftSeed(project_name(name), file, content, keys))
        if guessed:
            why = f"types guessed from the values, as dbt does: {', '.join(guessed)}"
            lines.append(changed(what, file, why))
        else:
            lines.append(came(what, file))
    return seeds, lines


def _types(
    content: bytes, delimiter: str, declared: Mapping[str, Any], dialect: str
) -> tuple[dict[str, str], list[str]]:
    """The types of columns that are not string, and the names of those that are guessed."""
    text = content.decode("utf-8-sig", errors="replace")
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    names = next(rows, [])
    columns: list[list[str]] = [[] for _ in names]
    for row in rows:
        for i, value in enumerate(row[: len(names)]):
            if value.strip():
                columns[i].append(value.strip())
    known = {key.lower(): str(value) for key, value in declared.items()}
    types, guessed = {}, []
    for name, values in zip(names, columns, strict=True):
        if name.lower() in known:
            type_ = spark_type(known[name.lower()], dialect) or "string"
        else:
            type_ = _guess(values)
            if type_ != "string":
                guessed.append(name)
        if type_ != "string":
            types[name] = type_
    return types, guessed


def _guess(values: list[str]) -> str:
    if not values:
        return "string"
    return next((type_ for type_, fits in _GUESSES if all(map(fits, values))), "string")


def _boolean(text: str) -> bool:
    return text.lower() in {"true", "false"}


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return fits


# A number with a leading zero is a code, not a number.
_GUESSES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("boolean", _boolean),
    ("bigint", lambda text: bool(re.fullmatch(r"-?(0|[1-9]\d{0,17})", text))),
    ("double", lambda text: bool(re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", text))),
    ("date", _parses(date.fromisoformat)),
    ("timestamp", _parses(datetime.fromisoformat)),
)


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


@dataclass(frozen=True, slots=True)
class Source:
    """A source of infold, and the two names that dbt calls it by."""

    dbt_name: tuple[str, str]
    draft: DraftSource


def read_sources(folder: DbtFolder, lines: list[Line], dialect: str) -> list[Source]:
    """Every table of every source; of a name that is declared twice the first."""
    sources: dict[tuple[str, str], Source] = {}
    for entry in folder.entries.get("sources", ()):
        group = str(entry.found.get("name", ""))
        for table in as_list(entry.found.get("tables")):
            table = table if isinstance(table, Lined) else Lined({"name": str(table)})
            name = (group, str(table.get("name", "")))
            at = f"{entry.file}:{line_of(table) or line_of(entry.found)}"
            settings = {**entry.config, **as_mapping(table.get("config"))}
            if name not in sources:
                draft = _draft(name, at, table, settings, dialect)
                used_names = {source.draft.name for source in sources.values()}
                while draft.name in used_names:  # `a-b` and `a b` are both a_b
                    draft = replace(draft, name=f"{draft.name}_")
                sources[name] = Source(name, draft)
            if entry.found.get("freshness") or table.get("freshness"):
                why = "`infold status` shows how far a source has come; `freshness` is an audit"
                lines.append(left(f"freshness of {group}.{name[1]}", at, why))
    return list(sources.values())


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


class _NoCaseError(Exception):
    """A test that cannot be given as rows; the argument says why."""


def read_unit_tests(
    folder: DbtFolder, templates: Templates, lines: list[Line]
) -> Iterator[DraftFile]:
    """The unit tests of properties files."""
    for entry in folder.entries.get("unit_tests", ()):
        name = str(entry.found.get("name", ""))
        try:
            yield case_file(_case(name, entry, templates))
        except _NoCaseError as error:
            lines.append(left(f"test {name}", entry.at, str(error)))


def _case(name: str, entry: Properties, templates: Templates) -> Case:
    if entry.found.get("overrides"):
        raise _NoCaseError("overrides: there is nothing to override here")
    model = project_name(str(entry.found.get("model", "")))
    inputs: dict[str, Rows] = {}
    for table in as_list(entry.found.get("given")):
        table = as_mapping(table)
        source = str(table.get("input", ""))
        if source == "this":
            raise _NoCaseError("input this: a model of infold does not read itself")
        try:
            called = templates.render(entry.at, "{{ " + source + " }}").text
        except NotRenderedError as error:
            raise _NoCaseError(f"jinja that only dbt resolves: {error.what}") from error
        inputs[called] = _rows(table)
    expected = _rows(as_mapping(entry.found.get("expect")))
    return Case(name, entry.at, inputs, {model: expected})


def _rows(table: Lined) -> Rows:
    """Rows as mappings; a column that a row lacks is NULL, as in dbt."""
    if table.get("fixture"):
        raise _NoCaseError("rows in a fixture file")
    rows: Any = table.get("rows")
    form = str(table.get("format", "dict"))
    if form == "csv":
        records = csv.DictReader(io.StringIO(str(rows or "")), skipinitialspace=True)
        return [{str(key).strip(): _text(value) for key, value in row.items()} for row in records]
    if form != "dict":
        raise _NoCaseError(f"rows as {form}")
    return [row for row in as_list(rows) if isinstance(row, Mapping)]


def _text(value: str | None) -> str | None:
    value = (value or "").strip()
    return value or None
