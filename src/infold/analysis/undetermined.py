"""
The columns of a table with values that its inputs do not determine, as its author allows.

A construct inside one output of the outermost SELECT decides about that column alone. Anywhere else
(a filter, a join, a CTE, a view) it may decide about rows, so about all columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.names.relation import Block, OutputColumn
from infold.analysis.names.subject import Subject
from infold.analysis.overrides import BY_SLUG, RemainingFindings, key_of_override
from infold.core.model import Kind, Override, any_result_will_do
from infold.core.project import ALL_COLUMNS
from infold.messages.errors import InfoldError

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
