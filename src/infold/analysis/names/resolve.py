"""
Looks up every name of a query: tables, CTEs, aliases, columns.

A CTE hides a table of its name, but not inside its own definition. A column is looked for in the
entries of FROM, then among the SELECT's own aliases where Spark allows that, then in the SELECT
around it. A name that is not found is an error with the nearest right names; all are collected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.names.relation import (
    Block,
    Columns,
    FromEntry,
    Origin,
    OtherRows,
    OutputColumn,
    Relation,
    RenamedColumns,
    SetOperation,
    Table,
    own_nodes,
)
from infold.analysis.sql.functions import TABLE_FUNCTIONS, is_aggregate
from infold.analysis.sql.text import CALL, SPAN, Text, span_of
from infold.core.model import Kind, Model
from infold.core.project import Reference
from infold.messages import findings
from infold.messages.errors import InfoldError

_ALIASES_SEEN = ("group", "having", "order", "qualify", "sort", "cluster")
"""The clauses in which Spark lets all of a SELECT's own aliases be used."""

_GENERATORS = (exp.Explode, exp.ExplodeOuter, exp.Posexplode, exp.PosexplodeOuter, exp.Inline)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A query with its names looked up, where tables are named, and what was wrong."""

    relation: Relation
    references: tuple[Reference, ...]
    errors: tuple[InfoldError, ...]


def resolve(
    text: Text, tree: exp.Expr, known: Mapping[str, Table], extra: Sequence[str] = ()
) -> Resolved:
    """
    The relation of a parsed query; ``known`` are all tables by lower-case name.

    ``extra`` are columns that every SELECT sees without reading them from anywhere.
    """
    resolver = _Resolver(text, known, frozenset(extra))
    relation = resolver.query(tree, {}, None)
    references = tuple(sorted(set(resolver.references), key=lambda reference: reference.start))
    return Resolved(relation, references, tuple(resolver.errors))


@dataclass(slots=True)
class _Resolver:
    text: Text
    tables: Mapping[str, Table]
    extra: frozenset[str] = frozenset()
    references: list[Reference] = field(default_factory=list)
    errors: list[InfoldError] = field(default_factory=list)

    def query(self, node: exp.Expr, ctes: Mapping[str, Relation], outer: Block | None) -> Relation:
        """The relation of a SELECT, a set operation, a subquery or VALUES."""
        ctes, derived = self._ctes(node, ctes, outer)
        if isinstance(node, exp.Select):
            return self._block(node, ctes, outer, derived)
        if isinstance(node, exp.SetOperation):
            left = self.query(node.this, ctes, outer)
            right = self.query(node.expression, ctes, outer)
            return SetOperation(node, self.text, left, right, derived)
        if isinstance(node, exp.Subquery):
            return self._subquery(node, ctes, outer)
        if isinstance(node, exp.Table):
            return self._table(node, ctes)
        if isinstance(node, exp.Values):
            return OtherRows(alias_columns(node) or values_columns(node))
        self._unsupported(node, "this form of query")
        return OtherRows(None)

    def _ctes(
        self, node: exp.Expr, ctes: Mapping[str, Relation], outer: Block | None
    ) -> tuple[Mapping[str, Relation], list[Relation]]:
        clause = node.args.get("with_")
        if clause is None:
            return ctes, []
        visible, derived = dict(ctes), []
        for cte in clause.expressions:
            inside = dict(visible)
            if clause.args.get("recursive"):
                inside[cte.alias.lower()] = OtherRows(alias_columns(cte))
            relation = self._with_alias_columns(self.query(cte.this, inside, outer), cte)
            visible[cte.alias.lower()] = relation
            derived.append(relation)
        return visible, derived

    def _subquery(
        self, node: exp.Subquery, ctes: Mapping[str, Relation], outer: Block | None
    ) -> Relation:
        if isinstance(node.this, exp.Table) and node.this.args.get("joins"):
            self._unsupported(node.this, "a join in parentheses")
        return self._with_alias_columns(self.query(node.this, ctes, outer), node)

    def _pivot(
        self, over: exp.Subquery, ctes: Mapping[str, Relation], outer: Block | None
    ) -> Relation:
        """
        The rows of a PIVOT that is over the first subquery of a FROM.

        Behind a join Spark takes it for one over all that is joined, and sqlglot does not.
        """
        inner = self.query(over.this, ctes, outer)
        node = pivot_as_group_by(over, inner.columns, self.text)
        if node is None:
            return self._with_alias_columns(inner, over)  # which refuses it
        block = Block(node, self.text)
        block.entries.append(FromEntry("", inner, node.args["from_"].this))
        self._columns(block, {})
        block.outputs = self._outputs(block)
        return block

    def _unpivot(
        self,
        over: exp.Subquery | exp.Table,
        pivot: exp.Pivot,
        ctes: Mapping[str, Relation],
        outer: Block | None,
    ) -> Relation:
        """The rows of an UNPIVOT that is over the first table or subquery of a FROM."""
        if isinstance(over, exp.Subquery):
            inner = self.query(over.this, ctes, outer)
        else:
            inner = self._table(over, ctes, turned=True)
        rewritten = None
        if len(over.args["pivots"]) == 1 and not over.alias:
            rewritten = unpivot_as_lateral_view(pivot, over, inner.columns)
        if rewritten is None:
            self._unsupported(over, "this form of UNPIVOT")
            return OtherRows(None)
        node, view = rewritten
        block = Block(node, self.text)
        block.entries.append(FromEntry("", inner, over))
        block.entries.append(FromEntry("", OtherRows(lateral_view_columns(view)), view))
        self._columns(block, {})
        block.outputs = self._outputs(block)
        return block

    def _with_alias_columns(self, relation: Relation, node: exp.Expr) -> Relation:
        if node.args.get("pivots"):
            self._unsupported(node, "PIVOT and UNPIVOT")
            return OtherRows(None)
        names = alias_columns(node)
        return relation if names is None else RenamedColumns(relation, names)

    def _table(
        self, node: exp.Table, ctes: Mapping[str, Relation], *, turned: bool = False
    ) -> Relation:
        """A table, a CTE or a table function named in FROM; ``turned``: by an UNPIVOT."""
        if not isinstance(node.this, exp.Identifier):
            self._no_plain_table(node)
            return OtherRows(alias_columns(node))
        for key, construct in _REFUSED_ON_TABLES.items():
            if node.args.get(key) and not (turned and key == "pivots"):
                self._unsupported(node, construct)
        parts = [part.name for part in node.parts]
        name = ".".join(parts)
        if len(parts) == 1 and name.lower() in ctes:
            cte = ctes[name.lower()]
            return cte if turned else self._with_alias_columns(cte, node)
        start = min(part.meta["start"] for part in node.parts)
        end = max(part.meta["end"] for part in node.parts) + 1
        table = self.tables.get(name.lower())
        if table is None:
            visible = [*(t.name for t in self.tables.values()), *ctes]
            self.errors.append(
                findings.unknown_table(self.text.spot(start, end), name=name, known=visible)
            )
            return OtherRows(None)
        self.references.append(Reference(table.name, start, end))
        return table if turned else self._with_alias_columns(table, node)

    def _no_plain_table(self, node: exp.Table) -> None:
        """A table function, unless it reads anything; a name of too many parts."""
        name = str(node.this.meta.get(CALL, "")).lower()
        if isinstance(node.this, exp.Dot):
            written = node.sql("spark")
            visible = [table.name for table in self.tables.values()]
            self.errors.append(
                findings.unknown_table(self.text.spot_of(node), name=written, known=visible)
            )
        elif name and name not in TABLE_FUNCTIONS and name != "identifier":
            self._unsupported(node.this, f"the table function {name}")

    # -- one SELECT --------------------------------------------------------------------------

    def _block(
        self,
        node: exp.Select,
        ctes: Mapping[str, Relation],
        outer: Block | None,
        derived: list[Relation],
    ) -> Block:
        block = Block(node, self.text, outer, ctes=derived)
        clause = node.args.get("from_")
        if clause is not None:
            block.entries.append(self._entry(clause.this, None, ctes, block))
        for lateral in node.args.get("laterals") or ():
            block.entries.append(
                FromEntry(lateral.alias.lower(), OtherRows(lateral_view_columns(lateral)), lateral)
            )
        for join in node.args.get("joins") or ():
            block.entries.append(self._entry(join.this, join, ctes, block))
        self._columns(block, ctes)
        block.outputs = self._outputs(block)
        return block

    def _entry(
        self,
        node: exp.Expr,
        join: exp.Join | None,
        ctes: Mapping[str, Relation],
        block: Block,
    ) -> FromEntry:
        if isinstance(node, exp.Lateral):
            inner = node.this
            if isinstance(inner, exp.Subquery):
                relation = self._with_alias_columns(self.query(inner.this, ctes, block), node)
                return FromEntry(node.alias.lower(), relation, node, join, lateral=True)
            return FromEntry(
                node.alias.lower(), OtherRows(lateral_view_columns(node)), node, join, lateral=True
            )
        if isinstance(node, (exp.Subquery, exp.Table)) and node.args.get("pivots") and not join:
            pivot = node.args["pivots"][0]
            if pivot.args.get("unpivot"):
                relation = self._unpivot(node, pivot, ctes, block.outer)
                return FromEntry(pivot.alias.lower(), relation, node)
        if isinstance(node, exp.Subquery) and node.args.get("pivots") and join is None:
            return FromEntry("", self._pivot(node, ctes, block.outer), node)
        relation = self.query(node, ctes, block.outer)
        if isinstance(node, exp.Table) and not node.alias and isinstance(node.this, exp.Identifier):
            parts = [part.name.lower() for part in node.parts]
            alias = parts[-1]
            qualifier = ".".join(parts[:-1])
            return FromEntry(alias, relation, node, join, qualifier=qualifier)
        return FromEntry(node.alias_or_name.lower(), relation, node, join)

    def _columns(self, block: Block, ctes: Mapping[str, Relation]) -> None:
        """Look up every column of the block's own clauses, and resolve its subqueries."""
        aliases: dict[str, exp.Expr] = {}
        for item in block.node.expressions:  # each sees the aliases before it, never its own
            self._look_up(block, item, aliases, ctes)
            if isinstance(item, exp.Alias):
                aliases[item.alias.lower()] = item.this
        for key, value in block.node.args.items():
            if key in ("from_", "with_", "hint", "expressions"):
                continue
            visible = aliases if key in _ALIASES_SEEN else {}
            for part in value if isinstance(value, list) else [value]:
                if not isinstance(part, exp.Expr):
                    continue
                if isinstance(part, exp.Join):
                    part = part.args.get("on")
                elif isinstance(part, exp.Lateral):
                    part = part.this
                if isinstance(part, exp.Expr):
                    self._look_up(block, part, visible, ctes)

    def _look_up(
        self,
        block: Block,
        tree: exp.Expr,
        aliases: Mapping[str, exp.Expr],
        ctes: Mapping[str, Relation],
    ) -> None:
        excluded: set[int] = set()
        for node in own_nodes(tree):
            if isinstance(node, exp.Query):
                block.nested_queries.append((node.parent or node, self.query(node, ctes, block)))
            elif isinstance(node, exp.Star):
                excluded.update(id(name) for name in node.args.get("except_") or ())
            elif (
                isinstance(node, exp.Column)
                and not isinstance(node.this, exp.Star)
                and id(node) not in excluded
            ):
                self._look_up_one(block, node, aliases)

    def _look_up_one(
        self,
        block: Block,
        node: exp.Column,
        aliases: Mapping[str, exp.Expr],
    ) -> None:
        """
        One column: in FROM, among the aliases, or outside.

        In GROUP BY Spark takes an input's column before an alias of that name, and so do we;
        where it takes the alias (ORDER BY, HAVING), nothing that is decided here depends on it.
        """
        parts = [part.name.lower() for part in node.parts]
        around: Block | None = block
        opaque, levels = False, 0
        while around is not None:
            origin = find_column(around.entries, parts)
            if isinstance(origin, Origin):
                self._not_by_its_table(node, parts, origin)
                if levels > 1 and not opaque:
                    at = self.text.spot_of(node)
                    self.errors.append(findings.column_too_far(at, name=as_written(node)))
                block.origins[node] = origin
                return
            opaque = opaque or origin is UNKNOWN
            if around is block and parts[0] in aliases:
                block.aliases[node] = aliases[parts[0]]
                return
            around, levels = around.outer, levels + 1
        if opaque or parts[0] in self.extra:
            block.origins[node] = None
            return
        names = visible_columns(block.entries) or list(aliases)
        at = self.text.spot_of(node)
        tables = [e.relation.name for e in block.entries if isinstance(e.relation, Table)]
        self.errors.append(findings.unknown_column(at, as_written(node), names, tables))

    def _not_by_its_table(self, node: exp.Column, parts: list[str], origin: Origin) -> None:
        """``raw.clicks.url`` is refused: Spark sees the stored name ``clicks``."""
        entry = origin.entry
        names = [*entry.qualifier.split("."), entry.alias] if entry.qualifier else []
        if names and parts[: len(names)] == names and len(parts) > len(names):
            shorter = ".".join(part.name for part in node.parts[len(names) - 1 :])
            error = findings.long_column(
                self.text.spot_of(node), name=as_written(node), shorter=shorter
            )
            self.errors.append(error)

    def _outputs(self, block: Block) -> list[OutputColumn] | None:
        """The output columns in order; None when a star covers unknown columns."""
        outputs: list[OutputColumn] = []
        for item in block.node.expressions:
            star = item if isinstance(item, exp.Star) else None
            if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                star = item.this
            if star is None:
                outputs.extend(select_outputs(item))
                continue
            entries = [entry for entry in block.entries if not entry.hidden]
            if isinstance(item, exp.Column):
                entries = [entry for entry in entries if entry.alias == item.table.lower()]
                if not entries:  # a struct's fields: their number is in its type, not in the SQL
                    return None
            expanded = star_outputs(entries, star, item)
            if expanded is None:
                return None
            outputs.extend(expanded)
        return outputs

    def _unsupported(self, node: exp.Expr, what: str) -> None:
        self.errors.append(findings.unsupported_sql(self.text.spot_of(node), what=what))


_REFUSED_ON_TABLES = {
    "hints": "options of a table",
    "only": "ONLY",
    "ordinality": "WITH ORDINALITY",
    "rows_from": "ROWS FROM",
    "version": "reading a table as of a version or a time",
    "when": "reading a table as of a version or a time",
    "pivots": "PIVOT and UNPIVOT",
    "changes": "CHANGES",
    "partition": "PARTITION",
}


# `(SELECT day, country, amount …) PIVOT (sum(amount) FOR country IN ('DE' AS de, 'FR' AS fr))`
# groups by every column that it does not name, here `day`. `de` is the aggregate over those rows of
# a group that have the country DE. So the bounds are those of `SELECT day, sum(amount) FILTER
# (WHERE country = 'DE') AS de, … GROUP BY day`. Nothing is known of a value with FILTER, as it is
# NULL in groups of any time.
#
# UNPIVOT is read as the LATERAL VIEW that it is: `UNPIVOT (amount FOR kind IN (net, tax))` is
# `LATERAL VIEW stack(2, 'net', net, 'tax', tax) AS kind, amount` without the columns that it names.
# Whether it leaves out NULL is of no interest. The query that runs is the user's own.


def pivot_as_group_by(node: exp.Subquery, columns: Columns, text: Text) -> exp.Select | None:
    """
    The SELECT equal to a subquery with one PIVOT; ``columns`` are those of the subquery.

    None where a name is not certain: with several columns, values that are no plain texts,
    an alias (Spark has none behind PIVOT), or unknown columns.
    """
    pivots = node.args["pivots"]
    field = _pivot_field(pivots[0]) if len(pivots) == 1 and not node.args.get("alias") else None
    if field is None or columns is None or len({name.lower() for name in columns}) < len(columns):
        return None
    outputs = list(_outputs_made(pivots[0], field))
    named = _names_used([field.this, *(out.this for out in outputs)])
    if not outputs or named is None or "" in columns:
        return None
    keys = [name for name in columns if name.lower() not in named]
    if {name.lower() for name in keys} & {out.alias.lower() for out in outputs}:
        return None
    inner = exp.Subquery()
    inner.args["this"] = node.this  # which stays where it is in its own tree
    query = exp.Select(expressions=[*map(_column_node, keys), *outputs], from_=exp.From(this=inner))
    if keys:
        group = exp.Group(expressions=[*map(_column_node, keys)])
        group.meta[SPAN] = _pivot_span(pivots[0], text)
        query.set("group", group)
    return query


def unpivot_as_lateral_view(
    pivot: exp.Pivot, over: exp.Expr, columns: Columns
) -> tuple[exp.Select, exp.Lateral] | None:
    """
    The SELECT equal to ``over`` with an UNPIVOT, and its LATERAL VIEW; None for other forms.

    ``columns`` are those of ``over``. One value for each column that is named by itself is
    understood.
    """
    fields, values = pivot.args.get("fields") or [], pivot.expressions
    if len(fields) != 1 or len(values) != 1 or columns is None or "" in columns:
        return None
    new_names = [fields[0].this, values[0]]
    turned = [one.this if isinstance(one, exp.PivotAlias) else one for one in fields[0].expressions]
    if not all(isinstance(one, exp.Column) and not one.table for one in turned):
        return None
    if not all(isinstance(one, exp.Identifier) for one in new_names):
        return None
    gone = {one.name.lower() for one in turned}
    kept_names = [name for name in columns if name.lower() not in gone]
    names = [name.lower() for name in (*kept_names, *gone)]
    outputs = [*(name.lower() for name in kept_names), *(one.name.lower() for one in new_names)]
    if len(names) != len(columns) or len({*outputs}) < len(outputs):
        return None
    parts = [part for one in turned for part in (exp.Literal.string(one.name), one.copy())]
    view = exp.Lateral(
        this=exp.Stack(this=exp.Literal.number(len(turned)), expressions=parts),
        view=True,
        alias=exp.TableAlias(columns=[one.copy() for one in new_names]),
    )
    source = exp.From()
    source.args["this"] = over  # which stays where it is in its own tree
    items = [*map(_column_node, kept_names), *(exp.Column(this=one.copy()) for one in new_names)]
    return exp.Select(expressions=items, from_=source, laterals=[view]), view


def _pivot_field(pivot: exp.Pivot) -> exp.In | None:
    """The FOR of a PIVOT, where it is of one column and of texts."""
    options = {key for key, value in pivot.args.items() if value}
    if pivot.args.get("unpivot") or options - _KNOWN:
        return None
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or type(fields[0]) is not exp.In or not fields[0].expressions:
        return None
    values = [one.this if isinstance(one, exp.PivotAlias) else one for one in fields[0].expressions]
    texts = all(isinstance(one, exp.Literal) and one.is_string for one in values)
    values_of: exp.In = fields[0]
    return values_of if texts else None


_KNOWN = {"expressions", "fields", "columns", "pivot_column_naming"}


def _outputs_made(pivot: exp.Pivot, field: exp.In) -> Iterator[exp.Alias]:
    """An output for each value and aggregate; none where Spark names one by its SQL."""
    several = len(pivot.expressions) > 1
    if not all(is_aggregate(aggregate.unalias()) for aggregate in pivot.expressions):
        return
    if several and not all(isinstance(aggregate, exp.Alias) for aggregate in pivot.expressions):
        return
    for value in field.expressions:
        name = value.alias if isinstance(value, exp.PivotAlias) else value.name
        for aggregate in pivot.expressions:
            full = f"{name}_{aggregate.alias}" if several else name
            alias = exp.Identifier(this=full, quoted=True)
            text = value.this if isinstance(value, exp.PivotAlias) else value
            yield exp.Alias(this=_with_filter(aggregate.unalias(), field.this, text), alias=alias)


def _with_filter(call: exp.Expr, column: exp.Expr, text: exp.Expr) -> exp.Filter:
    where = exp.Where(this=exp.EQ(this=column.copy(), expression=text.copy()))
    filtered = exp.Filter(this=call.copy(), expression=where)
    if SPAN in call.meta:
        filtered.meta[SPAN] = call.meta[SPAN]
    return filtered


def _pivot_span(pivot: exp.Expr, text: Text) -> tuple[int, int] | None:
    """From PIVOT to behind its last bracket; None where the parser left no place."""
    span = span_of(pivot)
    token = text.token_before(span[0], TokenType.PIVOT) if span is not None else None
    return (
        text.with_closing_brackets(token.start, span[1])
        if span is not None and token is not None
        else None
    )


def _names_used(nodes: list[exp.Expr]) -> set[str] | None:
    """The columns that are named, in lower case; None where one has a dot in it."""
    columns = [column for node in nodes for column in node.find_all(exp.Column)]
    if any(len(column.parts) > 1 for column in columns) or not isinstance(nodes[0], exp.Column):
        return None
    if any(node.find(exp.Query, exp.Window) for node in nodes):
        return None
    return {column.name.lower() for column in columns}


def _column_node(name: str) -> exp.Column:
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


UNKNOWN = object()
"""Not found among known columns, but an entry's columns are unknown, so it may be there."""


def find_column(entries: Sequence[FromEntry], parts: Sequence[str]) -> Origin | object | None:
    """
    The column that dotted, lower-case ``parts`` name, fields of a struct ignored.

    ``table.column`` and ``raw.table.column`` before ``struct.field``, as Spark does.
    """
    unknown = False
    for entry in entries:
        depth = len(entry.qualifier.split(".")) if entry.qualifier else 0
        prefixes: list[tuple[str, ...]] = [(entry.alias,)] if entry.alias else []
        if depth:
            prefixes.append((*entry.qualifier.split("."), entry.alias))
        for prefix in prefixes:
            behind = parts[len(prefix) :]
            if behind and tuple(parts[: len(prefix)]) == prefix:
                if entry.names is None:
                    return UNKNOWN
                if behind[0] in entry.names:
                    return Origin(entry, behind[0], tuple(behind[1:]))
    for entry in entries:
        if entry.names is None:
            unknown = True
        elif parts[0] in entry.names:
            return Origin(entry, parts[0], tuple(parts[1:]))
    return UNKNOWN if unknown else None


def visible_columns(entries: Iterable[FromEntry]) -> list[str]:
    """Every column name that an unqualified name could mean."""
    return [column for entry in entries for column in entry.relation.columns or ()]


def alias_columns(node: exp.Expr) -> Columns:
    """The column names of a table alias, ``t(a, b)``; None without them."""
    alias = node.args.get("alias")
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return tuple(column.name for column in columns) if columns else None


def lateral_view_columns(lateral: exp.Lateral) -> Columns:
    """The columns of a LATERAL VIEW; Spark names them itself when the user does not."""
    names = alias_columns(lateral)
    if names is None and isinstance(lateral.this, (exp.Posexplode, exp.PosexplodeOuter)):
        return ("pos", "col")
    return names


def values_columns(values: exp.Values) -> Columns:
    """The names that Spark gives to the columns of VALUES."""
    row = values.expressions[0] if values.expressions else None
    width = len(row.expressions) if isinstance(row, exp.Tuple) else 1
    return tuple(f"col{i + 1}" for i in range(width))


def select_outputs(item: exp.Expr) -> list[OutputColumn]:
    """The output columns of one item of a SELECT that is no star."""
    if isinstance(item, exp.Aliases):
        return [OutputColumn(name.name, item) for name in item.args["expressions"]]
    if isinstance(item, exp.Alias):
        return [OutputColumn(item.alias, item.this, label=item.args["alias"])]
    if isinstance(item, exp.Column):
        return [OutputColumn(item.name, item)]
    if isinstance(item, exp.Dot):
        return [OutputColumn(item.expression.name, item)]
    return [OutputColumn("", item)]


def star_outputs(
    entries: Sequence[FromEntry], star: exp.Star, node: exp.Expr
) -> list[OutputColumn] | None:
    """The columns of a star: those of all entries, shared ones of USING and NATURAL once."""
    if any(entry.relation.columns is None for entry in entries):
        return None
    skip = {name.name.lower() for name in star.args.get("except_") or ()}
    outputs: list[OutputColumn] = []
    for entry in entries:
        right = [
            OutputColumn(c, node, Origin(entry, c.lower())) for c in entry.relation.columns or ()
        ]
        once = dict.fromkeys(_shared_columns(entry, outputs, right))
        at = {out.name.lower(): i for i, out in reversed([*enumerate(outputs)])}
        first = {at[name]: outputs[at[name]] for name in once}
        left = (out for i, out in enumerate(outputs) if i not in first)
        outputs = [*first.values(), *left, *(out for out in right if out.name.lower() not in once)]
    return [out for out in outputs if out.name.lower() not in skip]


def _shared_columns(
    entry: FromEntry, left: Sequence[OutputColumn], right: Sequence[OutputColumn]
) -> list[str]:
    """The columns that a join with USING, or a NATURAL one, shows once, in their order."""
    if entry.join is None:
        return []
    here, there = [dict.fromkeys(out.name.lower() for out in side) for side in (left, right)]
    if entry.join.args.get("method") == "NATURAL":
        return [name for name in here if name in there]
    using = [name.name.lower() for name in entry.join.args.get("using") or ()]
    return [name for name in using if name in here]


def joined_by_name(entries: Sequence[FromEntry], entry: FromEntry) -> list[str]:
    """The columns of USING, or those that a NATURAL join is by, in lower case."""
    join = entry.join
    if join is None or join.args.get("method") != "NATURAL":
        return [name.name.lower() for name in (join.args.get("using") if join else None) or ()]
    before = entries[: entries.index(entry)]
    known = {name.lower() for one in before for name in one.relation.columns or ()}
    return [name.lower() for name in entry.relation.columns or () if name.lower() in known]


def as_written(node: exp.Column) -> str:
    """A column with its qualifiers, as the query names it."""
    return ".".join(part.name for part in node.parts)


# SQL does not mind the case of a name, and what reads a table by its stored names does: after `AS
# Day`, a `partition_column: day` means the column `Day`.


def with_column_spelling(model: Model, columns: Sequence[str]) -> Model:
    """The model with the names in its declaration as its table has them."""
    if model.kind in (Kind.SESSIONS, Kind.VIEW):
        return model
    known = {column.lower(): column for column in reversed(columns)}

    def own(name: str) -> str:
        return known.get(name.lower(), name)

    series, incremental = model.timeseries, model.incremental
    if series is not None:
        own_time = model.kind is Kind.EVENTS
        series = replace(
            series,
            event_time_column=own(series.event_time_column)
            if own_time
            else series.event_time_column,
            partition_column=own(series.partition_column),
        )
    if incremental is not None:
        incremental = replace(incremental, unique_key=tuple(map(own, incremental.unique_key)))
    key = tuple(map(own, model.unique_key))
    return replace(model, timeseries=series, incremental=incremental, unique_key=key)
