"""
The body of an SQL function: one expression over its parameters.

It is looked up like a query over one row whose columns are the parameters, so it can name nothing
else. What it says is kept in pieces, between which arguments are put.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from infold.analysis.names.relation import Block, Table
from infold.analysis.names.resolve import resolve
from infold.analysis.names.row_wise import calls_over_rows
from infold.analysis.sql.expand import Functions, ProjectFunction, Use, behind_word, between, expand
from infold.analysis.sql.functions import BUILT_IN, CHANCE, GRAMMAR
from infold.analysis.sql.origins import Origins, Piece
from infold.analysis.sql.parse import Parsed, parse
from infold.analysis.sql.text import CALL, SPAN
from infold.core.functions import CalledFunction
from infold.declare.function_headers import Header
from infold.messages import findings, function_findings
from infold.messages.errors import InfoldError


def read_body(header: Header, functions: Functions, errors: list[InfoldError]) -> ProjectFunction:
    """
    The function of a header, the ``functions`` that it calls expanded in it.

    Mistakes are noted; then it is not to be used. Raises InfoldError for what cannot be parsed.
    """
    at = header.tokens[header.body].start
    # RETURN is as long as SELECT: everything else keeps its place.
    above = "".join(c if c == "\n" else " " for c in header.source[:at])
    end = header.tokens[-1].end + 1
    query = f"{above}SELECT{header.source[at + len('RETURN') : end]}\nFROM `{header.name}`"
    as_written = Origins.of(header.source, [Piece(query, 0, len(header.source))])
    parsed = parse(header.file, query, at, own=frozenset(functions), origins=as_written)
    _check_shape(header, parsed, errors)
    _check_names(parsed, functions, errors)
    expanded = expand(parsed, functions, errors, named=False) if not errors else None
    if not errors and expanded is not None:
        parsed = parse(header.file, expanded.origins.text, at, origins=expanded.origins)
    body = tuple(_body(header, parsed, errors)) if not errors else ()
    own = CalledFunction(header.name, header.file, header.digest)
    called = expanded.called if expanded is not None else ()
    return ProjectFunction(
        header.name,
        header.file,
        header.parameters,
        header.returns,
        body,
        (own, *called),
        bool(header.calls(CHANCE)) or (expanded is not None and expanded.varies),
    )


def _check_shape(header: Header, parsed: Parsed, errors: list[InfoldError]) -> None:
    """Note everything that makes the body more than one expression."""
    tree, text = parsed.tree, parsed.text
    inner = next((one for one in tree.find_all(exp.Query) if one is not tree), None)
    plain = isinstance(tree, exp.Select) and len(tree.expressions) == 1
    beyond = [key for key, value in tree.args.items() if value and key not in _OF_EXPRESSION]
    what = "a subquery" if inner is not None else ""
    if not plain or beyond or not _reads_itself(header, tree):
        what = what or "more than an expression"
    elif isinstance(tree.expressions[0], exp.Alias):
        what = "a name for its result"
    elif any(tree.find_all(exp.Star)):
        what = "*"
    if what:
        at = text.spot_of(inner) if inner is not None else header.spot(header.tokens[header.body])
        errors.append(function_findings.not_an_expression(at, name=header.name, what=what))


_OF_EXPRESSION = ("expressions", "from_", "kind", "hint")


def _reads_itself(header: Header, tree: exp.Expr) -> bool:
    """Whether FROM is the one that was put behind the body."""
    found = list(tree.find_all(exp.Table))
    return len(found) == 1 and found[0].name.lower() == header.name.lower()


def _check_names(parsed: Parsed, functions: Functions, errors: list[InfoldError]) -> None:
    """Note calls of functions that nobody has."""
    for node in parsed.tree.walk():
        name = str(node.meta.get(CALL) or "") if node.meta else ""
        if name and name.lower() not in functions and name.lower() not in BUILT_IN | GRAMMAR:
            i = parsed.text.token_index(node.meta[SPAN][0])
            at = parsed.text.spot_of_token(parsed.text.tokens[i])
            known = [*BUILT_IN, *(one.name for one in functions.values())]
            errors.append(findings.unknown_function(at, name=name, known=known))


def _body(header: Header, parsed: Parsed, errors: list[InfoldError]) -> Iterator[str | Use]:
    """The pieces of the body, on one line."""
    text, name = parsed.text, header.name
    table = Table(name, tuple(parameter for parameter, _ in header.parameters))
    resolved = resolve(text, parsed.tree, {name.lower(): table})
    block = resolved.relation
    assert isinstance(block, Block), "one SELECT"
    errors.extend(_as_parameter(header, error) for error in resolved.errors)
    for what, node in calls_over_rows(block):
        at = text.spot_of(node)
        errors.append(function_findings.not_an_expression(at, name=name, what=what))
    _check_fields(parsed, errors)
    if errors:
        return
    uses, renamed = _uses(header, parsed, block), _lambda_variables(header, parsed)
    fields = _nameless_fields(parsed)
    end = len(text.tokens) - 2  # FROM and the name
    i = 1
    while i < end:
        last, use = uses.get(text.tokens[i].start, (text.tokens[i].end, None))
        while text.tokens[i].end < last:
            i += 1
        token = text.tokens[i]
        if use is not None:
            yield use
        else:
            yield renamed.get(token.start) or text.sql[token.start : token.end + 1]
        if token.end in fields:
            yield f" AS {fields[token.end]}"
        i = behind_word(text.tokens, i)
        if i < end:
            yield between(text, token, text.tokens[i])


def _as_parameter(header: Header, error: InfoldError) -> InfoldError:
    """A name that is none of a parameter's, in the words of functions."""
    if error.slug != "unknown-column" or error.at is None:
        return error
    column = error.at.text[error.at.column - 1 :][: error.at.width]
    known = [name for name, _ in header.parameters]
    return function_findings.unknown_parameter(
        error.at, name=header.name, column=column, known=known
    )


def _uses(header: Header, parsed: Parsed, block: Block) -> Mapping[int, tuple[int, Use]]:
    """Where parameters are named: the start, and the last character with what is put there."""
    numbers = {name.lower(): at for at, (name, _) in enumerate(header.parameters)}
    found: dict[int, tuple[int, Use]] = {}
    for node in parsed.tree.find_all(exp.Column):
        origin = block.origins.get(node)
        if origin is None:
            continue
        parts = sorted(node.find_all(exp.Identifier), key=lambda part: int(part.meta["start"]))
        at = next(i for i, part in enumerate(parts) if part.name.lower() == origin.column)
        if at == 0 and len(parts) > 1 and not origin.fields:
            at = 1  # a parameter with the name of the function
        nested = at + 1 < len(parts) or isinstance(node.parent, (exp.Dot, exp.Bracket))
        use = Use(numbers[origin.column], "(" if nested else "", ")" if nested else "")
        found[parts[0].meta["start"]] = parts[at].meta["end"], use
    return found


def _check_fields(parsed: Parsed, errors: list[InfoldError]) -> None:
    """Note calls that make fields named as their arguments, which would be lost."""
    for node in parsed.tree.find_all(exp.ArraysZip, exp.Tuple):
        compared = isinstance(node, exp.Tuple) and isinstance(node.parent, exp.In)
        named = (one for one in node.iter_expressions() if one.find(exp.Column, exp.Identifier))
        if not compared and any(isinstance(one, (exp.Column, exp.Identifier)) for one in named):
            call = "a list in brackets" if isinstance(node, exp.Tuple) else "arrays_zip"
            errors.append(function_findings.nameless_field(parsed.text.spot_of(node), call=call))


def _nameless_fields(parsed: Parsed) -> Mapping[int, str]:
    """Arguments of struct that name its fields: the last character of each, and the name."""
    found: dict[int, str] = {}
    for struct in parsed.tree.find_all(exp.Struct):
        for one in struct.expressions:
            if isinstance(one, exp.PropertyEQ) and "end" in one.this.meta:
                start, end = one.this.meta["start"], one.this.meta["end"]
                inner = one.expression.find_all(exp.Identifier)
                if any(part.meta.get("start") == start for part in inner):
                    found[end] = parsed.text.sql[start : end + 1]
    return found


def _lambda_variables(header: Header, parsed: Parsed) -> Mapping[int, str]:
    """Variables of lambda functions by their starts, with names that no argument can have."""
    found: dict[int, str] = {}
    for node in parsed.tree.find_all(exp.Lambda):
        names = {one.name.lower() for one in node.expressions}
        for part in node.find_all(exp.Identifier):
            outer, key = part.parent, part.arg_key
            of_another = isinstance(outer, exp.Column) or (
                (isinstance(outer, exp.Dot) and key == "expression")
                or (isinstance(outer, exp.PropertyEQ) and key == "this")
            )
            named = part.name.lower()
            if of_another or named not in names or named.startswith(_OWN) or not part.meta:
                continue
            found[part.meta["start"]] = f"{_OWN}{header.name.lower()}__{named}"
    return found


_OWN = "infold__"
"""How names begin that nobody else gives."""
