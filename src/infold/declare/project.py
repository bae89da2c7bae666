"""
Parses a folder's infold.yml and model files into a project, and collects all mistakes.

It does the work behind ``load``, which calls it only when no project of these files is cached.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath

from infold.analysis.audits import check_audits
from infold.analysis.compile import compile_models
from infold.analysis.names.subject import Draft
from infold.analysis.sql.run_interval import replace_run_interval
from infold.analysis.sql.text import spot_in
from infold.core.audits import Audit, AuditKind
from infold.core.functions import CalledFunction, FunctionCode
from infold.core.interval import Granularity
from infold.core.model import (
    ERASURES,
    SET_ASIDE,
    UNPUBLISHED,
    Incremental,
    Kind,
    Model,
    Source,
    table_name,
)
from infold.core.object_store import SCHEMES, scheme_of, split
from infold.core.project import Node, Project
from infold.core.sessions import EventSql, Sessions
from infold.core.storages import SQLITE_FILE, CatalogType, Storage
from infold.core.target import Apply, Target
from infold.core.yaml_tree import Page, Value, decoded, join, read, split_front_matter
from infold.declare.audits import FileAudit, read_audit_file, with_names_apart
from infold.declare.erasures import read_erasures, read_request_columns
from infold.declare.folder import PROJECT_FILE, Folder
from infold.declare.functions import ProjectFunctions, read_functions
from infold.declare.keys import NAME, Keys
from infold.declare.models import read_model
from infold.declare.python_models import read_python_model
from infold.declare.seeds import read_seed
from infold.declare.sources import read_source, refuse_in_stores
from infold.declare.targets import read_target
from infold.messages import catalog_errors, delta_errors, findings, other_tools
from infold.messages.errors import InfoldError, Spot
from infold.system.secrets import hide_passwords

KEYS = (
    "name",
    "start",
    "backfill_limit",
    "sources",
    "seeds",
    "erasures",
    "erasure_requests",
    "targets",
    "default_target",
    "dev_target",
    "models",
    "defaults",
    "state_messages",
)
DEV = "dev"
"""The target for development, where ``dev_target`` names no other."""

LATER = ("variables", "vars")


@dataclass(slots=True)
class _Reading:
    folder: Folder
    errors: list[InfoldError] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    functions: ProjectFunctions = field(default_factory=ProjectFunctions)
    drafts: list[Draft] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    names_taken: dict[str, str] = field(
        default_factory=lambda: dict.fromkeys((SET_ASIDE, ERASURES), "infold's own")
    )
    """Storage names in lower case -> where they are declared."""
    library: Mapping[str, str] | None = None
    """The texts of the project's Python modules, once a model in Python is read."""


def with_start_and_limit(
    node: Node, start: int | None, limit: int | None, *, in_force: bool = False
) -> Node:
    """
    A model built cell by cell with its start and its backfill_limit, its own or the project's.

    ``in_force``: the two are those of a kept definition. A table has no cell before its start, so
    the start is part of its definition; the limit affects no row. A model that ingests files leaves
    out rows from before its start, its own or the project's, and so do sessions over it. Sessions
    with a start of their own leave out events.
    """
    own = node.model.start
    if node.model.kind is Kind.SESSIONS and node.query is not None and own is not None:
        fingerprint = sha256(f"{node.fingerprint} from {own}".encode()).hexdigest()
        return replace(node, fingerprint=fingerprint, start=own, query=node.query.from_start(own))
    incremental = node.model.incremental
    if node.model.kind.is_by_cell and incremental is not None:
        node = replace(node, backfill_limit=incremental.backfill_limit or limit)
        if not in_force:
            start = start if incremental.start is None else incremental.start
            start = _whole_cell(start, node.model.granularity, incremental)
    elif node.model.kind is not Kind.EVENTS or node.model.timeseries is None:
        return node
    elif own is not None:
        start = own
    if start is None:
        return node
    fingerprint = sha256(f"{node.fingerprint} from {start}".encode()).hexdigest()
    return replace(node, fingerprint=fingerprint, start=start)


def _whole_cell(start: int | None, cells: Granularity | None, by: Incremental) -> int | None:
    """A start, or the beginning of the cell that it lies in: a row's time may be that."""
    return start if start is None or cells is None or by.exact_start else cells.floor(start)


def read_project(
    folder: Folder, *, downgrade: bool = False
) -> tuple[Project | None, str, list[InfoldError]]:
    """
    The project of a folder, its default target, and all errors (then it is not to be used).

    With ``downgrade``, models that cannot be built cell by cell are no errors.
    """
    reading = _Reading(folder)
    keys = _project_keys(reading)
    if keys is None:
        return None, "", reading.errors
    name, start, limit = keys.text("name"), keys.instant("start"), keys.span("backfill_limit")
    if "name" not in keys.entries:
        keys.missing("name")
    elif name and not NAME.match(name):
        form = "letters, digits and underscores, a letter first"
        reading.errors.append(
            findings.bad_name(keys.at("name"), what="project", name=name, form=form)
        )
    _read_sources(reading, keys)
    erasures = keys.section("erasures", "erasures")
    asked = keys.section("erasure_requests", "erasure_requests")
    default = _read_targets(reading, keys)
    reading.functions = read_functions(folder, reading.errors)
    _read_models(reading, keys)
    _read_seeds(reading, keys)
    _read_audits(reading)
    compiled = compile_models(reading.drafts, reading.sources, reading.broken, downgrade=downgrade)
    reading.errors.extend(compiled.errors)
    nodes = check_audits(compiled.nodes, reading.sources, reading.errors)
    project = Project(
        name=name or "",
        root=folder.root,
        start=start,
        sources=reading.sources,
        nodes=tuple(with_start_and_limit(node, start, limit) for node in nodes),
        target=reading.targets[default],
        targets=reading.targets,
    )
    uncompiled = {draft.model.name for draft in reading.drafts} - {node.name for node in project}
    erased = read_erasures(erasures, project, {*reading.broken, *uncompiled})
    requests = read_request_columns(asked, erasures, reading.sources, reading.broken)
    project = replace(project, erased_columns=erased, erasure_requests=requests)
    if not reading.errors:
        reading.errors.extend(_unchangeable(project, reading.drafts))
    order = sorted(reading.errors, key=lambda e: (e.at.file, e.at.line) if e.at else ("", 0))
    return project, default, order


def _unchangeable(project: Project, drafts: Iterable[Draft]) -> Iterator[InfoldError]:
    """That tables keep cells for longer than events, and a changed definition would lose these."""
    by_name = {draft.model.name: draft for draft in drafts}
    for node in project:
        events, by_cell = project.outlived_by(node), node.model.incremental
        if events is not None and by_cell is not None and not by_cell.forward_only:
            at = by_name[node.name].place("retain")
            yield findings.frozen_without_forward_only(at, name=node.name, read=events)


def _decode(reading: _Reading, file: str, content: bytes) -> str | None:
    try:
        return decoded(file, content)
    except InfoldError as error:
        reading.errors.append(error)
        return None


def _project_keys(reading: _Reading) -> Keys | None:
    text = _decode(reading, PROJECT_FILE, reading.folder.project_file)
    if text is None:
        return None
    page = Page(PROJECT_FILE, tuple(map(hide_passwords, text.splitlines())))
    value = read(page, text, reading.errors)
    if value is None and reading.errors:
        return None
    value = value or Value("a mapping", page.spot(0, 0))
    if value.kind != "a mapping":
        error = findings.wrong_type(
            value.at, key=PROJECT_FILE, wanted="a mapping", found=value.kind
        )
        reading.errors.append(error)
        return None
    keys = Keys(value, PROJECT_FILE, reading.errors)
    keys.check(KEYS, LATER)
    return keys


def _read_sources(reading: _Reading, keys: Keys) -> None:
    section = keys.section("sources", "sources")
    if section is None:
        return
    for name, source_keys in section.sections("source"):
        source = read_source(name, source_keys)
        if source is None:
            reading.broken.append(name)
        elif _claim_name(reading, name, section.value.keys[name]):
            reading.sources[name] = source


def _read_targets(reading: _Reading, keys: Keys) -> str:
    """The targets into ``reading``; returns the default one's name."""
    section = keys.section("targets", "targets")
    if section is not None:
        for name, target_keys in section.sections("target"):
            reading.targets[name] = read_target(name, target_keys, reading.sources, reading.broken)
        named_at = section.value.keys
        reading.errors.extend(refuse_in_stores(reading.sources, reading.targets, named_at))
    if not reading.targets:
        reading.targets["dev"] = Target("dev")
    _protect_targets(reading, keys)
    if keys.choice("state_messages", ("snowplow",)) is not None:
        for name, target in reading.targets.items():
            reading.targets[name] = replace(target, state_messages=True)
    if section is not None:
        named, root = keys.entries.get("name"), reading.folder.root
        project, places = named.text if named is not None else "", section.value.keys
        reading.errors.extend(shared_tables(project, root, reading.targets, places))
    default = keys.text("default_target")
    if default is not None and default not in reading.targets:
        at = keys.at("default_target")
        error = findings.bad_value(at, key="default_target", value=default, known=reading.targets)
        reading.errors.append(error)
    default = default if default in reading.targets else next(iter(reading.targets))
    for name in reading.targets.keys() - {default}:
        reading.targets[name] = replace(reading.targets[name], default=False)
    return default


def _protect_targets(reading: _Reading, keys: Keys) -> None:
    """
    The target for development is free. Where it is named, all others are protected by default.

    A target cannot be both: whoever marks it protected has to name another one for development.
    Changed definitions are applied by hand in a protected target, unless it says otherwise.
    """
    named = keys.text("dev_target")
    if named is not None and named not in reading.targets:
        at = keys.at("dev_target")
        reading.errors.append(
            findings.bad_value(at, key="dev_target", value=named, known=reading.targets)
        )
        return
    targets = keys.section("targets", "targets")
    for name, target in reading.targets.items():
        value = targets.entries.get(name) if targets is not None else None
        marked = value is not None and "protected" in value.entries
        if name == (named or DEV):
            if target.protected and value is not None:
                at = value.entries["protected"].at
                reading.errors.append(findings.protected_dev(at, target=name))
        elif named is not None and not marked:
            reading.targets[name] = target = replace(target, protected=True)
        if target.protected and not (value is not None and "apply" in value.entries):
            reading.targets[name] = replace(target, apply=Apply.MANUAL)


def _read_models(reading: _Reading, keys: Keys) -> None:
    defaults, per_model = keys.section("defaults", "defaults"), keys.section("models", "models")
    if defaults is not None:
        from infold.declare import models

        defaults.check(models.KEYS, models.LATER)
    names = set()
    for file, content in reading.folder.models():
        path = PurePosixPath(file)
        names.add(path.stem)
        text = _decode(reading, file, content)
        at = Spot(file)
        if not NAME.match(path.stem):
            reading.errors.append(findings.bad_model_name(at, name=path.stem))
            continue
        if not _claim_name(reading, path.stem, at):
            continue
        section = per_model.section(path.stem) if per_model else None
        own = section.value if section else None
        default_value = defaults.value if defaults else None
        draft = None
        if text is not None:
            draft = _read_draft_of(reading, path, text, own, default_value)
        if draft is None:
            reading.broken.append(path.stem)
        else:
            reading.drafts.append(draft)
    if per_model is not None:
        for key in per_model.entries:
            if key not in names:
                at = per_model.key_at(key)
                reading.errors.append(findings.unknown_key(at, key, "models", sorted(names)))


def _read_draft_of(
    reading: _Reading, path: PurePosixPath, text: str, own: Value | None, defaults: Value | None
) -> Draft | None:
    """One model in SQL or in Python; None when it cannot be read, with the reasons noted."""
    if path.suffix == ".sql":
        return _read_draft(reading, path.stem, str(path), text, own, defaults)
    library = _library(reading)
    return read_python_model(path.stem, str(path), text, own, defaults, library, reading.errors)


def _library(reading: _Reading) -> Mapping[str, str]:
    """The texts of the project's Python modules, by file; those that are no text are noted."""
    if reading.library is None:
        texts = ((file, _decode(reading, file, text)) for file, text in reading.folder.library())
        reading.library = {file: text for file, text in texts if text is not None}
    return reading.library


def _read_seeds(reading: _Reading, keys: Keys) -> None:
    """The tables of the files in seeds/."""
    section = keys.section("seeds", "seeds")
    names = set()
    for file, content in reading.folder.seeds():
        name, at = PurePosixPath(file).stem, Spot(file)
        names.add(name)
        if not NAME.match(name):
            reading.errors.append(findings.bad_model_name(at, name=name))
        elif _claim_name(reading, name, at):
            own = section.section(name, f"seed {name}") if section is not None else None
            text = _decode(reading, file, content)
            draft = None if text is None else read_seed(name, file, text, own, reading.errors)
            if draft is None:
                reading.broken.append(name)
            else:
                reading.drafts.append(draft)
    if section is None:
        return
    for key in section.entries:
        if key not in names:
            at = section.key_at(key)
            reading.errors.append(findings.unknown_key(at, key, "the folder seeds/", sorted(names)))


def _read_audits(reading: _Reading) -> None:
    """The files in audits/, each into the model that it is about."""
    models = {draft.model.name: draft.model for draft in reading.drafts}
    by_model: dict[str, list[FileAudit]] = {}
    for file, content in reading.folder.audits():
        text = _decode(reading, file, content)
        broken = reading.broken
        if text and not reading.functions.names_broken(text):
            read_audit = read_audit_file(
                file, text, models, broken, reading.functions, reading.errors
            )
            if read_audit is not None:
                by_model.setdefault(read_audit.model, []).append(read_audit)
    for at, draft in enumerate(reading.drafts):
        own = by_model.get(draft.model.name)
        if own:
            audits = with_names_apart(
                (*draft.model.audits, *(audit_read.audit for audit_read in own)),
                draft.model.name,
                reading.errors,
            )
            called = (function for audit_read in own for function in audit_read.called)
            model = with_called(replace(draft.model, audits=audits), *called)
            reading.drafts[at] = replace(draft, model=model)


def _read_draft(
    reading: _Reading,
    name: str,
    file: str,
    text: str,
    per_model: Value | None,
    defaults: Value | None,
) -> Draft | None:
    """One model; None when it cannot be read, with the reasons noted."""
    header = other_tools.find_sqlmesh_header(text)
    if header is not None:
        reading.errors.append(findings.model_header(spot_in(file, text, *header)))
        return None
    try:
        front = split_front_matter(file, text)
    except InfoldError as error:
        reading.errors.append(error)
        return None
    before = len(reading.errors)
    page = Page(file, tuple(text.splitlines()), front.above)
    own = read(page, front.text, reading.errors) or Value("a mapping", front.at)
    declared = None
    if own.kind != "a mapping":
        wrong = findings.wrong_type(own.at, key="front matter", wanted="a mapping", found=own.kind)
        reading.errors.append(wrong)
    elif len(reading.errors) == before:
        both = join(own, per_model, reading.errors)
        declared = read_model(name, file, both, defaults, reading.errors)
    try:
        text, filters = replace_run_interval(file, text, front.sql_start)
        if reading.functions.names_broken(text):
            return None
        parsed, called = reading.functions.parse(file, text, front.sql_start)
    except InfoldError as error:
        if other_tools.has_dbt_config(text) and not own.entries:  # the missing keys are in it
            missed = [error for error in reading.errors[before:] if error.slug == "missing-key"]
            reading.errors[before:] = [e for e in reading.errors[before:] if e not in missed]
        reading.errors.extend(error.each)
        return None
    if declared is None:
        return None
    model = with_calls_expanded(declared.model, declared.places, reading.functions, reading.errors)
    if len(reading.errors) > before:
        return None
    model = replace(with_called(model, *called), sql=parsed.text.sql, sql_line=parsed.text.line)
    known = tuple(one.name for one in reading.functions.functions.values())
    return Draft(model, parsed, declared.places, filters=filters, functions=known)


def _claim_name(reading: _Reading, name: str, at: Spot) -> bool:
    """
    Take a name for a table, and the one that it has until it is published.

    False when another table has one of them, with the error noted.
    """
    keys = [table_name(name).lower(), table_name(name).lower() + UNPUBLISHED]
    for key in keys:
        if key in reading.names_taken:
            reading.errors.append(
                findings.duplicate_name(at, name=name, other=reading.names_taken[key])
            )
            return False
    reading.names_taken.update(dict.fromkeys(keys, str(at)))
    return True


def with_calls_expanded(
    model: Model,
    places: Mapping[str, Spot],
    functions: ProjectFunctions,
    errors: list[InfoldError],
) -> Model:
    """A model with the calls in its keys expanded, and the functions that these call."""
    work = _Expansion(Spot(model.place.file), places, functions, errors)
    audits = tuple(map(work.audit, model.audits))
    sessions = work.sessions(model.sessions) if model.sessions else None
    called = with_called(model, *work.called)
    return replace(called, audits=audits, sessions=sessions)


def with_called(model: Model, *called: CalledFunction) -> Model:
    """A model that calls these functions too."""
    if not called:
        return model
    known = {one.name: one for one in (*model.functions, *called)}
    return replace(model, functions=tuple(known[name] for name in sorted(known)))


@dataclass(slots=True)
class _Expansion:
    at: Spot
    places: Mapping[str, Spot]
    functions: ProjectFunctions
    errors: list[InfoldError]
    called: list[CalledFunction] = field(default_factory=list)

    def audit(self, audit: Audit) -> Audit:
        """An audit's condition and expression."""
        if audit.kind is AuditKind.QUERY:
            return audit
        where = self._expanded(audit.at, audit.where)
        return replace(audit, where=where, sql=self._expanded(audit.at, audit.sql))

    def sessions(self, sessions: Sessions) -> Sessions:
        """The owner of a session, and where it ends."""
        user = sessions.user and self._expanded_key("sessions.user", sessions.user)
        identifier = tuple(
            self._expanded_key(f"sessions.identifier.{at}", sql, "sessions.identifier")
            for at, sql in enumerate(sessions.identifier)
        )
        cuts = tuple(cut.expanded(self) for cut in sessions.cuts)
        return replace(sessions, user=user, identifier=identifier, cuts=cuts)

    def written_out(self, sql: EventSql) -> str:
        """As ``CutFunctions``; an item of a list may be known by the list's place alone."""
        keys = [f"sessions.{key}" for key in sql.keys]
        return self._expanded(self._place(*keys, re.sub(r"\.\d+\Z", "", keys[-1])), sql.sql)

    def rule_called(self, call: EventSql) -> tuple[str, FunctionCode] | None:
        """As ``CutFunctions``."""
        try:
            rule = self.functions.rule(self._place(f"sessions.{call.keys[0]}"), call.sql)
        except InfoldError as error:
            self.errors.append(error)
            return None
        self.called.extend(rule.called)
        return rule.sql, rule.code

    def _expanded_key(self, key: str, sql: str, *earlier_keys: str) -> str:
        return self._expanded(self._place(key, *earlier_keys), sql)

    def _place(self, *keys: str) -> Spot:
        return next((self.places[one] for one in keys if one in self.places), self.at)

    def _expanded(self, at: Spot, sql: str) -> str:
        if not sql:
            return sql
        try:
            expanded, called = self.functions.expression(at, sql)
        except InfoldError as error:
            self.errors.append(error)
            return sql
        self.called.extend(called)
        return expanded


def shared_tables(
    project: str, root: Path, targets: Mapping[str, Target], places: Mapping[str, Spot]
) -> Iterator[InfoldError]:
    """An error for each target that cannot have the tables of one before it as it would."""
    yield from _same_namespace(project, root, targets, places)
    yield from _other_storage(root, targets, places)
    yield from _same_warehouse(project, root, targets, places)


def _same_namespace(
    project: str, root: Path, targets: Mapping[str, Target], places: Mapping[str, Spot]
) -> Iterator[InfoldError]:
    """Targets with the namespace and the catalog of one before them."""
    first_targets: dict[tuple[str, str, str], str] = {}
    for name, target in targets.items():
        catalog = target.catalog
        if catalog.is_in_warehouse:
            continue
        namespace, uri = catalog.namespace or project, catalog.uri
        if catalog.type is CatalogType.SQLITE:  # a file has several names
            uri = str(_real(root / uri.removeprefix(SQLITE_FILE)))
        if catalog.type is CatalogType.HIVE:  # which knows no capital letters
            namespace = namespace.lower()
        other = first_targets.setdefault((uri, catalog.warehouse, namespace), name)
        if other != name:
            yield catalog_errors.same_tables(
                places[name], one=other, other=name, namespace=namespace
            )


def _other_storage(
    root: Path, targets: Mapping[str, Target], places: Mapping[str, Spot]
) -> Iterator[InfoldError]:
    """Targets with the warehouse of one before them, in another storage."""
    first_targets: dict[object, str] = {}
    for name, target in targets.items():
        other = first_targets.setdefault(_warehouse(root, target), name)
        if targets[other].storage is not target.storage:
            iceberg = other if target.storage is Storage.DELTA else name
            what = f"the warehouse of target {iceberg}, which is in another storage,"
            yield delta_errors.not_with_delta(
                places[name], what=what, todo="Name another folder: both would use the same ones."
            )


def _same_warehouse(
    project: str, root: Path, targets: Mapping[str, Target], places: Mapping[str, Spot]
) -> Iterator[InfoldError]:
    """
    Targets with the tables of one before them that are protected otherwise.

    They may compute elsewhere and share a ledger, such as one for this machine and one for a
    cluster. A run of the one that is free would rebuild what the other one guards. Two addresses of
    servers may be one ledger, by two roles: whether they are is found out by a run.
    """
    first_targets: dict[object, str] = {}
    for name, target in targets.items():
        if not target.by_folders and not target.catalog.is_in_warehouse:
            continue
        other = targets[first_targets.setdefault((_warehouse(root, target), target.storage), name)]
        its_ledger, own_ledger = (_ledger(project, root, each) for each in (other, target))
        if its_ledger == own_ledger:
            what = _guarded_otherwise(other, target)
        else:
            files = isinstance(its_ledger, Path) and isinstance(own_ledger, Path)
            what = "each a ledger of its own" if files else ""
        if what:
            yield catalog_errors.same_warehouse(
                places[name], one=other.name, other=name, what=what, warehouse=target.warehouse
            )


def _guarded_otherwise(first: Target, second: Target) -> str:
    """In which of the keys that guard tables two targets differ; empty if in none."""
    if first.protected != second.protected:
        return f"only {(first if first.protected else second).name} is protected"
    if first.apply is not second.apply:
        return f"`apply` is {first.apply} in {first.name} and {second.apply} in {second.name}"
    return ""


def _warehouse(root: Path, target: Target) -> object:
    """Where the tables of a target are; equal for two names of one place."""
    if not target.in_store:
        return _real(root / target.warehouse)
    scheme = scheme_of(target.warehouse)
    return SCHEMES.get(scheme, scheme), *split(target.warehouse)


def _ledger(project: str, root: Path, target: Target) -> object:
    """Where the ledger of a target is: a file, or a schema by the address of its server."""
    if target.ledger.startswith(SQLITE_FILE):
        return _real(root / target.ledger.removeprefix(SQLITE_FILE))
    return target.ledger, target.ledger_schema or f"infold_{project}_{target.name}"


def _real(path: Path) -> Path:
    """A path without links; one in a circle, which `Path.resolve` raises an error for, as it is."""
    return Path(os.path.realpath(path))
