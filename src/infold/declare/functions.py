"""
The functions of a project, from the files in ``functions/``: read before the models that call them.

An SQL function is expanded where it is called; of a Python function the call stays, by a name that
carries the digest of its code, and its arguments are cast in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import PurePosixPath

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.names.relation import Block, Table
from infold.analysis.names.resolve import resolve
from infold.analysis.names.select_parts import calls_over_rows
from infold.analysis.sql.expand import (
    Functions,
    ProjectFunction,
    Use,
    between,
    expand,
    index_behind_word,
    named_in,
)
from infold.analysis.sql.functions import BUILT_IN, CHANCE, GRAMMAR, TABLE_FUNCTIONS
from infold.analysis.sql.parse import Parsed, parse
from infold.analysis.sql.text import CALL, SPAN, Origins, Piece, spot_in
from infold.analysis.sql.token_calls import closing_bracket, split_arguments
from infold.core.functions import CalledFunction, FunctionCode
from infold.core.type_changes import ALIKE, is_type
from infold.core.yaml_tree import decoded
from infold.declare.folder import Folder
from infold.declare.keys import NAME
from infold.declare.python_functions import SessionRule, read_python_function, read_session_rule
from infold.messages import findings, function_findings
from infold.messages.errors import InfoldError, InfoldErrors, Spot


@dataclass(slots=True)
class ProjectFunctions:
    """
    What models can call; ``broken`` are functions, in lower case, that could not be read.

    ``rules`` are called in `cuts.rule` of sessions, and nowhere else.
    """

    functions: Functions = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    rules: Mapping[str, SessionRule] = field(default_factory=dict)

    def parse(self, file: str, source: str, start: int) -> tuple[Parsed, Sequence[CalledFunction]]:
        """
        The one SELECT of a file with the calls in it expanded, and what it calls.

        Raises InfoldError; of wrong calls InfoldErrors.
        """
        own = _OWN_NAME.search(source, start)
        if own is not None:
            at = spot_in(file, source, own.start(), own.end())
            raise findings.unknown_function(at, name=own[0], known=self.functions)
        if not named_in(source[start:], self.functions):
            return parse(file, source, start), ()
        errors: list[InfoldError] = []
        written = parse(file, source, start, own=frozenset(self.functions))
        expanded = expand(written, self.functions, errors)
        if errors:
            raise InfoldErrors(errors)
        if expanded is None:
            return parse(file, source, start), ()
        return parse(file, expanded.origins.text, start, origins=expanded.origins), expanded.called

    def expression(self, at: Spot, sql: str) -> tuple[str, Sequence[CalledFunction]]:
        """
        An expression of front matter with the calls in it expanded, and what it calls.

        One that cannot be parsed stays as it is: the check of its key says what is wrong. Raises
        InfoldError for a wrong call, at the place of the key.
        """
        if not named_in(sql, self.functions):
            return sql, ()
        errors: list[InfoldError] = []
        try:
            written = parse(at.file, f"{_BEFORE}{sql}{_BEHIND}", own=frozenset(self.functions))
        except InfoldError:
            return sql, ()
        expansion = expand(written, self.functions, errors)
        for error in errors:
            raise error.moved_to(at)
        if expansion is None:
            return sql, ()
        return expansion.origins.text[len(_BEFORE) : -len(_BEHIND)], expansion.called

    def rule(self, at: Spot, sql: str) -> CalledRule:
        """What `cuts.rule` of a model calls. Raises InfoldError where it is no call of a rule."""
        call = _CALL.match(sql)
        rule = self.rules.get(call[1].lower()) if call else None
        if call is None or rule is None or not _is_one_call(at, sql, call[1]):
            known = ", ".join(one.arguments.signature for one in self.rules.values()) or "none"
            raise function_findings.no_session_rule(at, sql=sql, known=known)
        name = rule.arguments.name.lower()
        callable_ = ProjectFunctions({**self.functions, name: rule.arguments}, self.broken)
        text, called = callable_.expression(at, sql)
        return CalledRule(text, rule.code, called)

    def names_broken(self, text: str) -> bool:
        """Whether a text may call a function that has errors of its own."""
        return bool(self.broken) and named_in(text, dict.fromkeys(self.broken, _NOTHING))


@dataclass(frozen=True, slots=True)
class CalledRule:
    """A session rule with what it is given of an event, as SQL, and the functions it needs."""

    sql: str
    code: FunctionCode
    called: Sequence[CalledFunction]


_CALL = re.compile(r"\s*(\w+)\s*\(")


def _is_one_call(at: Spot, sql: str, name: str) -> bool:
    """Whether an expression is one call of a function and nothing else."""
    try:
        parsed = parse(at.file, f"{_BEFORE}{sql}{_BEHIND}", own=frozenset({name.lower()}))
    except InfoldError:
        return False
    expression = parsed.tree.expressions[0].unalias().unnest()
    return isinstance(expression, exp.Anonymous) and expression.name.lower() == name.lower()


_OWN_NAME = re.compile(r"\binfold__(?:python|varying)__\w+")
"""A name that infold gives; nobody else does."""
_BEFORE, _BEHIND = "SELECT (", "\n) AS value"
_NOTHING = ProjectFunction("", "", (), "", (), ())


def read_functions(folder: Folder, errors: list[InfoldError]) -> ProjectFunctions:
    """The functions of a project; mistakes are noted."""
    headers: dict[str, Header] = {}
    functions: dict[str, ProjectFunction] = {}
    rules: dict[str, SessionRule] = {}
    places: dict[str, str] = {}
    broken: set[str] = set()
    known = dict(folder.files)
    for file, content in folder.functions():
        path = PurePosixPath(file)
        name = path.stem.lower()
        try:
            _check_name(path, places)
            if path.suffix != ".py":
                headers[name] = read_header(file, decoded(file, content))
            elif (rule := read_session_rule(folder.root, file, known)) is not None:
                rules[name] = rule
            else:
                functions[name] = read_python_function(folder.root, file, known)
        except InfoldError as error:
            errors.append(error)
            broken.add(name)
    _read_bodies(headers, functions, broken, errors)
    return ProjectFunctions(functions, frozenset(broken), rules)


def _check_name(path: PurePosixPath, places: dict[str, str]) -> None:
    at, name = Spot(str(path)), path.stem.lower()
    if name in BUILT_IN | GRAMMAR | TABLE_FUNCTIONS:
        raise function_findings.built_in_name(at, name=name)
    if not NAME.match(name) or not _can_be_called(name):
        raise function_findings.bad_function_name(at, name=path.stem)
    other = places.setdefault(name, str(path))
    if other != str(path):
        raise findings.duplicate_name(at, name=path.stem, other=other)


def _can_be_called(name: str) -> bool:
    """Whether a query with a call of that name has one: words of SQL mean something else."""
    try:
        query = parse("", f"SELECT {name}(1) AS value FROM other", own=frozenset({name}))
    except InfoldError:
        return False
    column = query.tree.expressions[0].unalias()
    return isinstance(column, exp.Anonymous) and column.name.lower() == name


def _read_bodies(
    headers: Mapping[str, Header],
    functions: dict[str, ProjectFunction],
    broken: set[str],
    errors: list[InfoldError],
) -> None:
    """The SQL functions into ``functions``, those that others call before these."""
    todo = [(name, False) for name in sorted(headers, reverse=True)]
    path: list[str] = []
    while todo:
        name, done = todo.pop()
        if done:
            path.pop()
            if name not in broken:
                _read_body(headers[name], functions, broken, errors)
        elif name in path:
            circle = [*path[path.index(name) :], name]
            at = Spot(headers[name].file)
            shown = " -> ".join(headers[one].name for one in circle)
            errors.append(function_findings.recursive_function(at, path=shown))
            broken.update(circle)
        elif name not in functions and name not in broken:
            path.append(name)
            todo.append((name, True))
            called = headers[name].calls(headers)
            todo.extend((one, False) for one in sorted(called, reverse=True))


def _read_body(
    header: Header,
    functions: dict[str, ProjectFunction],
    broken: set[str],
    errors: list[InfoldError],
) -> None:
    name = header.name.lower()
    if header.calls(dict.fromkeys(broken)):
        broken.add(name)  # that function has errors of its own
        return
    wrong: list[InfoldError] = []
    try:
        function = read_body(header, functions, wrong)
    except InfoldError as error:
        wrong.append(error)
    if wrong:
        errors.extend({str(error): error for error in wrong}.values())
        broken.add(name)
    else:
        functions[name] = function


# It is looked up like a query over one row whose columns are the parameters, so it can name nothing
# else. What it says is kept in pieces, between which arguments are put.


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
    excess = "a subquery" if inner is not None else ""
    if not plain or beyond or not _reads_itself(header, tree):
        excess = excess or "more than an expression"
    elif isinstance(tree.expressions[0], exp.Alias):
        excess = "a name for its result"
    elif any(tree.find_all(exp.Star)):
        excess = "*"
    if excess:
        at = text.spot_of(inner) if inner is not None else header.spot(header.tokens[header.body])
        errors.append(function_findings.not_an_expression(at, name=header.name, what=excess))


_OF_EXPRESSION = ("expressions", "from_", "kind", "hint")


def _reads_itself(header: Header, tree: exp.Expr) -> bool:
    """Whether FROM is the one that was put behind the body."""
    tables = list(tree.find_all(exp.Table))
    return len(tables) == 1 and tables[0].name.lower() == header.name.lower()


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
    for construct, node in calls_over_rows(block):
        at = text.spot_of(node)
        errors.append(function_findings.not_an_expression(at, name=name, what=construct))
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
        i = index_behind_word(text.tokens, i)
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
    uses: dict[int, tuple[int, Use]] = {}
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
        uses[parts[0].meta["start"]] = parts[at].meta["end"], use
    return uses


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
    fields: dict[int, str] = {}
    for struct in parsed.tree.find_all(exp.Struct):
        for one in struct.expressions:
            if isinstance(one, exp.PropertyEQ) and "end" in one.this.meta:
                start, end = one.this.meta["start"], one.this.meta["end"]
                inner = one.expression.find_all(exp.Identifier)
                if any(part.meta.get("start") == start for part in inner):
                    fields[end] = parsed.text.sql[start : end + 1]
    return fields


def _lambda_variables(header: Header, parsed: Parsed) -> Mapping[int, str]:
    """Variables of lambda functions by their starts, with names that no argument can have."""
    variables: dict[int, str] = {}
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
            variables[part.meta["start"]] = f"{_OWN}{header.name.lower()}__{named}"
    return variables


_OWN = "infold__"
"""Prefix of names that infold gives, and nobody else."""


# It is the statement that Spark has. Clauses that say nothing new are accepted, others are refused.


@dataclass(frozen=True, slots=True, eq=False)
class Header:
    """A function's file up to its body: what others need to call it."""

    name: str
    file: str
    source: str
    tokens: tuple[Token, ...]
    parameters: tuple[tuple[str, str], ...]
    returns: str
    body: int
    """The index of the token RETURN, which the body follows."""

    def calls(self, names: Collection[str]) -> frozenset[str]:
        """Which of these functions, in lower case, the body calls."""
        pairs = pairwise(self.tokens[self.body :])
        called = (one.text.lower() for one, two in pairs if two.token_type is TokenType.L_PAREN)
        return frozenset(called) & frozenset(names)

    def spot(self, token: Token) -> Spot:
        """The place of a token."""
        return spot_in(self.file, self.source, token.start, token.end + 1)

    @property
    def digest(self) -> str:
        """What identifies the function, whatever those that it calls say."""
        words = (
            self.source[token.start : token.end + 1]
            if token.token_type is TokenType.STRING
            else token.text.lower()
            for token in self.tokens
        )
        return sha256("\0".join(words).encode()).hexdigest()


def read_header(file: str, source: str) -> Header:
    """The header of a function's file. Raises InfoldError."""
    name = PurePosixPath(file).stem
    try:
        tokens = tuple(Spark().tokenize(source))
    except TokenError:
        why = "a quote or a comment is never closed"
        raise findings.bad_sql(Spot(file), why=why) from None
    return _Reader(name, file, source, _one_statement(file, source, tokens)).header()


def _one_statement(file: str, source: str, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """The tokens without the semicolon at the end."""
    for i, token in enumerate(tokens):
        if token.token_type is TokenType.SEMICOLON:
            if i + 1 < len(tokens):
                behind = tokens[i + 1]
                at = spot_in(file, source, behind.start, behind.end + 1)
                raise function_findings.not_a_function(at, what="nothing after one function")
            return tokens[:i]
    return tokens


@dataclass(slots=True)
class _Reader:
    name: str
    file: str
    source: str
    tokens: tuple[Token, ...]
    at: int = 0

    def header(self) -> Header:
        """CREATE FUNCTION name(parameters) RETURNS type … RETURN."""
        self._expect("CREATE")
        if self._take("OR"):
            self._expect("REPLACE")
        self._take("TEMPORARY") or self._take("TEMP")
        self._expect("FUNCTION")
        if self._take("IF"):
            self._expect("NOT")
            self._expect("EXISTS")
        self._named()
        parameters = tuple(self._parameters())
        returns = ""
        if self._take("RETURNS"):
            if self._word() == "TABLE":
                raise self._unsupported("a table as the result", "Return one value.")
            returns = self._type(self._end_of_type())
        self._characteristics()
        body = self.at
        self._expect("RETURN")
        if self.at >= len(self.tokens):
            raise self._wanted("an expression")
        return Header(self.name, self.file, self.source, self.tokens, parameters, returns, body)

    def _named(self) -> None:
        token = self._token("the name of the function")
        self.at += 1
        if self._word() == ".":
            raise self._unsupported("a name with a catalog", "Give the name alone.")
        if token.text.lower() != self.name.lower():
            raise function_findings.function_named_otherwise(
                self._spot(token), file=self.file, name=token.text
            )

    def _parameters(self) -> Iterator[tuple[str, str]]:
        opening = self.at
        self._expect("(")
        close = closing_bracket(self.tokens, opening)
        known: set[str] = set()
        for start, end in _split_parameters(self.tokens, self.at, close):
            token = self.tokens[start]
            if token.text.lower() in known:
                raise function_findings.duplicate_parameter(self._spot(token), name=token.text)
            known.add(token.text.lower())
            self.at = start + 1
            words = [one.text.upper() for one in self.tokens[self.at : end]]
            for word in ("DEFAULT", "COMMENT", "NOT"):
                if word in words:
                    self.at += words.index(word)
                    raise self._unsupported(f"{word} of a parameter", "Leave it out.")
            yield token.text, self._type(end)
        self.at = close
        self._expect(")")

    def _type(self, end: int) -> str:
        if self.at >= end:
            raise self._wanted("a type")
        first, last = self.tokens[self.at], self.tokens[end - 1]
        text = " ".join(self.source[first.start : last.end + 1].split())
        if not is_type(text) or "char" in text.lower():
            known = ALIKE.get(text.lower(), "string" if "char" in text.lower() else "")
            at = spot_in(self.file, self.source, first.start, last.end + 1)
            raise function_findings.bad_parameter_type(at, type_=text, nearest=known)
        self.at = end
        return text.upper() if "<" not in text else text

    def _end_of_type(self) -> int:
        """The index behind a type: before the next clause outside of all brackets."""
        depth, i = 0, self.at
        while i < len(self.tokens):
            text = self.tokens[i].text
            depth += (text in ("(", "<")) - (text in (")", ">")) - 2 * (text == ">>")
            if depth <= 0 and i > self.at and text.upper() in _AFTER_TYPE:
                return i
            i += 1
        return i

    def _characteristics(self) -> None:
        """The clauses between the header and RETURN; those that say nothing new are accepted."""
        while True:
            if self._take("LANGUAGE"):
                self._expect("SQL")
            elif self._take("COMMENT"):
                self.at += 1
            elif self._take("CONTAINS"):
                self._expect("SQL")
            elif self._take("NOT"):
                raise self._unsupported(
                    "NOT DETERMINISTIC", "What the body calls decides; leave it out."
                )
            elif not self._take("DETERMINISTIC"):
                break
        if self._word() in ("READS", "SQL", "DEFAULT", "USING", "AS"):
            raise self._unsupported(self._word(), "Leave it out.")

    def _word(self) -> str:
        return self.tokens[self.at].text.upper() if self.at < len(self.tokens) else ""

    def _take(self, word: str) -> bool:
        is_next = self._word() == word
        self.at += is_next
        return is_next

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._wanted(word)

    def _token(self, expected: str) -> Token:
        if self.at >= len(self.tokens):
            raise self._wanted(expected)
        return self.tokens[self.at]

    def _wanted(self, expected: str) -> InfoldError:
        return function_findings.not_a_function(self._here(), what=expected)

    def _unsupported(self, clause: str, instead: str) -> InfoldError:
        return function_findings.unsupported_clause(self._here(), what=clause, instead=instead)

    def _here(self) -> Spot:
        if not self.tokens:
            return Spot(self.file)
        return self._spot(self.tokens[min(self.at, len(self.tokens) - 1)])

    def _spot(self, token: Token) -> Spot:
        return spot_in(self.file, self.source, token.start, token.end + 1)


_AFTER_TYPE = (
    "RETURN", "LANGUAGE", "COMMENT", "CONTAINS", "NOT", "DETERMINISTIC", "READS", "SQL", "DEFAULT",
    "USING", "AS",
)  # fmt: skip


def _split_parameters(tokens: tuple[Token, ...], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parameters, split at the commas that are not inside of a type."""
    depth, at = 0, start
    for first, last in split_arguments(tokens, start, end):
        for i in range(first, last):
            text = tokens[i].text
            depth += (text == "<") - (text == ">") - 2 * (text == ">>")
        if depth <= 0:
            yield at, last
            at, depth = last + 1, 0
