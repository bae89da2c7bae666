"""
Makes a draft a project that ``infold check`` accepts.

infold's own check is the judge of what can be carried over: a model that it refuses is kept in the
next way that the draft has for it, and left out when there is none. What reads a model that is left
out is left out too. So whatever is written can be planned.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from infold.declare.load import check
from infold.importing.columns import source_columns
from infold.importing.draft import Draft, DraftFile, DraftModel
from infold.importing.report import Line, Outcome, came, changed, left, to_fill
from infold.importing.texts import SourceColumns, flow, model_text, project_text
from infold.messages.errors import InfoldError

Check = Callable[[Path], Sequence[InfoldError]]

LEFT_OUT = "left_out"
"""The folder of queries that did not come over, for people to go on with."""

_ROUNDS = 60
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
        found = {"infold.yml": project_text(self.draft, self.columns, self.tool)}
        for model in self.draft.models:
            found[f"models/{model.name}.sql"] = model_text(model)[0]
        for name, (model, why) in self.out.items():
            reason = " ".join(why.split())
            found[f"{LEFT_OUT}/{name}.sql"] = f"-- {reason}\n{model.query.strip()}\n"
        found |= {file.path: file.text for file in self.draft.files}
        if not self.draft.models:
            found["models/.gitkeep"] = ""  # a project has the folder
        found[".gitignore"] = ".infold/\nwarehouse/\n"
        contents = {path: text.encode() for path, text in found.items()}
        return contents | {f"seeds/{seed.name}.csv": seed.content for seed in self.draft.seeds}


def fit(draft: Draft, tool: str, judge: Check = check) -> Fitted:
    """The project of a draft, by what ``judge`` finds wrong with it, and the report."""
    draft = without_own_names(draft)
    work = _Work(draft, tool, source_columns(draft))
    _without_missing(work)
    findings: Sequence[InfoldError] = ()
    with tempfile.TemporaryDirectory(prefix="infold-import-") as folder:
        for round_ in range(_ROUNDS):
            root = Path(folder) / str(round_)
            place(work.files(), root)
            (root / "models").mkdir(exist_ok=True)
            findings = judge(root)
            if not findings or not _mend(work, findings):
                break
    gone = {model.what for model, _ in work.out.values()}
    drafted = [line for line in draft.lines if line.what not in gone]
    lines = [*drafted, *work.lines, *_of_sources(work), *_of_rest(work, findings)]
    return Fitted(work.files(), tuple(lines), tuple(findings))


def place(files: Mapping[str, bytes], root: Path) -> None:
    """Write files into a folder."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _mend(work: _Work, findings: Sequence[InfoldError]) -> bool:
    """Take away what is wrong; whether there was something to take."""
    models = {f"models/{model.name}.sql": model for model in work.draft.models}
    others = {file.path: file for file in work.draft.files}
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
        elif file in others:
            done.add(file)
            mended = True
            _leave_file(work, others[file], _words(error))
        elif file in seeds:
            done.add(file)
            mended = True
            seed = seeds[file]
            rest = tuple(s for s in work.draft.seeds if s is not seed)
            work.draft = replace(work.draft, seeds=rest)
            work.lines.append(left(f"seed {seed.name}", seed.at, _words(error)))
    _without_missing(work)
    return mended


def _follows(error: InfoldError, draft: Draft) -> bool:
    """Whether a finding is only about a model that was refused, and may be kept in another way."""
    named = re.search(r"'([^']+)'", error.what) if error.slug == "unknown-table" else None
    return named is not None and named[1] in {model.name for model in draft.models}


def _mend_model(work: _Work, model: DraftModel, errors: Sequence[InfoldError]) -> None:
    """Drop the audits that are wrong; else keep the model in the next way; else leave it out."""
    _, audits = model_text(model)
    wrong = {
        audits[error.at.line]: error for error in errors if error.at and error.at.line in audits
    }
    if wrong:
        kept = tuple(audit for i, audit in enumerate(model.audits) if i not in wrong)
        for i, error in wrong.items():
            audit = model.audits[i]
            what = f"test of {model.name}: {_short(audit.entry)}"
            work.lines.append(left(what, audit.at, _words(error)))
        _put(work, replace(model, audits=kept))
        return
    slugs = {error.slug for error in errors}
    rest = [way for way in model.ways[1:] if not way.only_for or way.only_for & slugs]
    if not rest:
        _leave(work, model, _words(errors[0]))
        return
    for said in (model.ways[0].lost, rest[0].gained):
        if said:
            work.lines.append(changed(model.what, model.at, f"{said} ({_words(errors[0])})"))
    ways = model.ways[model.ways.index(rest[0]) :]
    _put(work, replace(model, ways=ways))


def _put(work: _Work, model: DraftModel) -> None:
    models = tuple(model if each.name == model.name else each for each in work.draft.models)
    work.draft = replace(work.draft, models=models)


def _leave(work: _Work, model: DraftModel, why: str) -> None:
    work.out[model.name] = (model, why)
    rest = tuple(each for each in work.draft.models if each.name != model.name)
    work.draft = replace(work.draft, models=rest)
    # What was said of how it is kept holds no longer.
    work.lines = [line for line in work.lines if line.what != model.what]
    work.lines.append(left(model.what, model.at, why))


def _leave_file(work: _Work, file: DraftFile, why: str) -> None:
    rest = tuple(each for each in work.draft.files if each.path != file.path)
    work.draft = replace(work.draft, files=rest)
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
    text = flow(entry)
    return re.sub(r"\A\{(.*)\}\Z", r"\1", text)


def _of_sources(work: _Work) -> list[Line]:
    """What is to be filled in for each source."""
    found = []
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
        found.append(to_fill(f"source {source.name}", source.at, why.removeprefix("; ")))
    return found


def _of_rest(work: _Work, findings: Sequence[InfoldError]) -> list[Line]:
    """The models that came over, and what the check still finds."""
    said = {
        line.what for line in (*work.draft.lines, *work.lines) if line.outcome is not Outcome.CAME
    }
    lines = [
        came(model.what, model.at, _kept_as(model))
        for model in work.draft.models
        if model.what not in said
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
    found = source_columns(draft)
    names = sorted({name for columns in found.values() for name in columns.dropped})
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
        for name in sorted(found[source.name].dropped):
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
