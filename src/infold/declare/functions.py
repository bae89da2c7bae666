"""
The functions of a project, from the files in ``functions/``: read before the models that call them.

An SQL function is expanded where it is called; of a Python function the call stays, by a name that
carries the digest of its code, and its arguments are cast in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from sqlglot import exp

from infold.analysis.sql.expand import Functions, ProjectFunction, expand, named_in
from infold.analysis.sql.functions import BUILT_IN, GRAMMAR, TABLE_FUNCTIONS
from infold.analysis.sql.origins import spot_in
from infold.analysis.sql.parse import Parsed, parse
from infold.core.functions import CalledFunction, FunctionCode
from infold.declare.folder import Folder
from infold.declare.function_headers import Header, read_header
from infold.declare.keys import NAME
from infold.declare.python_functions import read_python_function
from infold.declare.session_rules import SessionRule, read_session_rule
from infold.declare.sql_functions import read_body
from infold.declare.texts import decoded
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
        found = expand(written, self.functions, errors)
        if errors:
            raise InfoldErrors(errors)
        if found is None:
            return parse(file, source, start), ()
        return parse(file, found.origins.text, start, origins=found.origins), found.called

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
        found = expand(written, self.functions, errors)
        for error in errors:
            raise error.moved_to(at)
        if found is None:
            return sql, ()
        return found.origins.text[len(_BEFORE) : -len(_BEHIND)], found.called

    def rule(self, at: Spot, sql: str) -> CalledRule:
        """What `cuts.rule` of a model calls. Raises InfoldError where it is no call of a rule."""
        found = _CALL.match(sql)
        rule = self.rules.get(found[1].lower()) if found else None
        if found is None or rule is None or not _is_one_call(at, sql, found[1]):
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
    found = parsed.tree.expressions[0].unalias().unnest()
    return isinstance(found, exp.Anonymous) and found.name.lower() == name.lower()


_OWN_NAME = re.compile(r"\binfold__(?:python|varying)__\w+")
"""A name that infold gives; nobody else does."""
_BEFORE, _BEHIND = "SELECT (", "\n) AS value"
_NOTHING = ProjectFunction("", "", (), "", (), ())


def read_functions(folder: Folder, errors: list[InfoldError]) -> ProjectFunctions:
    """The functions of a project; mistakes are noted."""
    headers: dict[str, Header] = {}
    found: dict[str, ProjectFunction] = {}
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
                found[name] = read_python_function(folder.root, file, known)
        except InfoldError as error:
            errors.append(error)
            broken.add(name)
    _read_bodies(headers, found, broken, errors)
    return ProjectFunctions(found, frozenset(broken), rules)


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
    found: dict[str, ProjectFunction],
    broken: set[str],
    errors: list[InfoldError],
) -> None:
    """The SQL functions into ``found``, those that others call before these."""
    todo = [(name, False) for name in sorted(headers, reverse=True)]
    path: list[str] = []
    while todo:
        name, done = todo.pop()
        if done:
            path.pop()
            if name not in broken:
                _read_body(headers[name], found, broken, errors)
        elif name in path:
            circle = [*path[path.index(name) :], name]
            at = Spot(headers[name].file)
            shown = " -> ".join(headers[one].name for one in circle)
            errors.append(function_findings.recursive_function(at, path=shown))
            broken.update(circle)
        elif name not in found and name not in broken:
            path.append(name)
            todo.append((name, True))
            called = headers[name].calls(headers)
            todo.extend((one, False) for one in sorted(called, reverse=True))


def _read_body(
    header: Header,
    found: dict[str, ProjectFunction],
    broken: set[str],
    errors: list[InfoldError],
) -> None:
    name = header.name.lower()
    if header.calls(dict.fromkeys(broken)):
        broken.add(name)  # that function has errors of its own
        return
    wrong: list[InfoldError] = []
    try:
        function = read_body(header, found, wrong)
    except InfoldError as error:
        wrong.append(error)
    if wrong:
        errors.extend({str(error): error for error in wrong}.values())
        broken.add(name)
    else:
        found[name] = function
