"""A project of SQLMesh as a draft of infold's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from infold.importing.dialects import (
    NotTranslatedError,
    grouped_by,
    of_translation,
    spark_type,
    to_spark,
)
from infold.importing.draft import (
    Audit,
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
)
from infold.importing.project_files import LISTED, Lined, ProjectFiles, as_list, as_mapping, date_of
from infold.importing.sqlmesh.queries import (
    NotAQueryError,
    Statement,
    calls,
    inner,
    names,
    properties,
    query_of,
    split,
    statements,
    unquoted,
)


@dataclass(frozen=True, slots=True)
class OwnAudit:
    """An audit of the project: its query as it is written, and what its block says."""

    name: str
    at: str
    query: str
    block: Mapping[str, str]


class NoAuditError(Exception):
    """An audit that infold has no equal of; the argument says why."""


def builtin(name: str, arguments: Mapping[str, str], dialect: str) -> list[dict[str, Any]]:
    """The entries of front matter for an audit that SQLMesh brings along. Raises NoAuditError."""
    bare = name.removesuffix("_non_blocking")
    if bare not in _MAKERS:
        raise NoAuditError("infold has no such audit; write a SELECT of bad rows into audits/")
    entries = _MAKERS[bare](arguments, dialect)
    warn = bare != name or arguments.get("blocking", "").lower() == "false"
    if condition := arguments.get("condition"):
        entries = [{**entry, "where": _sql(condition, dialect)} for entry in entries]
    return [{**entry, "severity": "warn"} for entry in entries] if warn else entries


def _sql(text: str, dialect: str) -> str:
    try:
        translated = to_spark(f"SELECT {text}", dialect)
    except NotTranslatedError as error:
        raise NoAuditError(str(error)) from error
    return " ".join(translated.split()).removeprefix("SELECT ")


def _columns(kind: str) -> Callable[[Mapping[str, str], str], list[dict[str, Any]]]:
    def make(arguments: Mapping[str, str], _: str) -> list[dict[str, Any]]:
        return [{kind: names(arguments.get("columns", ""))}]

    return make


def _each_unique(arguments: Mapping[str, str], _: str) -> list[dict[str, Any]]:
    return [{"unique": [name]} for name in names(arguments.get("columns", ""))]


def _accepted_values(arguments: Mapping[str, str], _: str) -> list[dict[str, Any]]:
    values = split(inner(arguments.get("is_in", "")))
    audit = {"column": unquoted(arguments.get("column", "")), "values": [_value(v) for v in values]}
    return [{"accepted_values": audit}]


def _accepted_range(arguments: Mapping[str, str], _: str) -> list[dict[str, Any]]:
    audit: dict[str, Any] = {"column": unquoted(arguments.get("column", ""))}
    for theirs, ours in (("min_v", "min"), ("max_v", "max")):
        if theirs in arguments:
            audit[ours] = _value(arguments[theirs])
    if arguments.get("inclusive", "").lower() == "false":
        audit["inclusive"] = False
    return [{"accepted_range": audit}]


def _forall(arguments: Mapping[str, str], dialect: str) -> list[dict[str, Any]]:
    criteria = arguments.get("criteria", "")
    listed = split(inner(criteria)) if criteria[:1] in "([" else [criteria]
    return [{"expression": _sql(each, dialect)} for each in listed]


def _row_count(arguments: Mapping[str, str], _: str) -> list[dict[str, Any]]:
    """SQLMesh asks for more than the threshold, of an interval's rows; infold of the table's."""
    threshold = arguments.get("threshold", "0")
    if not threshold.isdigit():
        raise NoAuditError(f"threshold {threshold} is no number")
    return [{"row_count": {"min": int(threshold) + 1, "within": "table"}}]


def _pattern(arguments: Mapping[str, str], _: str) -> list[dict[str, Any]]:
    patterns = names(arguments.get("patterns", ""))
    if len(patterns) != 1:
        raise NoAuditError("several patterns: `matches` has one")
    return [{"matches": {"column": unquoted(arguments.get("column", "")), "pattern": patterns[0]}}]


def _value(text: str) -> Any:
    """A literal as YAML has it."""
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return float(text)
    if text[:1] not in "'\"":
        raise NoAuditError(f"{text} is no literal")
    return unquoted(text)


_MAKERS: Mapping[str, Callable[[Mapping[str, str], str], list[dict[str, Any]]]] = {
    "not_null": _columns("not_null"),
    "unique_values": _each_unique,
    "unique_combination_of_columns": _columns("unique"),
    "accepted_values": _accepted_values,
    "accepted_range": _accepted_range,
    "forall": _forall,
    "number_of_rows": _row_count,
    "match_regex_pattern_list": _pattern,
}


def own_query(audit: OwnAudit, model: str, arguments: Mapping[str, str]) -> str:
    """The query of an audit for one model, with its arguments; other macros stay in it."""
    values = {
        **{key.lower(): value for key, value in _defaults(audit).items()},
        **{key.lower(): value for key, value in arguments.items()},
    }
    text = re.sub(r"@this_model\b", model, audit.query, flags=re.IGNORECASE)
    return re.sub(r"@(\w+)", lambda match: values.get(match[1].lower(), match[0]), text)


def _defaults(audit: OwnAudit) -> Mapping[str, str]:
    return properties(f"d({inner(audit.block['defaults'])})") if "defaults" in audit.block else {}


@dataclass(frozen=True, slots=True)
class SqlModel:
    """A model: its block, and the statements after it."""

    name: str
    file: str
    block: Mapping[str, str]
    rest: tuple[Statement, ...]


@dataclass
class MeshFolder:
    """What is in the folder."""

    root: Path
    files: ProjectFiles
    models: list[SqlModel] = field(default_factory=list)
    audits: dict[str, OwnAudit] = field(default_factory=dict)
    tests: list[tuple[str, str, Lined]] = field(default_factory=list)
    external: list[tuple[str, Lined]] = field(default_factory=list)


def read_folder(root: Path, dialect: str, lines: list[Line]) -> MeshFolder:
    """The project in ``root``."""
    files = ProjectFiles(root, lines)
    mesh = MeshFolder(root, files)
    for folder in ("models", "audits"):
        for file in files.found(folder, ".sql"):
            try:
                _take(mesh, file, statements(files.text(file) or "", dialect), lines)
            except ValueError as error:
                lines.append(left(f"file {file}", file, f"it cannot be read: {error}"[:200]))
    for folder, what, why in _PYTHON:
        for file in files.found(folder, ".py"):
            path = PurePosixPath(file)
            if path.name != "__init__.py":
                lines.append(left(f"{what} {path.stem}", file, why))
    _yaml_files(mesh, files)
    return mesh


_PYTHON = (
    ("models", "model", "a model in Python: infold's are functions of DataFrames"),
    ("macros", "macros", "macros in Python are not run"),
)


def _take(mesh: MeshFolder, file: str, parts: list[Statement], lines: list[Line]) -> None:
    """Sort the statements of a file into models and audits."""
    heads = [i for i, part in enumerate(parts) if part.begins("MODEL", "AUDIT")]
    for head, end in zip(heads, [*heads[1:], len(parts)], strict=True):
        block = properties(parts[head].text)
        behind = tuple(parts[head + 1 : end])
        name = unquoted(block.get("name", ""))
        if parts[head].begins("MODEL"):
            mesh.models.append(SqlModel(name, file, block, behind))
        elif behind:
            at = f"{file}:{parts[head].line}"
            mesh.audits[name.lower()] = OwnAudit(name, at, behind[-1].text, block)
    if not heads and parts:
        lines.append(left(f"file {file}", file, "it has no MODEL and no AUDIT"))


def _yaml_files(mesh: MeshFolder, files: ProjectFiles) -> None:
    for file in files.found("tests", ".yaml", ".yml"):
        for name, test in files.yaml(file).items():
            if isinstance(test, Lined):
                mesh.tests.append((name, f"{file}:{test.line}", test))
    external = [name for name in _EXTERNAL if (mesh.root / name).is_file()]
    for file in (*external, *files.found("external_models", ".yaml", ".yml")):
        for table in as_list(files.yaml(file, listed=True).get(LISTED)):
            if isinstance(table, Lined):
                mesh.external.append((f"{file}:{table.line - 1}", table))


_EXTERNAL = ("external_models.yaml", "schema.yaml")


_READ = {"gateways", "default_gateway", "default_connection", "model_defaults", "variables"}


@dataclass(frozen=True, slots=True)
class Config:
    """Defaults of models, and values of variables; ``file`` is where they are."""

    file: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dialect(self) -> str:
        """The dialect of models that do not name one."""
        return str(self.defaults.get("dialect") or "")

    @property
    def start(self) -> str:
        """The start of models, if it is a date."""
        return date_of(self.defaults.get("start")) or ""


def read_config(root: Path, lines: list[Line]) -> Config:
    """The settings in ``root``; those of a program in Python cannot be read."""
    for name in ("config.yaml", "config.yml"):
        if not (root / name).is_file():
            continue
        settings = ProjectFiles(root, lines).yaml(name)
        unread = [key for key in settings if key not in _READ]
        lines += [left(f"setting {key}", name, "infold has none like it") for key in unread]
        if settings.get("gateways"):
            why = "tables are in the target's warehouse, which infold.yml names"
            lines.append(left("setting gateways", name, why))
        return Config(
            name, as_mapping(settings.get("model_defaults")), as_mapping(settings.get("variables"))
        )
    why = "settings in Python: dialect by --dialect, and the start in infold.yml"
    lines.append(left("file config.py", "config.py", why))
    return Config("config.py")


_LAYOUT = (
    "partitioned_by", "clustered_by", "physical_properties", "virtual_properties", "table_format",
    "storage_format", "session_properties",
)  # fmt: skip
_JINJA = ("JINJA_QUERY_BEGIN", "JINJA_END")
_NOT_OURS = ("signals", "gateway", "optimize_query", "pre_statements", "post_statements")


@dataclass
class Mesh:
    """A folder of SQLMesh with what every part of it needs to be read, and what is said of it."""

    folder: MeshFolder
    config: Config
    dialect: str
    names: Mapping[str, str]
    lines: list[Line]
    sources: dict[str, DraftSource] = field(default_factory=dict)
    files: list[DraftFile] = field(default_factory=list)

    def table(self, table: exp.Table) -> str | None:
        """A table's name in infold: of a model, else of a source."""
        name = ".".join(part.name for part in table.parts[-2:]).lower()
        if name in self.names:
            return self.names[name]
        parts = [project_name(part.name) for part in table.parts[-2:]]
        own = ".".join(parts if len(parts) > 1 else ["external", *parts])
        self.sources.setdefault(own.lower(), DraftSource(own, ""))
        return self.sources[own.lower()].name


def read_sqlmesh(root: Path, dialect: str) -> Draft:
    """What can be read of the project in ``root``."""
    lines: list[Line] = []
    config = read_config(root, lines)
    dialect = dialect or config.dialect
    folder = read_folder(root, dialect, lines)
    lines += of_translation(dialect)
    mesh = Mesh(folder, config, dialect, _names(folder), lines)
    _external(mesh)
    models = [model for each in folder.models if (model := _model(mesh, each)) is not None]
    seeds = [seed for each in folder.models if (seed := _seed(mesh, each)) is not None]
    _tests(mesh)
    keys: dict[str, Any] = {"start": config.start} if config.start else {}
    return Draft(
        project_name(root.resolve().name),
        tuple(models),
        tuple(mesh.sources.values()),
        tuple(seeds),
        tuple(mesh.files),
        keys,
        tuple(mesh.lines),
    )


def _names(folder: MeshFolder) -> dict[str, str]:
    """Models by ``schema.name`` in lower case, with their names in infold: the last part alone."""
    full = [model.name.lower().replace('"', "").split(".")[-2:] for model in folder.models]
    last = [parts[-1] for parts in full]
    return {
        ".".join(parts): project_name(parts[-1] if last.count(parts[-1]) == 1 else "_".join(parts))
        for parts in full
    }


def _name(mesh: Mesh, model: SqlModel) -> str:
    key = ".".join(model.name.lower().replace('"', "").split(".")[-2:])
    return mesh.names[key]


def _model(mesh: Mesh, model: SqlModel) -> DraftModel | None:
    """The model of a file; None if it does not come over, and the report says why."""
    name = _name(mesh, model)
    what, at = f"model {name}", model.file
    default = mesh.config.defaults.get("kind")
    kind, own = kind_of(model.block, str(default or ""))
    if kind == "SEED":
        return None
    if model.block.get("enabled", "").lower() == "false":
        mesh.lines.append(left(what, at, "it is disabled"))
        return None
    if "blueprints" in model.block or model.name.startswith("@"):
        mesh.lines.append(left(what, at, "blueprints: write each model out"))
        return None
    block = {**{k: str(v) for k, v in mesh.config.defaults.items() if k == "cron"}, **model.block}
    try:
        query, tree, filtered = _query(mesh, model)
        storage = kept_as(kind, own, block, tree)
    except (NotAQueryError, NoKindError) as error:
        mesh.lines.append(left(what, at, str(error)))
        return None
    if filtered:
        why = "filters by @start_… and @end_… are gone: infold reads what each cell needs"
        mesh.lines.append(came(what, at, why))
    mesh.lines += [changed(what, at, note) for note in storage.notes]
    _report_unused(mesh, what, model, kind)
    about = _about(model)
    ways = tuple(Way({**w.keys, **about}, w.lost, w.only_for, w.gained) for w in storage.ways)
    audits = tuple(_audits(mesh, model, name))
    return DraftModel(name, at, query, ways, audits, storage.time)


def _query(mesh: Mesh, model: SqlModel) -> tuple[str, exp.Query, bool]:
    rest = [part for part in model.rest if not part.begins(*_JINJA)]
    if len(rest) < len(model.rest) and any("{{" in part.text or "{%" in part.text for part in rest):
        raise NotAQueryError("a query in Jinja: write it in SQL")
    queries = [part for part in rest if part.begins("SELECT", "WITH", "FROM")]
    if not queries:
        raise NotAQueryError("it has no SELECT")
    for part in rest:
        if part is not queries[0]:
            shown = " ".join(part.text.split())[:60]
            at = f"{model.file}:{part.line}"
            what = f"statement of {_name(mesh, model)}: {shown}"
            mesh.lines.append(left(what, at, "a model is one SELECT"))
    dialect = unquoted(model.block.get("dialect", "")) or mesh.dialect
    text = queries[0].text.removesuffix("JINJA_END")
    return query_of(text, dialect, mesh.config.variables, mesh.table)


def _about(model: SqlModel) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if tags := names(model.block.get("tags", "")):
        keys["tags"] = tags
    if text := " ".join(unquoted(model.block.get("description", "")).split()):
        keys["description"] = text
    return keys


def _report_unused(mesh: Mesh, what: str, model: SqlModel, kind: str) -> None:
    """What a block says that has no place, or another one."""
    layout = [key for key in _LAYOUT if key in model.block]
    if layout:
        why = f"{', '.join(layout)}: infold lays out its tables itself"
        mesh.lines.append(came(what, model.file, why))
    if gone := [key for key in _NOT_OURS if key in model.block]:
        mesh.lines.append(changed(what, model.file, f"{', '.join(gone)}: infold has none"))
    if kind == "INCREMENTAL_BY_TIME_RANGE":
        return
    cron = unquoted(model.block.get("cron", ""))
    if cron and cron != "@daily":
        why = f"cron {cron}: it is built by the first run after an input changed"
        mesh.lines.append(changed(what, model.file, why))
    if "grain" in model.block or "grains" in model.block:
        why = "grain: nothing checks it, as before; an audit `unique` would"
        mesh.lines.append(came(what, model.file, why))


def _audits(mesh: Mesh, model: SqlModel, name: str) -> Iterator[Audit]:
    """The audits of a model's front matter; others become files."""
    for audit, arguments in calls(model.block.get("audits", "")):
        what = f"audit of {name}: {audit}"
        try:
            own = mesh.folder.audits.get(audit)
            if own is None:
                for entry in builtin(audit, arguments, mesh.dialect):
                    yield Audit(entry, model.file)
                if audit.startswith("number_of_rows"):
                    mesh.lines.append(changed(what, model.file, "of the table, not of an interval"))
                continue
            query = own_query(own, model.name, arguments)
            text, _, _ = query_of(query, mesh.dialect, mesh.config.variables, mesh.table)
        except (NoAuditError, NotAQueryError) as error:
            mesh.lines.append(left(what, model.file, str(error)))
            continue
        warn = {own.block.get("blocking", "").lower(), arguments.get("blocking", "").lower()}
        head = f"---\nmodel: {name}\n" + ("severity: warn\n" if "false" in warn else "")
        path = f"audits/{project_name(f'{own.name}_of_{name}')}.sql"
        mesh.files.append(DraftFile(path, f"{head}---\n{text}\n", what, own.at, frozenset({name})))


def _seed(mesh: Mesh, model: SqlModel) -> DraftSeed | None:
    kind, own = kind_of(model.block, "")
    if kind != "SEED":
        return None
    name = _name(mesh, model)
    path, delimiter = seed_of(own)
    file = (mesh.folder.root / model.file).parent / path
    if path.startswith("$root"):
        file = mesh.folder.root / path.removeprefix("$root").lstrip("/")
    if not mesh.folder.files.is_inside(file) or not file.is_file():
        mesh.lines.append(left(f"seed {name}", model.file, f"there is no file {path}"))
        return None
    columns, missing = {}, False
    for part in split(inner(model.block["columns"])) if "columns" in model.block else ():
        column, _, type_ = part.partition(" ")
        translated = spark_type(type_, mesh.dialect)
        missing = missing or translated is None
        if translated not in {None, "string"}:
            columns[unquoted(column)] = translated
    keys: dict[str, Any] = {"columns": columns} if columns else {}
    if delimiter != ",":
        keys["delimiter"] = delimiter
    if "columns" in model.block and not missing:
        mesh.lines.append(came(f"seed {name}", model.file))
    else:
        why = (
            "columns without a type are string here, where SQLMesh guesses: name them in infold.yml"
        )
        mesh.lines.append(changed(f"seed {name}", model.file, why))
    if "audits" in model.block:
        mesh.lines.append(left(f"audits of seed {name}", model.file, "a seed has no audits"))
    return DraftSeed(name, model.file, file.read_bytes(), keys)


def _table(text: str) -> exp.Table | None:
    """The table of a name as it is written; None if it is none."""
    try:
        table = exp.to_table(text)
    except (SqlglotError, ValueError):
        return None
    return table if table.name else None


def _external(mesh: Mesh) -> None:
    """Tables that others make, with the columns that a file declares."""
    for at, declared in mesh.folder.external:
        table = _table(str(declared.get("name", "")).replace('"', ""))
        name = mesh.table(table) if table is not None else None
        if name is None or name.lower() not in mesh.sources:
            continue
        columns = {
            str(column): type_
            for column, text in as_mapping(declared.get("columns")).items()
            if (type_ := spark_type(str(text), mesh.dialect)) is not None
        }
        mesh.sources[name.lower()] = DraftSource(name, at, columns)
        if declared.get("audits"):
            mesh.lines.append(left(f"audits of source {name}", at, "a source has no audits"))


def _tests(mesh: Mesh) -> None:
    for name, at, test in mesh.folder.tests:
        try:
            mesh.files.append(case_file(_case(mesh, name, at, test)))
        except _NoCaseError as error:
            mesh.lines.append(left(f"test {name}", at, str(error)))


class _NoCaseError(Exception):
    """A test that cannot be given as rows; the argument says why."""


def _case(mesh: Mesh, name: str, at: str, test: Lined) -> Case:
    outputs = as_mapping(test.get("outputs"))
    if "query" not in outputs:
        raise _NoCaseError("it expects rows of CTEs alone")
    if outputs.get("ctes"):
        what = f"ctes of test {name}"
        mesh.lines.append(left(what, at, "a test expects rows of models, not of parts of a query"))
    variables = as_mapping(test.get("vars"))
    if "start" in variables or "end" in variables:
        what = f"vars of test {name}"
        mesh.lines.append(
            changed(what, at, "start and end: a model has no interval, all rows count")
        )

    def called(text: str) -> str:
        known = _table(text)
        if known is None:
            raise _NoCaseError(f"{text!r} is no table")
        return str(mesh.table(known))

    inputs = {
        called(str(table)): _rows(rows) for table, rows in as_mapping(test.get("inputs")).items()
    }
    model = called(str(test.get("model", "")))
    clock = str(variables.get("execution_time", "") or "")
    return Case(name, at, inputs, {model: _rows(outputs["query"])}, clock)


def _rows(written: Any) -> Rows:
    if isinstance(written, Lined):
        if "rows" not in written:
            raise _NoCaseError("rows as a query, or in a file")
        written = written["rows"]
    return [row for row in as_list(written) if isinstance(row, Lined)]


_WHOLE = "it is built whole when an input changed, and not cell by cell"
_HOURLY = ("@hourly", "hour", "half_hour", "quarter_hour", "five_minute")


@dataclass(frozen=True, slots=True)
class Kept:
    """How a model is kept: its ways, its time column, and what is said of the change."""

    ways: tuple[Way, ...]
    time: str = ""
    notes: tuple[str, ...] = ()


class NoKindError(Exception):
    """A kind that infold has no equal of; the argument says why."""


def kind_of(block: Mapping[str, str], default: str) -> tuple[str, dict[str, str]]:
    """The kind's name, and its own properties."""
    value = block.get("kind") or default or "VIEW"
    name = value.split("(", 1)[0].strip().upper()
    return name, properties(value) if "(" in value else {}


def kept_as(kind: str, own: Mapping[str, str], block: Mapping[str, str], tree: exp.Query) -> Kept:
    """How a model of a kind is kept. Raises NoKindError."""
    if kind == "VIEW":
        notes = ("materialized view: it is a view, which stores nothing",)
        return Kept(
            (Way({"materialization": "view"}), any_result({})),
            notes=notes if own.get("materialized", "").lower() == "true" else (),
        )
    if kind == "EMBEDDED":
        return Kept((Way({"materialization": "view"}), any_result({})), notes=("a view",))
    if kind == "FULL":
        return Kept(_TABLE)
    if kind == "INCREMENTAL_BY_TIME_RANGE":
        return _kept_by_time(own, block)
    if kind in {"INCREMENTAL_BY_UNIQUE_KEY", "INCREMENTAL_BY_PARTITION"}:
        return _kept_by_key(kind, own, tree)
    if kind in {"SCD_TYPE_2", "SCD_TYPE_2_BY_TIME", "SCD_TYPE_2_BY_COLUMN"}:
        return _versions(kind, own)
    if kind == "INCREMENTAL_UNMANAGED":
        raise NoKindError("INCREMENTAL_UNMANAGED adds what each run finds, and has no definition")
    raise NoKindError(f"kind {kind}: infold has none like it")


_TABLE = (Way({"materialization": "table"}), any_result({}))


def _kept_by_time(own: Mapping[str, str], block: Mapping[str, str]) -> Kept:
    time = (names(own.get("time_column", "")) or [""])[0]
    notes = []
    incremental = _settings(own, block)
    if start := date_of(block.get("start")):
        incremental["start"] = start
    elif block.get("start"):
        notes.append(f"start {block['start']} is relative to now: name a date")
    if own.get("lookback", "0") != "0":
        notes.append("lookback is gone: late rows of any age are found by their files")
    if grain := _grain(block):
        incremental["unique_key"] = grain
    keys = {
        "materialization": "table",
        "timeseries": {"event_time_column": time, "granularity": _cell(block)},
        "incremental": incremental,
    }
    lost = f"{_WHOLE}; what SQLMesh computed over the rows of an interval is computed over all"
    return Kept((Way(keys, lost), *_TABLE), time, tuple(notes))


def _settings(own: Mapping[str, str], block: Mapping[str, str]) -> dict[str, Any]:
    """The keys that have the same name here, and mean the same."""
    texts = {key: unquoted(block.get(key, "")) for key in ("cron", "cron_tz")}
    numbers = {key: own.get(key, "") for key in ("batch_size", "batch_concurrency")}
    flags = {key: own.get(key) or block.get(key, "") for key in ("forward_only", "allow_partials")}
    return {
        **{key: text for key, text in texts.items() if text},
        **{key: int(text) for key, text in numbers.items() if text.isdigit()},
        **{key: True for key, text in flags.items() if text.lower() == "true"},
    }


def _cell(block: Mapping[str, str]) -> str:
    """The cell of a table: SQLMesh's interval unit, or the one that follows from its cron."""
    unit = unquoted(block.get("interval_unit", "")).lower()
    if unit in {"day", "week", "month", "quarter", "year"}:
        return unit
    cron = unquoted(block.get("cron", "@daily")).lower()
    often = cron.split()[1:2] == ["*"]
    return "hour" if unit in _HOURLY or (not unit and (cron in _HOURLY or often)) else "day"


def _grain(block: Mapping[str, str]) -> list[str]:
    """The key that a model declares; none of an expression."""
    columns = names(block.get("grain", "") or block.get("grains", ""))
    return columns if all(name.isidentifier() for name in columns) else []


def _kept_by_key(kind: str, own: Mapping[str, str], tree: exp.Query) -> Kept:
    keys = [name.lower() for name in names(own.get("unique_key", ""))]
    notes = [
        "infold keeps what the query gives over all rows: those that vanish upstream vanish here"
    ]
    if own.get("when_matched") or own.get("merge_filter"):
        notes.append("when_matched and merge_filter are gone: the query says what the table is")
    if kind == "INCREMENTAL_BY_UNIQUE_KEY" and grouped_by(tree) != set(keys):
        notes.append(
            f"a merge keeps one row of {', '.join(keys)}, infold each row that the query gives: "
            "add an audit `unique`, or choose the newest in the query"
        )
    if any(True for _ in tree.find_all(exp.Window)):
        notes.append("window functions are over all rows, not over those of an interval")
    ways = list(_TABLE)
    if keys and grouped_by(tree) == set(keys):
        ways.insert(0, Way({"materialization": "cumulative_aggregate"}, f"{_WHOLE}, nor folded"))
    return Kept(tuple(ways), notes=tuple(notes))


def _versions(kind: str, own: Mapping[str, str]) -> Kept:
    versions: dict[str, Any] = {"updated_at": unquoted(own.get("updated_at_name", "updated_at"))}
    notes = ["the history begins with the rows of the inputs: what was stored before is not in it"]
    if kind == "SCD_TYPE_2_BY_COLUMN":
        if "updated_at_name" not in own:
            raise NoKindError(
                "SCD_TYPE_2_BY_COLUMN takes the time of a run for that of a row; name a column "
                "with the row's own time in updated_at"
            )
        columns = names(own.get("columns", ""))
        versions["columns"] = "*" if columns == ["*"] else columns
    if own.get("invalidate_hard_deletes", "").lower() == "true":
        versions["invalidate_hard_deletes"] = True
        notes.append("invalidate_hard_deletes: for inputs that are whole snapshots")
    for key, ours in (("valid_from_name", "valid_from"), ("valid_to_name", "valid_to")):
        if unquoted(own.get(key, ours)) != ours:
            notes.append(f"{unquoted(own[key])} is {ours}")
    keys = {
        "materialization": "scd_type_2",
        "unique_key": names(own.get("unique_key", "")),
        "scd_type_2": versions,
    }
    return Kept((Way(keys),), notes=tuple(notes))


def seed_of(own: Mapping[str, str]) -> tuple[str, str]:
    """The path of a seed's file, and its delimiter."""
    settings = properties(f"s({inner(own['csv_settings'])})") if "csv_settings" in own else {}
    return unquoted(own.get("path", "")), unquoted(settings.get("delimiter", ","))
