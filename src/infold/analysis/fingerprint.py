"""
What identifies a definition: a change here means that the table has to be built again.

A fingerprint covers the words of the SELECT and everything in the declaration that decides about
content. Comments, layout and the case of names in a query do not count, unless it makes structs,
whose fields are named as written, or reads fields: a key of a map is found as written. Tags,
descriptions and ``settle`` do not count either. It is made from the tokens rather than from a tree
printed again, so that nothing of the query is lost and a new version of the parser does not rebuild
every table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.sql.text import Text
from infold.core.model import DeclaredBound, Deduplicate, Drift, Kind, Model, Override, Source
from infold.core.project import Reference
from infold.core.sessions import STATE_VERSION, DeclaredCut, Sessions

_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})

_LITERALS = frozenset(
    {
        TokenType.STRING,
        TokenType.RAW_STRING,
        TokenType.HEX_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.UNICODE_STRING,
    }
)


@dataclass(frozen=True, slots=True)
class NormalText:
    """A SELECT alike for all ways of laying it out: ``folded``, and with its names as written."""

    folded: list[str]
    to_the_letter: list[str]

    def words_of(self, tree: exp.Expr) -> list[str]:
        """Those that decide: the case of names shows where they are fields or keys of maps."""
        exact = makes_structs(tree) or _reads_fields(tree)
        return self.to_the_letter if exact else self.folded


def normal_text(
    text: Text, references: tuple[Reference, ...], views: Mapping[str, tuple[str, str]]
) -> NormalText:
    """
    The words of a SELECT.

    References to views are replaced by their fingerprints (``views``: with names folded, and to
    the letter), those to other tables by the table's name.
    """
    folded = _words(
        text, references, {name: prints[0] for name, prints in views.items()}, fold=True
    )
    exact = _words(
        text, references, {name: prints[1] for name, prints in views.items()}, fold=False
    )
    return NormalText(folded, exact)


_STRUCTS = frozenset(
    {"arrays_zip", "named_struct", "struct", "to_csv", "to_json", "to_variant_object", "to_xml"}
)


def makes_structs(tree: exp.Expr) -> bool:
    """Whether names of a query can become those of a struct's fields."""
    for node in tree.walk():
        if isinstance(node, (exp.Struct, exp.Tuple, exp.JSONFormat, exp.ArraysZip)):
            return True
        if isinstance(node, exp.DataType) and node.this == exp.DType.STRUCT:
            return True
        if isinstance(node, exp.Anonymous) and node.name.lower() in _STRUCTS:
            return True
    return False


def goes_by_names(tree: exp.Expr) -> bool:
    """
    Whether other names of the columns that a query reads may give other rows.

    A NATURAL join is by the names that both sides have, and a star makes them names of fields.
    """
    if any(join.args.get("method") == "NATURAL" for join in tree.find_all(exp.Join)):
        return True
    stars = (star.parent if isinstance(star.parent, exp.Column) else star for star in _stars(tree))
    return makes_structs(tree) and any(
        not isinstance(star.parent, (exp.Select, exp.Count)) for star in stars
    )


def _stars(tree: exp.Expr) -> Iterable[exp.Star]:
    return tree.find_all(exp.Star)


def _reads_fields(tree: exp.Expr) -> bool:
    """
    Whether a query may look a name up in a map, as ``m.Key`` does.

    ``a.b`` is a column of ``a`` where FROM has an ``a``, as Spark sees it; else a field of ``a``.
    """
    tables = {
        node.alias_or_name.lower()
        for node in tree.find_all(exp.Table, exp.Subquery, exp.Lateral, exp.TableAlias)
    }
    return tree.find(exp.Dot) is not None or any(
        column.table and (column.db or column.table.lower() not in tables)
        for column in tree.find_all(exp.Column)
    )


def _words(
    text: Text, references: tuple[Reference, ...], views: Mapping[str, str], *, fold: bool
) -> list[str]:
    names = {reference.start: reference for reference in references}
    words: list[str] = []
    skip_to = -1
    for token in text.tokens:
        if token.start < skip_to:
            continue
        reference = names.get(token.start)
        if reference is not None:
            skip_to = reference.end
            words.append("@" + views.get(reference.name, reference.name.lower()))
        elif token.token_type in _LITERALS:
            words.append(text.sql[token.start : token.end + 1])
        elif token.token_type is TokenType.NEQ:
            words.append("<>")
        elif not fold and token.token_type in _NAMES:
            words.append(token.text)
        else:
            words.append(token.text.lower())
    return words


_KINDS = {
    Kind.INCREMENTAL_TABLE: "time range",
    Kind.CUMULATIVE_AGGREGATE: "cumulative aggregate",
}
"""The words for kinds in the fingerprints of tables that are stored already."""


def fingerprint(
    model: Model,
    words: list[str],
    columns: tuple[str, ...] | None,
    source: Source | None,
    vouched: Sequence[Override] = (),
    bounds: Sequence[DeclaredBound] = (),
) -> str:
    """
    The fingerprint of a model: its words, its output columns, and what else decides.

    ``vouched`` and ``bounds`` are the overrides and declared bounds without which it would be
    refused: each cell is computed from what they leave.
    """
    parts: dict[str, object] = {
        "sql": words,
        "columns": None if columns is None else [column.lower() for column in columns],
        "kind": _KINDS.get(model.kind, model.kind.value),
    }
    if model.kind in (Kind.EVENTS, Kind.SESSIONS, Kind.INCREMENTAL_TABLE) and model.timeseries:
        series = model.timeseries
        parts["timeseries"] = [
            series.event_time_column.lower(),
            series.partition_column.lower(),
            series.granularity.value,
        ]
    if model.kind is Kind.SESSIONS and model.sessions:
        parts["sessions"] = _session_parts(model.sessions)
        parts["state"] = STATE_VERSION
    if model.kind is Kind.EVENTS:
        parts["key"] = [[c.lower() for c in model.unique_key], [c.lower() for c in model.prefer]]
        if model.deduplicate is not Deduplicate.SAME_TIME:
            parts["deduplicate"] = model.deduplicate.value
    if model.versions is not None:
        rules = model.versions
        compared = sorted(column.lower() for column in rules.columns)
        keys = [column.lower() for column in model.unique_key]
        deletes = rules.invalidate_hard_deletes
        parts["versions"] = [keys, rules.updated_at.lower(), compared, deletes]
    if vouched:
        parts["vouched"] = sorted(vouched)
    if bounds:
        parts["bounds"] = sorted([one.input, one.before, one.after] for one in bounds)
    if source is not None:
        parts["source"] = _source_parts(source)
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _session_parts(sessions: Sessions) -> list[object]:
    """What a session is of, and where it ends; what is not declared leaves no trace."""
    declared = {
        entry.name: value
        for entry in fields(sessions)[2:]
        if (value := getattr(sessions, entry.name)) != entry.default
    }
    declared.pop("cuts", None)
    declared |= _cuts(sessions.cuts)
    user = sessions.user or ""
    plain: list[object] = [user.lower() if sessions.user_is_column else user, sessions.gap]
    return [*plain, declared] if declared else plain


def _cuts(cuts: Iterable[DeclaredCut]) -> dict[str, object]:
    """The cuts that are declared: by their keys, or in a list as ledgers already have it."""
    listed: list[object] = [None] * 3
    by_key: dict[str, object] = {}
    for cut in cuts:
        if cut.place_in_list is None:
            by_key[cut.key] = cut.definition
        else:
            listed[cut.place_in_list] = cut.definition
    return by_key | ({"cuts": listed} if any(listed) else {})


def _source_parts(source: Source) -> list[object]:
    """
    All of a source that decides which rows come out of a file.

    Not its path: files that are no longer matched are removed, as deleted ones are. Nor the
    policies for files as a whole, which ingested files have passed. Declared columns count to the
    letter, as they are compared with those of a file.
    """
    return [
        source.name.lower(),
        source.format.value,
        [
            [column.name, column.type, *([column.default] if column.default is not None else [])]
            for column in source.columns
        ],
        (source.event_time_column or "").lower(),
        (source.received_column or "").lower(),
        source.future_tolerance,
        source.timestamp_format,
        # An ingested file passed either of the others.
        (Drift.SET_ASIDE if source.on_drift is Drift.SET_ASIDE else Drift.ERROR).value,
        source.delimiter,
        *([source.file_time_column] if source.file_time_column else []),
        *([["folders", *source.partition_columns]] if source.partition_columns else []),
        *(["multiline"] if source.multiline else []),
        *([] if source.quoted else ["no quotes"]),
        *([source.read_positions] if source.positions else []),
    ]
