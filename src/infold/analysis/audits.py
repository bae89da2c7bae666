"""
Audits checked against the columns of their model, before anything runs.

A SELECT of bad rows is judged on the rows that a step writes if each of its bad rows follows from
one row of the model: one SELECT … FROM the model, joined with others, WHERE … . Then the bad rows
of all rows are those of the written rows and those of the others, so rows that were judged when
they were written need not be read again. Any other SELECT is judged on the whole table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from infold.analysis.names.relation import Block, Relation, Table
from infold.analysis.names.resolve import Resolved, resolve
from infold.analysis.names.select_parts import calls_over_rows
from infold.analysis.names.subject import Draft, Subject
from infold.analysis.rules import clock, random
from infold.analysis.sql.parse import Parsed, parse
from infold.core.audits import Audit, AuditKind, NamedTable, Within
from infold.core.model import Source
from infold.core.project import Node
from infold.core.queries import quoted
from infold.messages import audit_findings, findings
from infold.messages.errors import InfoldError, Spot


def check_audits(
    nodes: Sequence[Node], sources: Mapping[str, Source], errors: list[InfoldError]
) -> tuple[Node, ...]:
    """The nodes with their audits looked up; mistakes are noted in ``errors``."""
    if not any(node.model.audits for node in nodes):
        return tuple(nodes)
    checks = _Checks({node.name.lower(): node for node in nodes}, sources, errors)
    with_audits = (
        replace(node, model=replace(node.model, audits=tuple(checks.of_node(node))))
        if node.model.audits
        else node
        for node in nodes
    )
    return in_order_for_audits(tuple(with_audits))


def in_order_for_audits(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes in an order in which also the tables that audits read come before their readers."""
    if not any(node.model.audits for node in nodes):
        return tuple(nodes)
    by_name = {node.name: node for node in nodes}
    below = _Below(nodes)
    for node in nodes:
        for audit in node.model.audits:
            for name in audit.reads(node.name):
                if name in by_name:
                    below.may_read(node.name, name)
    order: dict[str, Node] = {}
    todo = [(node, False) for node in reversed(nodes)]
    while todo:
        node, done = todo.pop()
        if done:
            order.setdefault(node.name, node)
        elif node.name not in order:
            inputs = (name for name in below.reads[node.name] if name != node.name)
            first = [by_name[name] for name in inputs if name in by_name]
            todo.append((node, True))
            todo.extend((one, False) for one in reversed(first) if one.name not in order)
    return tuple(order.values())


class _Below:
    """Which models come before which: by queries, and by audits where that makes no circle."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.reads = {node.name: list(node.reads) for node in nodes}

    def may_read(self, reader: str, name: str) -> bool:
        """Whether an audit of ``reader`` may read a model; from now on it comes after it then."""
        reached, todo = {name}, [name]
        while todo:
            for table in self.reads.get(todo.pop(), ()):
                if table not in reached:
                    reached.add(table)
                    todo.append(table)
        if reader in reached:
            return False
        self.reads[reader].append(name)
        return True


@dataclass(slots=True)
class _Checks:
    nodes: Mapping[str, Node]
    sources: Mapping[str, Source]
    errors: list[InfoldError]
    below: _Below | None = None

    def __post_init__(self) -> None:
        self.below = _Below(list(self.nodes.values()))

    def of_node(self, node: Node) -> Iterator[Audit]:
        """The audits of one model that are right."""
        for audit in node.model.audits:
            before = len(self.errors)
            checked = self._checked(node, audit)
            if len(self.errors) == before:
                yield checked

    def _checked(self, node: Node, audit: Audit) -> Audit:
        """One audit with the spelling of its columns, and the tables that it reads."""
        if audit.kind is AuditKind.QUERY:
            return self._query(node, audit)
        columns = self._columns(node, audit.columns, audit)
        for text in filter(None, (audit.where, audit.sql)):
            self._predicate(node, audit, text)
        if audit.kind is AuditKind.RELATIONSHIP:
            audit = self._relationship(node, audit)
        if audit.kind is AuditKind.FRESHNESS and not columns:
            columns = self._time_column(node, audit)
        in_cells = audit.kind is AuditKind.NO_GAPS
        if in_cells and node.model.granularity is None:
            self.errors.append(
                audit_findings.needs_cells(audit.at, kind=audit.kind, model=node.name)
            )
        within = Within.TABLE if node.model.granularity is None else audit.within
        return replace(audit, columns=columns, within=within)

    def _columns(self, node: Node, names: Sequence[str], audit: Audit) -> tuple[str, ...]:
        """The names as the model spells them; one that it has not is noted."""
        if not node.columns:
            return tuple(names)
        known = {name.lower(): name for name in node.columns}
        for name in names:
            if name.lower() not in known:
                self.errors.append(
                    findings.no_such_column(
                        audit.at, key=audit.kind.value, column=name, known=node.columns
                    )
                )
        return tuple(known.get(name.lower(), name) for name in names)

    def _time_column(self, node: Node, audit: Audit) -> tuple[str, ...]:
        series = node.model.timeseries
        if series is not None:
            return (series.event_time_column,)
        self.errors.append(
            audit_findings.nothing_asked(audit.at, kind=audit.kind, keys="`column`, a time")
        )
        return ()

    def _relationship(self, node: Node, audit: Audit) -> Audit:
        other = self._other_model(node, audit, audit.to)
        if other is None:
            return audit
        if len(audit.columns) != len(audit.to_columns):
            error = audit_findings.unequal_columns(
                audit.at,
                columns=audit.columns,
                others=audit.to_columns,
                model=node.name,
                to=other.name,
            )
            self.errors.append(error)
        return replace(
            audit, to=other.name, to_columns=self._columns(other, audit.to_columns, audit)
        )

    def _other_model(self, node: Node, audit: Audit, name: str) -> Node | None:
        """Another model that an audit reads; None, with an error noted, where it may not."""
        table = self.nodes.get(name.lower())
        if table is None:
            by_lower = {source.lower(): source for source in self.sources}
            if name.lower() in by_lower:
                self.errors.append(audit_findings.source_in_audit(audit.at, name=name))
            else:
                known = [one.name for one in self.nodes.values()]
                self.errors.append(findings.unknown_table(audit.at, name=name, known=known))
            return None
        assert self.below is not None
        if table.name != node.name and not self.below.may_read(node.name, table.name):
            self.errors.append(
                audit_findings.audit_in_a_circle(audit.at, model=node.name, other=table.name)
            )
            return None
        return table

    def _predicate(self, node: Node, audit: Audit, text: str) -> None:
        """Check an expression over one row."""
        sql = f"SELECT (\n{text}\n) AS ok FROM {quoted(node.name)}"
        try:
            parsed = parse(audit.file, sql)
            resolved = resolve(parsed.text, parsed.tree, self._tables())
        except InfoldError as error:
            self.errors.append(_placed(error, audit.at))
            return
        key = audit.kind.value if text == audit.sql else "where"
        excess = _beyond_one_row(resolved.relation)
        if resolved.errors:
            self.errors.append(_placed(resolved.errors[0], audit.at))
        elif excess:
            self.errors.append(audit_findings.not_of_one_row(audit.at, key=key, what=excess))
        else:
            self._refuse_changing(node, audit, parsed, resolved, placed=False)

    def _query(self, node: Node, audit: Audit) -> Audit:
        """Check a SELECT of bad rows."""
        try:
            above = "\n" * (audit.sql_line - 1)
            parsed = parse(audit.file, above + audit.sql, len(above))
            resolved = resolve(parsed.text, parsed.tree, self._tables())
        except InfoldError as error:
            self.errors.append(error)
            return audit
        if resolved.errors:
            self.errors.extend(resolved.errors)
            return audit
        self._refuse_changing(node, audit, parsed, resolved, placed=True)
        for name in dict.fromkeys(reference.name for reference in resolved.references):
            if name != node.name:
                self._other_model(node, audit, name)
        own = sum(reference.name == node.name for reference in resolved.references)
        if not own:
            at = parsed.text.spot_of_token(parsed.text.tokens[0])
            self.errors.append(audit_findings.reads_no_model(at, model=node.name))
        tables = (NamedTable(one.name, one.start, one.end) for one in resolved.references)
        by_row = own == 1 and _is_by_row(resolved.relation, node.name)
        return replace(audit, tables=tuple(tables), by_row=by_row)

    def _tables(self) -> Mapping[str, Table]:
        tables = {
            name: Table(source.name, tuple(column.name for column in source.columns) or None)
            for name, source in ((one.lower(), source) for one, source in self.sources.items())
        }
        tables |= {name: Table(one.name, one.columns or None) for name, one in self.nodes.items()}
        return tables

    def _refuse_changing(
        self, node: Node, audit: Audit, parsed: Parsed, query: Resolved, *, placed: bool
    ) -> None:
        """Note a call of a clock, or of chance."""
        subject = Subject(Draft(node.model, parsed), query.relation, self.sources, dict(self.nodes))
        for error in (*clock.check(subject), *random.check(subject)):
            at = error.at or audit.at
            call = at.text[at.column - 1 :][: at.width] or "this"
            at = at if placed else audit.at
            self.errors.append(audit_findings.changing_audit(at, call=call))
            return


def _placed(error: InfoldError, at: Spot) -> InfoldError:
    """An error in a piece of SQL, at the place of the audit that has it."""
    facts = tuple((name, text) for name, text in error.facts if name != "at")
    return InfoldError(error.slug, error.what, facts, error.todo, error.exit_code, at)


_CLAUSES = ("where", "group", "having", "qualify", "distinct", "limit", "offset", "windows")


def _beyond_one_row(relation: Relation) -> str:
    """What makes a predicate more than one value of each row; empty if nothing does."""
    if not isinstance(relation, Block) or len(relation.node.expressions) != 1:
        return "more than one expression"
    if not isinstance(relation.node.expressions[0].unalias(), exp.Paren):
        return "a bracket too many"  # it would close the one that is put around it
    if any(relation.node.args.get(key) for key in _CLAUSES) or len(relation.entries) != 1:
        return "more than an expression"
    if relation.nested_queries:
        return "a subquery"
    return next((what for what, _ in calls_over_rows(relation)), "")


def _is_by_row(relation: Relation, model: str) -> bool:
    """Whether each row of a SELECT that names the model once comes from one row of the model."""
    if not isinstance(relation, Block) or relation.ctes or not relation.entries:
        return False
    if any(relation.node.args.get(key) for key in _CLAUSES if key != "where"):
        return False
    first = relation.entries[0]
    if not isinstance(first.relation, Table) or first.relation.name != model:
        return False
    if first.node.args.get("sample") or any(True for _ in calls_over_rows(relation)):
        return False
    return all(_keeps_rows_apart(entry.join) for entry in relation.entries[1:])


def _keeps_rows_apart(join: exp.Join | None) -> bool:
    """Whether a join gives rows that follow from one row at its left."""
    if join is None:
        return False
    return join.side.upper() in ("", "LEFT") and join.kind.upper() in (
        "",
        "INNER",
        "OUTER",
        "CROSS",
        "SEMI",
        "ANTI",
    )
