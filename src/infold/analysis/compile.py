"""Drafts of models → nodes in dependency order, and everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis import python_models
from infold.analysis.audits import in_order_for_audits
from infold.analysis.bounds.cells import causes_of
from infold.analysis.bounds.known_columns import InputBound
from infold.analysis.cumulative_query import split_cumulative_query, split_versioned_query
from infold.analysis.fingerprint import fingerprint, goes_by_names, normal_text
from infold.analysis.inputs.ingested import (
    ingested_table,
    landed_sources,
    landing_model,
    readers_of,
    tables_named,
    unnamed_columns,
)
from infold.analysis.names.column_types import Types, followed_type
from infold.analysis.names.relation import (
    Block,
    Columns,
    OutputColumn,
    Relation,
    Rows,
    Table,
    blocks_of,
)
from infold.analysis.names.resolve import Resolved, resolve, with_column_spelling
from infold.analysis.names.select_parts import named_windows, window_calls
from infold.analysis.names.subject import Draft, Subject, time_column
from infold.analysis.node_facts import (
    bounded_references,
    declared_bounds,
    input_bounds,
    keeps_unmatched,
    kept_columns,
    lookup_matches,
    output_columns,
    output_types,
    row_keys,
    rule_findings,
    windows_of_rows,
)
from infold.analysis.overrides import (
    BY_SLUG,
    REACH,
    RemainingFindings,
    apply_overrides,
    key_of_override,
    offer_overrides,
)
from infold.analysis.sessions_query import session_input, split_sessions_query
from infold.analysis.sql.functions import BUILT_IN, GRAMMAR, is_python
from infold.analysis.sql.text import CALL, SPAN, Text
from infold.analysis.times.durations import MONTHS
from infold.analysis.times.shape import Grain
from infold.core.model import Kind, Model, Override, Source, any_result_will_do
from infold.core.project import ALL_COLUMNS, Bound, Input, Node
from infold.core.queries import SessionsQuery
from infold.messages import findings, function_findings
from infold.messages.errors import InfoldError, Spot

# A construct inside one output of the outermost SELECT decides about that column alone. Anywhere
# else (a filter, a join, a CTE, a view) it may decide about rows, so about all columns.

_END = (TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.LIMIT)
_CLAUSES_OVER_ROWS = ("distinct", "limit", "offset", "qualify")
"""Clauses by which a value decides about rows."""


def undetermined_columns(subject: Subject, remaining: RemainingFindings) -> tuple[str, ...]:
    """These columns of a model; what Spark alone finds may be anywhere in it."""
    model = subject.model
    if model.kind not in (Kind.TABLE, Kind.INCREMENTAL_TABLE) or not any_result_will_do(model):
        return ()
    block = subject.relation
    if not isinstance(block, Block) or remaining.of_views or not remaining.undetermined:
        return ALL_COLUMNS
    if any(block.node.args.get(clause) for clause in _CLAUSES_OVER_ROWS):
        return ALL_COLUMNS
    outputs = list(_outputs(block, subject.text.tokens))
    names: dict[str, None] = {}
    for error in remaining.undetermined:
        place = error.at and (error.at.file, error.at.line, error.at.column)
        inside = [
            (position, output)
            for position, output, tokens in outputs
            if any(
                place == (at.file, at.line, at.column)
                for at in map(subject.text.spot_of_token, tokens)
            )
        ]
        if not inside or any(_decides(block, *one) for one in inside):
            return ALL_COLUMNS
        names.update((output.name, None) for _, output in inside)
    timeseries = model.timeseries
    if timeseries and {name.lower() for name in names} & {timeseries.partition_column.lower()}:
        return ALL_COLUMNS
    return tuple(dict.fromkeys(output.name for _, output, _ in outputs if output.name in names))


def _outputs(
    block: Block, tokens: Sequence[Token]
) -> Iterator[tuple[int, OutputColumn, Sequence[Token]]]:
    """The outputs of the outermost SELECT that are written out: position, column and tokens."""
    written = list(block.node.expressions)
    parts = list(_parts(tokens))
    if block.outputs is None or len(parts) != len(written):
        return
    for position, (node, part) in enumerate(zip(written, parts, strict=True), 1):
        for output in block.outputs:
            if output.node is node or output.node is node.this:
                yield position, output, part


def _parts(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The tokens of each output of the outermost SELECT."""
    depth, begun = 0, -1
    for i, token in enumerate(tokens):
        kind = token.token_type
        depth += (kind in (TokenType.L_PAREN, TokenType.L_BRACKET)) - (
            kind in (TokenType.R_PAREN, TokenType.R_BRACKET)
        )
        if depth:
            continue
        if begun >= 0 and kind in (TokenType.COMMA, *_END):
            yield tokens[begun:i]
            begun = i + 1
            if kind in _END:
                return
        elif begun < 0 and kind is TokenType.SELECT:
            begun = i + 1
    if begun >= 0:
        yield tokens[begun:]


def _decides(block: Block, position: int, output: OutputColumn) -> bool:
    """Whether an output decides about more than its own column: it is named, or grouped by."""
    if any(node is output.node for _, node in block.aliases.items()):
        return True
    group = block.node.args.get("group")
    if group is None:
        return False
    keys = group.expressions
    return bool(group.args.get("all")) or any(
        isinstance(key, exp.Literal) and key.this == str(position) for key in keys
    )


# A view stores no rows, so it cannot differ from a rebuild; a table that reads it can. So the
# author of a table vouches for the views that it reads too. A model that folds cannot be allowed:
# it relies on stored rows being what a rebuild would find.

_ANY = Override.NONDETERMINISTIC


@dataclass(slots=True)
class NondeterministicViews:
    """The nondeterministic constructs in views, and their readers that do not allow them."""

    findings: dict[str, tuple[InfoldError, ...]] = field(default_factory=dict)
    """By view, those of the views that it reads included."""
    readers: dict[str, list[tuple[str, Kind]]] = field(default_factory=dict)
    """By view, the models that read it and vouch for nothing."""
    overridden: set[str] = field(default_factory=set)
    """The views with a reader that allows their nondeterminism."""

    def put_off(self, subject: Subject, remaining: RemainingFindings) -> RemainingFindings:
        """The findings of a model, those of a view put off until something reads it."""
        views = [name for name in subject.tables_read if self.findings.get(name)]
        if subject.model.kind.is_view:
            own = tuple(error for error in remaining.errors if BY_SLUG.get(error.slug) is _ANY)
            read = tuple(error for name in views for error in self.findings[name])
            self.findings[subject.model.name] = (*own, *read)
            return replace(remaining, errors=tuple(e for e in remaining.errors if e not in own))
        if not views:
            return remaining
        may = subject.model.kind in (Kind.INCREMENTAL_TABLE, Kind.TABLE)
        if may and _ANY in subject.model.overrides:
            self.overridden.update(views)
            used = tuple(sorted({*remaining.overrides_used, _ANY}))
            return replace(remaining, overrides_used=used, of_views=True)
        for name in views:
            self.readers.setdefault(name, []).append((subject.model.name, subject.model.kind))
        return remaining

    def unanswered(self) -> list[InfoldError]:
        """What nobody vouches for, or not all that read it do, each once."""
        passed = {id(error) for view in self.overridden for error in self.findings[view]}
        unanswered: dict[int, tuple[InfoldError, dict[str, Kind]]] = {}
        for view, errors in self.findings.items():
            for error in errors:
                readers = self.readers.get(view, [])
                if readers or id(error) not in passed:
                    unanswered.setdefault(id(error), (error, {}))[1].update(readers)
        for error, by in unanswered.values():
            error.facts = (*error.facts, *_reader_facts(by))
        return [error for error, _ in unanswered.values()]


def _reader_facts(readers: Mapping[str, Kind]) -> tuple[tuple[str, str], ...]:
    """Who reads a view without vouching for it, and whether that helps."""
    if not set(readers.values()) <= {Kind.INCREMENTAL_TABLE, Kind.TABLE}:
        return (("read by", ", ".join(readers)),)
    where = f"in {', '.join(readers)}" if readers else "in what reads it"
    is_whole = {kind is Kind.TABLE for kind in readers.values()}
    override = f"{key_of_override(_ANY, whole=is_whole == {True})}, {where}"
    if len(is_whole) != 1:
        override += ", with `enabled: false` where it is built whole"
    return (*((("read by", ", ".join(readers)),) if readers else ()), ("or vouch", override))


@dataclass(frozen=True, slots=True)
class CompiledModels:
    """The nodes that could be made, in dependency order, and the errors."""

    nodes: tuple[Node, ...]
    errors: tuple[InfoldError, ...]


def compile_models(
    drafts: Sequence[Draft],
    sources: Mapping[str, Source],
    broken: Iterable[str] = (),
    *,
    downgrade: bool = False,
) -> CompiledModels:
    """
    Look up, order and check all models.

    ``broken`` are names of models that could not be read; what reads them is checked as far as
    that goes. With ``downgrade``, models that are refused because they cannot be built cell by
    cell are no errors, but nodes that say why.
    """
    work = _Compiler(sources, downgrade)
    for source in sources.values():
        work.add_source(source)
    for name in broken:
        work.tables[name.lower()] = Table(name, None)
    names = {draft.model.name.lower(): draft for draft in drafts}
    reads = {
        name: [table.lower() for table in tables_named(draft.parsed.tree) if table.lower() in names]
        for name, draft in names.items()
    }
    order, cycles = in_dependency_order(reads)
    for cycle in cycles:
        first = names[cycle[0]]
        shown = [names[name].model.name for name in (*cycle, cycle[0])]
        at = _first_naming(first, cycle[1 % len(cycle)])
        work.errors.append(findings.dependency_cycle(at, path=" -> ".join(shown)))
    for name in order:
        work.tables.setdefault(name, Table(names[name].model.name, None))
    for source in landed_sources(drafts, sources):
        work.add(
            landing_model(
                source.without_columns(unnamed_columns(source, readers_of(drafts, source)))
            )
        )
    in_cycle = {name for cycle in cycles for name in cycle}
    for name in order:
        if name not in in_cycle:
            try:
                work.add(names[name])
            except RecursionError:
                work.errors.append(findings.too_deep(names[name].parsed.text.spot(0)))
    return CompiledModels(
        in_order_for_audits(tuple(work.nodes.values())),
        (*work.errors, *work.nondeterministic.unanswered()),
    )


def landed_node(source: Source) -> Node:
    """The model that takes in a source as it is, compiled."""
    work = _Compiler({source.name: source})
    work.add_source(source)
    work.add(landing_model(source))
    return work.nodes[source.name]


@dataclass(slots=True)
class _Compiler:
    sources: Mapping[str, Source]
    downgrade: bool = False
    tables: dict[str, Table] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    views: dict[str, tuple[str, str]] = field(default_factory=dict)
    kept_columns: dict[str, Mapping[str, Grain]] = field(default_factory=dict)
    row_keys: dict[str, Rows] = field(default_factory=dict)
    types: dict[str, Types] = field(default_factory=dict)
    errors: list[InfoldError] = field(default_factory=list)
    nondeterministic: NondeterministicViews = field(default_factory=NondeterministicViews)
    opaque: dict[str, str] = field(default_factory=dict)
    """Views in Python, and views that read them, each with such a view in Python."""

    def add_source(self, source: Source) -> None:
        """Make the columns of a source known."""
        columns = tuple(column.name for column in source.columns) or None
        known = {column.name.lower(): followed_type(column.type) for column in source.columns}
        self.types[source.name] = {name: of for name, of in known.items() if of is not None}
        self.tables[source.name.lower()] = Table(source.name, columns)

    def add(self, draft: Draft) -> None:
        """Check one model after its inputs, and make its node."""
        if draft.model.python is not None:
            self._add_python(draft)
            return
        model, text = draft.model, draft.parsed.text
        extra = model.sessions.visible_columns if model.sessions else ()
        resolved = resolve(text, draft.parsed.tree, self.tables, extra)
        subject = Subject(
            draft,
            resolved.relation,
            self.sources,
            self.nodes,
            self.kept_columns,
            self.row_keys,
            self.types,
        )
        subject.tables_read = tuple(dict.fromkeys(r.name for r in resolved.references))
        subject.inputs_are_right = all(name in self.nodes for name in subject.tables_read)
        columns = output_columns(model, resolved)
        remaining = RemainingFindings(
            (
                *unreadable_by_spark(text, draft.parsed.tree, resolved.relation, draft.functions),
                *resolved.errors,
            )
        )
        query = None
        if opaque := self._opaque_view(subject):
            at = text.spot(0, len(text.tokens[0].text))
            remaining = RemainingFindings((_reads_opaque(subject, at, opaque),))
        if not remaining.errors:
            query, errors = self._apply_rules(subject)
            remaining = self.nondeterministic.put_off(subject, apply_overrides(subject, errors))
            offer_overrides(subject, remaining.errors, windows_of_rows(subject))
        # An error in a PIVOT is found in each of its columns.
        errors = list({str(error): error for error in remaining.errors}.values())
        downgraded: tuple[str, ...] = ()
        if self.downgrade and errors and all(_can_be_downgraded(model, error) for error in errors):
            downgraded = tuple(str(error) for error in errors)
            errors = []
        misnamed = any(error.slug in _MISNAMED for error in errors)
        self._add_table(model, None if misnamed else columns, resolved)
        if errors:
            self.errors.extend(errors)
            return
        self.kept_columns[model.name] = kept_columns(subject)
        self.row_keys[model.name] = row_keys(subject, remaining)
        self.types[model.name] = output_types(subject)
        source = self._ingested_source(model, resolved)
        plain = source is not None and source.name == resolved.references[0].name
        unread = unnamed_columns(source, [draft]) if source and plain else ()
        proven = [] if remaining.uses_declared_bounds else input_bounds(subject)
        bounds = [*proven, *remaining.declared_bounds] if not downgraded else []
        inputs = self._inputs(resolved, source, bounds)
        if downgraded:
            inputs = tuple(replace(entry, time_column=None) for entry in inputs)
        words = normal_text(text, resolved.references, self.views)
        names = self._names_read(draft, resolved)
        read = source.without_columns(unread) if source else None
        vouched_and_bounds = remaining.overrides_used, declared_bounds(model, remaining)
        of_query = [*words.words_of(draft.parsed.tree), *names]
        print_ = fingerprint(model, of_query, columns, read, *vouched_and_bounds)
        if model.kind.is_view:
            exact = fingerprint(model, [*words.to_the_letter, *names], columns, None)
            self.views[model.name] = (print_, exact)
        self.nodes[model.name] = Node(
            model=with_column_spelling(model, columns or ()),
            inputs=inputs,
            references=bounded_references(resolved.references, bounds),
            fingerprint=print_,
            columns=columns or (),
            source=source.name if source else None,
            unread_columns=unread,
            query=query,
            grouped=split_cumulative_query(subject).query
            if model.kind is Kind.CUMULATIVE_AGGREGATE
            else None,
            versions=split_versioned_query(subject).query
            if model.kind is Kind.SCD_TYPE_2
            else None,
            landed=draft.landed,
            overrides_used=remaining.overrides_used,
            undetermined=undetermined_columns(subject, remaining),
            bounds_declared=remaining.uses_declared_bounds,
            downgraded=downgraded,
            matches=lookup_matches(subject, source) if not downgraded else (),
            filters=draft.filters,
            fills_cells=not downgraded and keeps_unmatched(subject),
        )

    def _add_python(self, draft: Draft) -> None:
        """Check a model in Python as far as its declaration goes, and make its node."""
        model, text = draft.model, draft.parsed.text
        columns = tuple(name for name, _ in model.python.columns) if model.python else ()
        # Readers see a table: nothing is known of the rows of a view.
        self.tables[model.name.lower()] = Table(model.name, columns)
        errors = [
            *python_models.unknown_tables(draft, self.tables),
            *python_models.missing_columns(draft),
        ]
        if errors:
            self.errors.extend(errors)
            return
        resolved = resolve(text, draft.parsed.tree, self.tables, ())
        subject = Subject(draft, resolved.relation, self.sources, self.nodes)
        subject.tables_read = tuple(dict.fromkeys(r.name for r in resolved.references))
        source = self._ingested_source(model, resolved)
        known = {*self.nodes, *([source.name] if source is not None else [])}
        if not all(name in known for name in subject.tables_read):
            return  # what it reads is wrong
        grouped, errors = None, [*resolved.errors, *python_models.wrong_bounds(subject)]
        if model.kind in python_models.FOLDED:
            if opaque := self._opaque_view(subject):
                at = draft.place(f"inputs.{subject.tables_read[0]}")
                errors.append(_reads_opaque(subject, at, opaque))
            else:
                grouped, wrong = python_models.folded_query(subject)
                errors += wrong
        if errors:
            self.errors.extend(errors)
            return
        by_cells = model.kind.is_by_cell
        bounds = python_models.declared_input_bounds(subject) if by_cells else ()
        vouched = python_models.vouched(subject)
        self.kept_columns[model.name] = python_models.partition_grain(subject)
        types = {name.lower(): followed_type(type_) for name, type_ in _python_columns(model)}
        self.types[model.name] = {name: of for name, of in types.items() if of is not None}
        self.row_keys[model.name] = python_models.row_keys(subject)
        plain = source is not None and source.name == resolved.references[0].name
        unread = unnamed_columns(source, [draft]) if source and plain else ()
        words = normal_text(text, resolved.references, self.views)
        of_query = [*words.words_of(draft.parsed.tree), *self._names_read(draft, resolved)]
        declared = model.incremental.bounds if model.incremental and by_cells else ()
        read = source.without_columns(unread) if source else None
        print_ = fingerprint(model, of_query, columns, read, vouched, declared)
        if model.kind.is_view:
            self.views[model.name] = (print_, print_)
            self.opaque[model.name] = model.name
        self.nodes[model.name] = Node(
            model=with_column_spelling(model, columns),
            inputs=self._inputs(resolved, source, bounds),
            references=resolved.references,
            fingerprint=print_,
            columns=columns,
            source=source.name if source else None,
            unread_columns=unread,
            grouped=grouped,
            overrides_used=vouched,
            undetermined=ALL_COLUMNS if vouched else (),
            bounds_declared=by_cells,
            matches=lookup_matches(subject, source) if model.kind in python_models.FOLDED else (),
        )

    def _opaque_view(self, subject: Subject) -> str:
        """A view in Python that a model reads where it may not; views that read one are noted."""
        views = [self.opaque[name] for name in subject.tables_read if name in self.opaque]
        kind = subject.model.kind
        if views and kind.is_view:
            self.opaque[subject.model.name] = views[0]
        return views[0] if views and kind not in (Kind.VIEW, Kind.TABLE) else ""

    def _names_read(self, draft: Draft, resolved: Resolved) -> list[str]:
        """The names of all columns of what a query reads, where they decide about its rows."""
        if not goes_by_names(draft.parsed.tree):
            return []
        read = dict.fromkeys(reference.name.lower() for reference in resolved.references)
        return [f".{name}" for one in read for name in self.tables[one].columns or ()]

    def _apply_rules(self, subject: Subject) -> tuple[SessionsQuery | None, list[InfoldError]]:
        errors = rule_findings(subject)
        if sum(error.slug in REACH for error in errors) > 1:
            # Consequences of another finding are left out, unless they have a cause of their own.
            causes = [
                e for e in causes_of(subject, lambda: rule_findings(subject)) if e.slug in REACH
            ]
            if causes:
                errors = [*(e for e in errors if e.slug not in REACH), *causes]
        if subject.model.kind is not Kind.SESSIONS:
            return None, errors
        events = session_input(subject)
        errors.extend(events.errors)
        parts = split_sessions_query(
            subject, events.time_column, events.key, events.name, unique=events.unique
        )
        errors.extend(parts.errors)
        return parts.query and replace(parts.query, passed_columns=events.passed_columns), errors

    def _add_table(self, model: Model, columns: Columns, resolved: Resolved) -> None:
        view = resolved.relation if model.kind.is_view else None
        if model.name.lower() not in self.sources:
            self.tables[model.name.lower()] = Table(model.name, columns, view)

    def _ingested_source(self, model: Model, resolved: Resolved) -> Source | None:
        main = ingested_table(resolved.relation) if model.kind is Kind.EVENTS else None
        return self.sources.get(main) if main is not None else None

    def _inputs(
        self, resolved: Resolved, source: Source | None, bounds: Sequence[InputBound]
    ) -> tuple[Input, ...]:
        inputs: dict[str, Input] = {}
        if source is not None:
            inputs[source.name] = Input(source.name, source.event_time_column)
        for reference in resolved.references:
            node = self.nodes.get(reference.name)
            if node is None and reference.name in self.sources:  # what it takes in, of a view
                origin = self.sources[reference.name]
                inputs.setdefault(origin.name, Input(origin.name, origin.event_time_column))
            if node is None or reference.name in inputs:
                continue
            if node.model.kind.is_view:
                inputs.update((entry.name, entry) for entry in node.inputs)
            else:
                inputs[node.name] = Input(node.name, time_column(node))
        known: dict[str, set[Bound]] = {}
        for entry in bounds:
            known.setdefault(entry.name, set()).add(entry.bound)
        return tuple(
            replace(entry, bounds=tuple(sorted(known.get(entry.name, entry.bounds))))
            for entry in inputs.values()
        )


def _python_columns(model: Model) -> tuple[tuple[str, str], ...]:
    return model.python.columns if model.python is not None else ()


def _reads_opaque(subject: Subject, at: Spot, view: str) -> InfoldError:
    model, kind = subject.model.name, subject.model.kind.value
    return function_findings.opaque_view(at, model=model, view=view, kind=kind)


def _can_be_downgraded(model: Model, error: InfoldError) -> bool:
    """Whether a model with this finding can be built whole."""
    return model.kind.is_by_cell and (error.slug in REACH or error.slug in BY_SLUG)


_MISNAMED = ("session-column", "unnamed-column")
"""After these findings, readers of the model would have findings about its unnamed columns."""


def _first_naming(draft: Draft, name: str) -> Spot:
    """Where a model names a table for the first time."""
    if draft.model.python is not None:
        named = (one.table for one in draft.model.python.inputs if one.table.lower() == name)
        return draft.place(f"inputs.{next(named, name)}")
    for table in draft.parsed.tree.find_all(exp.Table):
        if table.name.lower() == name and not table.args.get("db"):
            return draft.parsed.text.spot_of(table.this)
    return draft.parsed.text.spot(0)


def in_dependency_order(
    reads: Mapping[str, Sequence[str]],
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Names with what they read before them, and each circle once."""
    order: list[str] = []
    cycles: list[tuple[str, ...]] = []
    state: dict[str, int] = {}
    for root in sorted(reads):
        path: list[str] = []
        todo: list[tuple[str, bool]] = [(root, False)]
        while todo:
            name, done = todo.pop()
            if done:
                path.pop()
                state[name] = 2
                order.append(name)
            elif state.get(name) == 1:
                cycles.append(tuple(path[path.index(name) :]))
            elif name not in state:
                state[name] = 1
                path.append(name)
                todo.append((name, True))
                todo.extend((read, False) for read in sorted(set(reads[name]), reverse=True))
    return order, cycles


# A query is parsed by another parser than Spark's. So every form that the two read differently is
# refused: names that are made at run time, programs, table functions that read files, clauses and
# functions that Spark does not have.

_PARAMETERS = (exp.Parameter, exp.Placeholder, exp.SessionParameter)


def unreadable_by_spark(
    text: Text, tree: exp.Expr, relation: Relation, functions: Sequence[str] = ()
) -> Iterator[InfoldError]:
    """
    Everything in a query that Spark has no such form of, or that hides what is read.

    ``functions`` are the project's, whose calls are expanded already.
    """
    yield from _ambiguous_words(text)
    for block in blocks_of(relation):
        if isinstance(block, Block):
            yield from _mixed_frames(block)
    for node in tree.walk():
        name = node.meta.get(CALL) if node.meta else None
        if name is not None:
            yield from _refused_calls(text, node, str(name), functions)
        if isinstance(node, exp.QueryTransform):
            spot = text.spot_of_token(text.token_after(-1, TokenType.USING) or text.tokens[0])
            yield findings.unsupported_sql(spot, what="TRANSFORM … USING, which runs a program")
        elif isinstance(node, _PARAMETERS):
            yield findings.unsupported_sql(text.spot_of(node), what="a parameter")


def _ambiguous_words(text: Text) -> Iterator[InfoldError]:
    """Clauses of other dialects, by their words."""
    for token, behind in pairwise(text.tokens):
        words = f"{token.text} {behind.text}".upper()
        if token.token_type is TokenType.QUALIFY:
            clause = "QUALIFY"
            todo = "Number rows in a subquery, and ask for the number outside of it."
        elif words == "BY NAME" and token.token_type is not TokenType.STRING:
            clause, todo = words, "Name the columns of both sides in one order."
        elif words == "DISTINCT ON":
            clause, todo = words, "Number rows in a subquery, and ask for the first outside of it."
        else:
            continue
        yield findings.not_in_spark(text.spot_of_token(token), what=clause, instead=todo)


def _refused_calls(
    text: Text, node: exp.Expr, name: str, functions: Sequence[str]
) -> Iterator[InfoldError]:
    """A call of a function, by the name that is written."""
    i = text.token_index(node.meta[SPAN][0])
    spot = text.spot_of_token(text.tokens[i])
    if name.lower() == "identifier":
        yield findings.unsupported_sql(spot, what="IDENTIFIER(…), a name that is made of a text")
    elif i > 0 and text.tokens[i - 1].text == ".":
        yield findings.unsupported_sql(spot, what="a function of a catalog")
    elif name.lower() not in BUILT_IN | GRAMMAR and not is_python(name):
        yield findings.unknown_function(spot, name=name, known=[*functions, *BUILT_IN])


def _mixed_frames(block: Block) -> Iterator[InfoldError]:
    """RANGE frames from a number of months to a number of days: Spark takes one kind for both."""
    for window in (*window_calls(block), *named_windows(block).values()):
        spec = window.args.get("spec")
        if not isinstance(spec, exp.WindowSpec) or str(spec.args.get("kind")).upper() != "RANGE":
            continue
        kinds = {
            unit.name.upper().removesuffix("S") in MONTHS
            for end in (spec.args.get("start"), spec.args.get("end"))
            if isinstance(end, exp.Interval) and isinstance(unit := end.args.get("unit"), exp.Var)
        }
        if len(kinds) > 1:
            todo = "Give both ends in days and shorter units, or both in months and longer ones."
            yield findings.not_in_spark(
                block.text.spot_of(window), what="a RANGE frame of months and days", instead=todo
            )
