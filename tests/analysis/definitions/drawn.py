"""
Queries drawn at random, each written in several ways, and small changes of their words.

The same text runs on Spark and on DuckDB. ``c`` of ``t`` and ``k`` of ``u`` are unique, and every
ORDER BY that affects rows ends with one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.sql.parse import parse

TABLES = {"t": ("a", "b", "c"), "u": ("a", "b", "k"), "v": ("a", "b")}


@dataclass
class Query:
    """A SELECT: expressions name the entries of FROM by their numbers, ``{0}.a``."""

    entries: list[tuple[str, str | Query | Union, list[str]]]
    """How each is joined, what it is, and the conditions of the join."""
    items: list[tuple[str, str]]
    """Names and expressions."""
    where: list[str] = field(default_factory=list)
    group: list[int] | None = None
    """Which of the items are grouped by."""
    having: list[str] = field(default_factory=list)
    distinct: bool = False
    limit: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(name for name, _ in self.items)


@dataclass
class Union:
    """Two queries of as many columns."""

    word: str
    left: Query
    right: Query

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return self.left.columns


def drawn(rng: Random, depth: int = 1) -> Query:
    """A query at random."""
    entries: list[tuple[str, str | Query | Union, list[str]]] = []
    seen: list[str] = []
    for at in range(rng.choice([1, 1, 1, 2, 2, 3])):
        relation = _relation(rng, depth)
        columns = TABLES[relation] if isinstance(relation, str) else relation.columns
        mine = [f"{{{at}}}.{column}" for column in columns]
        kinds = ["JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN", "CROSS JOIN", "LEFT JOIN"]
        kind = rng.choice(kinds) if at else ""
        on = []
        if at and kind != "CROSS JOIN":
            on = [f"{rng.choice(seen)} = {rng.choice(mine)}"]
            on += [_condition(rng, seen + mine, 0) for _ in range(rng.choice([0, 0, 1]))]
        entries.append((kind, relation, on))
        seen += mine
    where = [_condition(rng, seen, 2) for _ in range(rng.choice([0, 0, 1, 2, 3]))]
    shape = rng.choice(["rows", "rows", "rows", "groups", "groups", "all"])
    count = rng.choice([1, 2, 2, 3])
    if shape == "groups":
        keys = [(f"g{at}", _number(rng, seen, 1)) for at in range(count)]
        calls = [(f"n{at}", _aggregate(rng, seen)) for at in range(rng.choice([1, 1, 2]))]
        having = [f"{_aggregate(rng, seen)} > {rng.randint(0, 3)}"] if rng.random() < 0.3 else []
        return Query(entries, keys + calls, where, list(range(count)), having)
    if shape == "all":
        return Query(entries, [(f"n{at}", _aggregate(rng, seen)) for at in range(count)], where)
    items = [(f"c{at}", _number(rng, seen, 2)) for at in range(count)]
    if rng.random() < 0.3:
        key = next((one for one in seen if one.endswith((".c", ".k"))), None)
        if key:
            by = f"PARTITION BY {rng.choice(seen)} " if rng.random() < 0.6 else ""
            order = f"{by}ORDER BY {rng.choice(seen)}, {', '.join(seen)}"
            items.append(("w", f"row_number() OVER ({order})"))
    limit = f"ORDER BY {', '.join(seen)} LIMIT {rng.randint(1, 5)}" if rng.random() < 0.1 else ""
    return Query(entries, items, where, distinct=not limit and rng.random() < 0.15, limit=limit)


def _relation(rng: Random, depth: int) -> str | Query | Union:
    if depth == 0 or rng.random() < 0.6:
        return rng.choice(["t", "t", "u", "v"])
    if rng.random() < 0.7:
        return drawn(rng, depth - 1)
    left, right = drawn(rng, depth - 1), drawn(rng, depth - 1)
    width = min(len(left.items), len(right.items))
    for side in (left, right):
        side.items, side.limit = side.items[:width], ""
        if side.group is not None:
            side.group = [at for at in side.group if at < width]
    return Union(rng.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"]), left, right)


def _number(rng: Random, seen: list[str], depth: int) -> str:
    shape = rng.randint(0, 11) if depth else rng.randint(0, 4)
    if shape <= 3:
        return rng.choice(seen)
    if shape == 4:
        return str(rng.randint(0, 4))
    one, two = _number(rng, seen, depth - 1), _number(rng, seen, depth - 1)
    if shape <= 8:
        return f"({one} {rng.choice('+-*-')} {two})"
    if shape == 9:
        return f"coalesce({one}, {two})"
    if shape == 10:
        return f"CASE WHEN {_condition(rng, seen, depth - 1)} THEN {one} ELSE {two} END"
    near = _number(rng, seen, 0)  # Spark sees columns of one query around a subquery
    return f"(SELECT max(q.k) FROM u AS q WHERE q.a = {near})"


def _condition(rng: Random, seen: list[str], depth: int) -> str:
    shape = rng.randint(0, 11) if depth else rng.randint(0, 5)
    one, two = _number(rng, seen, max(0, depth - 1)), _number(rng, seen, 0)
    if shape <= 3:
        return f"{one} {rng.choice(['=', '<>', '<', '>=', '='])} {two}"
    if shape == 4:
        return f"{one} IS {rng.choice(['', 'NOT '])}NULL"
    if shape == 5:
        return f"{one} BETWEEN {rng.randint(0, 2)} AND {two}"
    if shape == 6:
        return f"NOT ({_condition(rng, seen, depth - 1)})"
    if shape == 7:
        return f"{one} IN (1, 2)"
    if shape == 8:
        near = _number(rng, seen, 0)
        return f"EXISTS (SELECT 1 FROM u AS q WHERE q.b = {two} AND q.k > {near})"
    if shape == 9:
        return f"{one} IN (SELECT q.b FROM t AS q)"
    left, right = _condition(rng, seen, depth - 1), _condition(rng, seen, depth - 1)
    return f"({left} {rng.choice(['AND', 'OR', 'OR'])} {right})"


def _aggregate(rng: Random, seen: list[str]) -> str:
    call = rng.choice(["count(*)", "count({})", "sum({})", "max({})", "count(DISTINCT {})"])
    return (
        call.format(_number(rng, seen, 1).replace("{", "{{").replace("}", "}}"))
        .replace("{{", "{")
        .replace("}}", "}")
    )


# -- ways of writing it


def written(query: Query, rng: Random | None = None) -> str:
    """A query as SQL: in the plainest way, or in a drawn one with the same meaning."""
    ctes: list[tuple[str, str]] = []
    text = _select(query, rng, ctes)
    heads = ", ".join(f"{name} AS ({inner})" for name, inner in ctes)
    return f"WITH {heads} {text}" if heads else text


def _select(query: Query, rng: Random | None, ctes: list[tuple[str, str]]) -> str:
    names = [f"x{at}" for at in range(len(query.entries))]
    if rng is not None:
        rng.shuffle(names)
        if rng.random() < 0.3:
            names = [name.replace("x", "other_") for name in names]

    def own(text: str) -> str:
        return text.format(*names)

    items, shuffled = [*enumerate(query.items)], rng is not None and not query.limit
    where, having = [*query.where], [*query.having]
    if rng is not None:
        for terms in (where, having):
            rng.shuffle(terms)
        if rng.random() < 0.3:
            where.insert(rng.randint(0, len(where)), rng.choice(["TRUE", "1 = 1", "(true)"]))
    if shuffled and rng is not None:
        rng.shuffle(items)
    shown = [f"{_bracketed(own(text), rng)} AS {name}" for _, (name, text) in items]
    parts = [f"SELECT {'DISTINCT ' if query.distinct else ''}{', '.join(shown)}", "FROM"]
    for (kind, relation, on), name in zip(query.entries, names, strict=True):
        parts.append(f"{kind} {_entry(relation, name, rng, ctes)}".strip())
        if on:
            terms = [*on]
            if rng is not None:
                rng.shuffle(terms)
            parts.append(f"ON {_all(terms, own, rng)}")
    if where:
        parts.append(f"WHERE {_all(where, own, rng)}")
    if query.group is not None:
        keys = [next(i for i, (at, _) in enumerate(items) if at == key) for key in query.group]
        texts = [own(query.items[key][1]) for key in query.group]
        by = [str(at + 1) for at in keys]
        if rng is not None:
            by = [
                one if rng.random() < 0.5 or one.isdigit() else text
                for one, text in zip(by, texts, strict=True)
            ]
            rng.shuffle(by)
        if by:
            parts.append(f"GROUP BY {', '.join(by)}")
    if having:
        parts.append(f"HAVING {_all(having, own, rng)}")
    return " ".join([*parts, own(query.limit)]).strip()


def _entry(
    relation: str | Query | Union, name: str, rng: Random | None, ctes: list[tuple[str, str]]
) -> str:
    if isinstance(relation, str):
        return f"{relation} AS {name}"
    if isinstance(relation, Union):
        # The columns of a UNION go by position, so they keep their order.
        text = f"{_plain(relation.left)} {relation.word} {_plain(relation.right)}"
    else:
        text = _select(relation, rng, ctes)
    if rng is not None and rng.random() < 0.5:
        ctes.append((f"cte_{len(ctes)}_{rng.randint(0, 99)}", text))
        return f"{ctes[-1][0]} AS {name}"
    return f"({text}) AS {name}"


def _plain(query: Query) -> str:
    ctes: list[tuple[str, str]] = []
    return _select(query, None, ctes)


def _all(terms: list[str], own: object, rng: Random | None) -> str:
    assert callable(own)
    texts = [f"({own(term)})" if " OR " in term else own(term) for term in terms]
    if rng is not None:
        texts = [f"({text})" if rng.random() < 0.2 else text for text in texts]
    return " AND ".join(texts)


def _bracketed(text: str, rng: Random | None) -> str:
    return f"({text})" if rng is not None and rng.random() < 0.2 else text


# -- changes of words

_NAMES = ["a", "b", "c", "k", "x0", "x1", "c0", "c1", "g0", "n0", "t", "u", "v"]
_OPERATORS = ["+", "-", "*", "=", "<>", "<", ">=", "AND", "OR"]
_WORDS = ["DISTINCT", "NOT", "LEFT", "FULL", "ALL", "NULL", "TRUE", "FALSE", "AND TRUE", "OR FALSE"]


def changed(sql: str, rng: Random) -> str:
    """The words of a query with one small change, which may make nonsense of it."""
    tokens = parse("m.sql", sql).text.tokens
    words = [sql[token.start : token.end + 1] for token in tokens]
    at, to = rng.randrange(len(words)), rng.randrange(len(words))
    shape = rng.randint(0, 11)
    if shape == 0:
        del words[at]
    elif shape == 1:
        alike = [i for i, token in enumerate(tokens) if token.token_type is tokens[at].token_type]
        to = rng.choice(alike)
        words[at], words[to] = words[to], words[at]
    elif shape == 2:
        words.insert(at, rng.choice(_WORDS))
    elif shape == 3:
        names = [i for i, token in enumerate(tokens) if token.token_type is TokenType.VAR]
        words[rng.choice(names)] = rng.choice(_NAMES)
    elif shape == 4:
        spots = [i for i, word in enumerate(words) if word in _OPERATORS]
        if spots:
            words[rng.choice(spots)] = rng.choice(_OPERATORS)
    elif shape == 5:
        spots = [i for i, token in enumerate(tokens) if token.token_type is TokenType.NUMBER]
        if spots:
            words[rng.choice(spots)] = str(rng.randint(1, 4))
    elif shape == 6:
        first, last = sorted((at, min(len(words), at + rng.choice([1, 3, 3, 5, 7]))))
        words[first:last] = ["(", *words[first:last], ")"]
    elif shape in (7, 8):
        _without_brackets(tokens, words, rng)
    elif shape == 9:
        _swapped(tokens, words, rng, rng.choice([TokenType.COMMA, TokenType.AND, TokenType.OR]))
    elif shape == 10:
        froms = [i for i, token in enumerate(tokens) if token.token_type is TokenType.FROM]
        if froms:
            more = rng.choice(["x0.a", "count(*)", "1", "x1.b", "x0.k", "x0.c0"])
            words.insert(rng.choice(froms), f", {more} AS {rng.choice(['z', 'z1', 'a', 'c'])}")
    else:
        words[at : at + 1] = []
        words.insert(min(to, len(words)), sql[tokens[at].start : tokens[at].end + 1])
    return " ".join(words)


def _without_brackets(tokens: tuple[Token, ...], words: list[str], rng: Random) -> None:
    opened: list[int] = []
    pairs = []
    for at, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            opened.append(at)
        elif token.token_type is TokenType.R_PAREN and opened:
            pairs.append((opened.pop(), at))
    if pairs:
        first, last = rng.choice(pairs)
        del words[last], words[first]


def _swapped(tokens: tuple[Token, ...], words: list[str], rng: Random, kind: TokenType) -> None:
    """Exchange the words on both sides of a comma, an AND or an OR."""
    spots = [at for at, token in enumerate(tokens) if token.token_type is kind]
    if not spots:
        return
    at = rng.choice(spots)
    left = max(0, at - rng.choice([1, 3, 3, 5]))
    right = min(len(words), at + 1 + (at - left))
    words[left:right] = [*words[at + 1 : right], words[at], *words[left:at]]
