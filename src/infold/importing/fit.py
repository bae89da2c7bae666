"""
Makes a draft a project that ``infold check`` accepts.

infold's own check is the judge of what can be carried over: a model that it refuses is kept in the
next way that the draft has for it, and left out when there is none. What reads a model that is left
out is left out too. So whatever is written can be planned.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import yaml
from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.tokenizer_core import TokenType

from infold.core.type_changes import TIMES
from infold.importing.draft import (
    Draft,
    DraftFile,
    DraftModel,
    DraftSource,
    Line,
    Outcome,
    came,
    changed,
    left,
    to_fill,
)
from infold.messages.errors import InfoldError

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


def flow_text(value: Any) -> str:
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
    lines += [f"{key}: {flow_text(value)}" for key, value in model.ways[0].keys.items()]
    audits: dict[int, int] = {}
    if model.audits:
        lines.append("audits:")
    for i, audit in enumerate(model.audits):
        lines.append(f"  - {flow_text(audit.entry)}")
        audits[len(lines)] = i
    lines += ["---", model.query.strip(), ""]
    return "\n".join(lines), audits


def project_text(draft: Draft, columns: Mapping[str, SourceColumns], tool: str) -> str:
    """infold.yml."""
    lines = [
        f"# Imported from {tool}; import-report.md says what came over and what did not.",
        f"name: {draft.name}",
    ]
    lines += [f"{key}: {flow_text(value)}" for key, value in draft.keys.items()]
    if draft.sources:
        lines += ["", "sources:"]
    for source in draft.sources:
        lines += _source(source, columns[source.name])
    if any(seed.keys for seed in draft.seeds):
        lines += ["", "seeds:"]
    for seed in draft.seeds:
        if seed.keys:
            lines.append(f"  {flow_text(seed.name)}:")
            lines += [f"    {key}: {flow_text(value)}" for key, value in seed.keys.items()]
    lines += [
        "",
        "targets:",
        '  dev: {storage: iceberg, warehouse: warehouse, ledger: "sqlite:///.infold/ledger.db"}',
        "",
    ]
    return "\n".join(lines)


def _source(source: DraftSource, columns: SourceColumns) -> list[str]:
    lines = [f"  {flow_text(source.name)}:"]
    keys = dict(source.keys)
    if "path" not in keys:
        where = source.name.replace(".", "/")
        lines.append(f"    path: landing/{where}/*.parquet  {TO_FILL}: where its files land")
    if columns.event_time:
        keys.setdefault("event_time_column", columns.event_time)
    lines += [f"    {key}: {flow_text(value)}" for key, value in keys.items()]
    lines.append("    columns:")
    if not columns.types:
        lines.append(f"      to_fill_in: string  {TO_FILL}: no query names a column")
    for name, type_ in columns.types.items():
        comment = f"  {TO_FILL}: its type" if name in columns.supposed else ""
        lines.append(f"      {flow_text(name)}: {flow_text(type_)}{comment}")
    return lines


Check = Callable[[Path], Sequence[InfoldError]]

LEFT_OUT = "left_out"
"""The folder of queries that did not come over, for people to go on with."""

_MOST_ROUNDS = 60
"""Each round takes something away; this is only to end."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The files of a project by their names, what became of each part, and what is still wrong."""

    files: Mapping[str, bytes]
    lines: tuple[Line, ...]
    findings: tuple[InfoldError, ...] = ()


@dataclass
class _Work:
    """The draft as far as it fits, what was taken out of it, and why."""

    draft: Draft
    tool: str
    columns: Mapping[str, SourceColumns]
    out: dict[str, tuple[DraftModel, str]] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    def files(self) -> dict[str, bytes]:
        """The project as it is written."""
        texts = {"infold.yml": project_text(self.draft, self.columns, self.tool)}
        for model in self.draft.models:
            texts[f"models/{model.name}.sql"] = model_text(model)[0]
        for name, (model, why) in self.out.items():
            reason = " ".join(why.split())
            texts[f"{LEFT_OUT}/{name}.sql"] = f"-- {reason}\n{model.query.strip()}\n"
        texts |= {file.path: file.text for file in self.draft.files}
        if not self.draft.models:
            texts["models/.gitkeep"] = ""  # a project has the folder
        texts[".gitignore"] = ".infold/\nwarehouse/\n"
        contents = {path: text.encode() for path, text in texts.items()}
        return contents | {f"seeds/{seed.name}.csv": seed.content for seed in self.draft.seeds}


def fit(draft: Draft, tool: str, judge: Check) -> Fitted:
    """The project of a draft, by what ``judge`` finds wrong with it, and the report."""
    draft = without_own_names(draft)
    work = _Work(draft, tool, source_columns(draft))
    _without_missing(work)
    findings: Sequence[InfoldError] = ()
    with tempfile.TemporaryDirectory(prefix="infold-import-") as folder:
        for round_ in range(_MOST_ROUNDS):
            root = Path(folder) / str(round_)
            place(work.files(), root)
            (root / "models").mkdir(exist_ok=True)
            findings = judge(root)
            if not findings or not _take_away(work, findings):
                break
    gone = {model.what for model, _ in work.out.values()}
    drafted = [line for line in draft.lines if line.what not in gone]
    lines = [*drafted, *work.lines, *_source_lines(work), *_remaining_lines(work, findings)]
    return Fitted(work.files(), tuple(lines), tuple(findings))


def place(files: Mapping[str, bytes], root: Path) -> None:
    """Write files into a folder."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _take_away(work: _Work, findings: Sequence[InfoldError]) -> bool:
    """Take away what is wrong; whether there was something to take."""
    models = {f"models/{model.name}.sql": model for model in work.draft.models}
    files = {file.path: file for file in work.draft.files}
    seeds = {f"seeds/{seed.name}.csv": seed for seed in work.draft.seeds}
    mended = False
    done: set[str] = set()
    roots = [error for error in findings if not _follows(error, work.draft)]
    findings = roots or findings
    for error in findings:
        file = error.at.file if error.at else ""
        if file in done:
            continue
        if file in models:
            done.add(file)
            mended = True
            _mend_model(work, models[file], [e for e in findings if e.at and e.at.file == file])
        elif file in files:
            done.add(file)
            mended = True
            _leave_file(work, files[file], _words(error))
        elif file in seeds:
            done.add(file)
            mended = True
            seed = seeds[file]
            remaining = tuple(s for s in work.draft.seeds if s is not seed)
            work.draft = replace(work.draft, seeds=remaining)
            work.lines.append(left(f"seed {seed.name}", seed.at, _words(error)))
    _without_missing(work)
    return mended


def _follows(error: InfoldError, draft: Draft) -> bool:
    """Whether a finding is only about a model that was refused, and may be kept in another way."""
    return _unknown_table(error) in {model.name for model in draft.models}


def _unknown_table(error: InfoldError) -> str | None:
    """The table that a finding misses, if that is what it is about."""
    named = re.search(r"'([^']+)'", error.what) if error.slug == "unknown-table" else None
    return named and named[1]


def _mend_model(work: _Work, model: DraftModel, errors: Sequence[InfoldError]) -> None:
    """Drop the audits that are wrong; else keep the model in the next way; else leave it out."""
    _, audits = model_text(model)
    wrong = {
        audits[error.at.line]: error for error in errors if error.at and error.at.line in audits
    }
    if wrong:
        right = tuple(audit for i, audit in enumerate(model.audits) if i not in wrong)
        for i, error in wrong.items():
            audit = model.audits[i]
            what = f"test of {model.name}: {_short(audit.entry)}"
            work.lines.append(left(what, audit.at, _words(error)))
        _put(work, replace(model, audits=right))
        return
    slugs = {error.slug for error in errors}
    ways_left = [way for way in model.ways[1:] if not way.only_for or way.only_for & slugs]
    if not ways_left:
        lines = (*work.draft.lines, *work.lines)
        gone = {line.what.partition(" ")[2] for line in lines if line.outcome is Outcome.LEFT}
        lost = _unknown_table(errors[0])
        reads = f"it reads {lost}, which is left out"
        _leave(work, model, reads if lost in gone else _words(errors[0]))
        return
    for consequence in (model.ways[0].lost, ways_left[0].gained):
        if consequence:
            work.lines.append(changed(model.what, model.at, f"{consequence} ({_words(errors[0])})"))
    ways = model.ways[model.ways.index(ways_left[0]) :]
    _put(work, replace(model, ways=ways))


def _put(work: _Work, model: DraftModel) -> None:
    models = tuple(model if each.name == model.name else each for each in work.draft.models)
    work.draft = replace(work.draft, models=models)


def _leave(work: _Work, model: DraftModel, why: str) -> None:
    work.out[model.name] = (model, why)
    remaining = tuple(each for each in work.draft.models if each.name != model.name)
    work.draft = replace(work.draft, models=remaining)
    # What was said of how it is kept holds no longer.
    work.lines = [line for line in work.lines if line.what != model.what]
    work.lines.append(left(model.what, model.at, why))


def _leave_file(work: _Work, file: DraftFile, why: str) -> None:
    remaining = tuple(each for each in work.draft.files if each.path != file.path)
    work.draft = replace(work.draft, files=remaining)
    work.lines.append(left(file.what, file.at, why))


def _without_missing(work: _Work) -> None:
    """Leave out files of audits and tests that name what is not there."""
    known = {model.name for model in work.draft.models}
    known |= {source.name for source in work.draft.sources}
    known |= {seed.name for seed in work.draft.seeds}
    for file in work.draft.files:
        missing = sorted(file.needs - known)
        if missing:
            _leave_file(work, file, f"it names {missing[0]}, which is not there")


def _words(error: InfoldError) -> str:
    """A finding in one line, with its place in what was written left out."""
    facts = [text for name, text in error.facts if name not in {"at", "nearest"}]
    inner = f" ({facts[0]})" if facts else ""
    return f"{error.slug}: {error.what}{inner}"


def _short(entry: object) -> str:
    text = flow_text(entry)
    return re.sub(r"\A\{(.*)\}\Z", r"\1", text)


def _source_lines(work: _Work) -> list[Line]:
    """What is to be filled in for each source."""
    lines = []
    for source in work.draft.sources:
        columns = work.columns[source.name]
        missing = [] if "path" in source.keys else ["path"]
        if columns.supposed:
            missing.append(f"types of {len(columns.supposed)} columns, as queries name them")
        if not columns.types:
            missing.append("columns: no query names one")
        why = "; ".join(missing)
        if columns.event_time:
            why += f"; event_time_column {columns.event_time} is supposed, by its readers"
        if columns.dropped:
            names = ", ".join(sorted(columns.dropped))
            why += f"; without {names}: give names with an underscore in front another one"
        lines.append(to_fill(f"source {source.name}", source.at, why.removeprefix("; ")))
    return lines


def _remaining_lines(work: _Work, findings: Sequence[InfoldError]) -> list[Line]:
    """The models that came over, and what the check still finds."""
    reported = {
        line.what for line in (*work.draft.lines, *work.lines) if line.outcome is not Outcome.CAME
    }
    lines = [
        came(model.what, model.at, _kept_as(model))
        for model in work.draft.models
        if model.what not in reported
    ]
    lines += [
        came(f"test of {model.name}: {_short(audit.entry)}", audit.at)
        for model in work.draft.models
        for audit in model.audits
    ]
    lines += [came(file.what, file.at, file.path) for file in work.draft.files]
    lines += [
        to_fill(str(error.at or "infold.yml"), "", f"`infold check` says {_words(error)}")
        for error in findings
    ]
    return lines


def _kept_as(model: DraftModel) -> str:
    keys = model.ways[0].keys
    kind = str(keys.get("materialization", ""))
    return f"{kind}, built cell by cell" if "incremental" in keys else kind


# Loaders add columns such as `_fivetran_synced` or `_sdc_batched_at`. A name with an underscore in
# front is refused in a table of infold's, so such a column of a source gets another one, in the
# source and in all queries. Its rows are to be landed by that name.

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


def without_own_names(draft: Draft) -> Draft:
    """The same draft, with other names for such columns of its sources."""
    columns_of = source_columns(draft)
    names = sorted({name for columns in columns_of.values() for name in columns.dropped})
    if not names:
        return draft
    new = {name.lower(): other_name(name) for name in names}
    models = tuple(
        replace(
            model,
            query=_renamed(model.query, new),
            time_column=new.get(model.time_column.lower(), model.time_column),
        )
        for model in draft.models
    )
    sources = tuple(
        replace(one, columns={new.get(n.lower(), n): type_ for n, type_ in one.columns.items()})
        for one in draft.sources
    )
    lines: list[Line] = []
    for source in draft.sources:
        for name in sorted(columns_of[source.name].dropped):
            why = (
                f"{name} is {new[name.lower()]}: land it so, as names with _ in front are infold's"
            )
            lines.append(changed(f"source {source.name}", source.at, why))
    return replace(draft, models=models, sources=sources, lines=(*draft.lines, *lines))


def other_name(name: str) -> str:
    """A name without underscores in front, which still begins with a letter."""
    bare = name.lstrip("_")
    return bare if bare[:1].isalpha() else f"col{name}"


def _renamed(query: str, names: Mapping[str, str]) -> str:
    """A query with other names; texts and comments stay as they are."""
    if not any(name in query.lower() for name in names):
        return query
    try:
        tokens = Spark().tokenize(query)
    except SqlglotError:
        return query
    parts, end = [], 0
    for token in tokens:
        if token.token_type in _NAMES and token.text.lower() in names:
            parts += [query[end : token.start], names[token.text.lower()]]
            end = token.end + 1
    return "".join([*parts, query[end:]])


# A query asks its tables for the columns that it names. What it takes by `*` it asks for as far as
# its own readers ask it, through CTEs, subqueries and models. No type follows from that.

_MOST_PASSES = 50
"""Models are asked again until no new column is asked for; a chain of ``*`` is no longer."""


def source_columns(draft: Draft) -> dict[str, SourceColumns]:
    """The columns of each source: those that are declared, then those that queries name."""
    sources = {source.name.lower(): source for source in draft.sources}
    needs = _ColumnsAsked({name: set(map(str.lower, one.columns)) for name, one in sources.items()})
    scopes = {model.name.lower(): list(_scopes(model)) for model in draft.models}
    for _ in range(_MOST_PASSES):
        before = needs.size
        for name, model_scopes in scopes.items():
            needs.by_model(name, model_scopes)
        if needs.size == before:
            break
    for file in draft.files:
        for table, names in file.gives.items():
            if table.lower() in sources:
                needs.name(table.lower(), names)
    times = dict(_event_times(draft.models, scopes, sources))
    return {
        source.name: _merged(source, needs.of(source.name.lower()), times.get(source.name.lower()))
        for source in draft.sources
    }


def is_reserved(name: str) -> bool:
    """Whether a table of infold's cannot have a column of this name."""
    return name.startswith("_")


def _merged(source: DraftSource, names: list[str], time: str | None) -> SourceColumns:
    """Declared columns, then named ones; a column of event times is a timestamp."""
    types = dict(source.columns)
    known = {name.lower() for name in types}
    declared_time = str(source.keys.get("event_time_column", "") or time or "")
    supposed = {name for name in names if name not in known and not is_reserved(name)}
    types = {name: type_ for name, type_ in types.items() if not is_reserved(name)}
    if declared_time and declared_time.lower() not in known | {n.lower() for n in supposed}:
        supposed.add(declared_time)
    for name in sorted(supposed):
        types[name] = "timestamp" if name.lower() == declared_time.lower() else "string"
    dropped = {n for n in (*source.columns, *names) if is_reserved(n)}
    return SourceColumns(types, frozenset(supposed), time or "", frozenset(dropped))


def _scopes(model: DraftModel) -> Iterator[Scope]:
    """The SELECTs of a query, the outermost first; none if it cannot be read."""
    try:
        scopes = traverse_scope(parse_one(model.query, dialect="spark"))
        for scope in scopes:
            assert isinstance(scope.selected_sources, dict)  # two of one name raise here
    except (SqlglotError, RecursionError):
        return
    yield from reversed(scopes)


def table_name(table: exp.Table) -> str:
    """A table as models name it, in lower case."""
    return ".".join(part.name for part in table.parts).lower()


@dataclass
class _ColumnsAsked:
    """What was asked of each table, and of what a SELECT takes by ``*``."""

    declared: Mapping[str, set[str]]
    columns: dict[str, dict[str, None]] = field(default_factory=dict)
    by_star: dict[int, set[str]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How much was asked for so far."""
        tables = sum(len(names) for names in self.columns.values())
        return tables + sum(len(names) for names in self.by_star.values())

    def of(self, table: str) -> list[str]:
        """The columns that were asked of a table, in the order in which that was."""
        return list(self.columns.get(table, ()))

    def name(self, table: str, columns: Iterable[str]) -> None:
        """Ask a table for columns that are not declared."""
        for column in columns:
            if column.lower() not in self.declared.get(table, ()):
                self.columns.setdefault(table, {}).setdefault(column.lower())

    def by_model(self, name: str, scopes: Sequence[Scope]) -> None:
        """Note what one query asks for, given what its readers ask it for."""
        if not scopes:
            return
        outer = scopes[0]
        for column in self.of(name):
            self._ask_scope(outer, column)
        for scope in scopes:
            for named in scope.columns:
                self._ask_sources(scope, named.name.lower(), named.table.lower())
            for star_column in sorted(self.by_star.get(id(scope), ())):
                self._through_stars(scope, star_column)

    def _ask_scope(self, scope: Scope, column: str) -> None:
        """Ask a SELECT for a column: by its ``*``, unless it names one so."""
        for branch in scope.set_operation_scopes:
            self._ask_scope(branch, column)
        if scope.set_operation_scopes or not isinstance(scope.expression, exp.Select):
            return
        if column not in {name.lower() for name in scope.expression.named_selects}:
            self.by_star.setdefault(id(scope), set()).add(column)

    def _through_stars(self, scope: Scope, column: str) -> None:
        assert isinstance(scope.expression, exp.Select)
        for select in scope.expression.selects:
            if isinstance(select, exp.Star):
                self._ask_sources(scope, column, "")
            elif isinstance(select, exp.Column) and isinstance(select.this, exp.Star):
                self._ask_sources(scope, column, select.table.lower())

    def _ask_sources(self, scope: Scope, column: str, table: str) -> None:
        """Ask the one table that a column of this name can be of."""
        if column == "*":
            return
        sources = {name.lower(): source for name, (_, source) in scope.selected_sources.items()}
        if table:
            source = sources.get(table)
        elif len(sources) == 1:
            (source,) = sources.values()
        else:
            if any(self._has(each, column) for each in sources.values()):
                return
            source = next((each for each in sources.values() if self._may_have(each)), None)
        if isinstance(source, exp.Table):
            self.name(table_name(source), [column])
        elif isinstance(source, Scope):
            self._ask_scope(source, column)

    def _has(self, source: exp.Table | Scope, column: str) -> bool:
        if isinstance(source, exp.Table):
            name = table_name(source)
            return column in self.declared.get(name, ()) or column in self.columns.get(name, ())
        if not isinstance(source.expression, exp.Query):
            return False
        names = {name.lower() for name in source.expression.named_selects}
        return column in names or column in self.by_star.get(id(source), ())

    def _may_have(self, source: exp.Table | Scope) -> bool:
        if isinstance(source, exp.Table):
            return True
        return isinstance(source.expression, exp.Query) and source.expression.is_star


def _event_times(
    models: Sequence[DraftModel],
    scopes: Mapping[str, Sequence[Scope]],
    sources: Mapping[str, DraftSource],
) -> Iterator[tuple[str, str]]:
    """Sources, each with the column that an incremental model's time is taken from."""
    for model in models:
        model_scopes = scopes[model.name.lower()]
        if not model.time_column or not model_scopes:
            continue
        for table, column in _origins(model_scopes[0], model.time_column.lower(), scopes, 0):
            source = sources.get(table)
            if source is None or source.keys.get("event_time_column"):
                continue
            types = {name.lower(): type_ for name, type_ in source.columns.items()}
            if types.get(column, "timestamp") in TIMES:
                yield table, column


def _origins(
    scope: Scope, column: str, scopes: Mapping[str, Sequence[Scope]], depth: int
) -> Iterator[tuple[str, str]]:
    """The columns of tables that an output column is, or is made from alone."""
    if depth > _MOST_PASSES:
        return
    if scope.set_operation_scopes:
        for branch in scope.set_operation_scopes:
            yield from _origins(branch, column, scopes, depth + 1)
        return
    if not isinstance(scope.expression, exp.Select):
        return
    named = {select.alias_or_name.lower(): select for select in scope.expression.selects}
    inner = list(named[column].find_all(exp.Column)) if column in named else []
    if column not in named and scope.expression.is_star:
        inner = [exp.column(column)]
    if len(inner) != 1:
        return
    sources = {name.lower(): source for name, (_, source) in scope.selected_sources.items()}
    qualifier = inner[0].table.lower()
    source = sources.get(qualifier) if qualifier else next(iter(sources.values()), None)
    name = inner[0].name.lower()
    if isinstance(source, Scope):
        yield from _origins(source, name, scopes, depth + 1)
    elif isinstance(source, exp.Table):
        table = table_name(source)
        if scopes.get(table):
            yield from _origins(scopes[table][0], name, scopes, depth + 1)
        else:
            yield table, name
