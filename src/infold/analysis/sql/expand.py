"""
Calls of a project's functions replaced by what the functions say.

As in Spark, each argument is cast to the type of its parameter and the result to the type that the
function returns. An argument takes the place of its parameter as a whole expression. A function
sees nothing but its parameters, and no name of its own is seen by an argument. So the expanded
query means what the calls mean, and what is proven of it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.sql.functions import varies
from infold.analysis.sql.parse import Parsed
from infold.analysis.sql.text import CALL, SPAN, Origins, Piece, Text
from infold.analysis.sql.token_calls import Call, call_at
from infold.core.functions import CalledFunction
from infold.messages import function_findings
from infold.messages.errors import InfoldError

LIMIT = 1_000_000
"""How many characters an expanded query may have: an argument may be repeated at every level."""


@dataclass(frozen=True, slots=True)
class Use:
    """A place of a parameter, by its number, in the body of a function."""

    parameter: int
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ProjectFunction:
    """
    A function of the project, ready to be expanded: the pieces of its body on one line.

    ``parameters`` are names and types. ``returns`` is empty where the body says the type.
    ``called`` are the function itself and those that it calls. One that ``varies`` may give another
    value each time.
    """

    name: str
    file: str
    parameters: tuple[tuple[str, str], ...]
    returns: str
    body: tuple[str | Use, ...]
    called: tuple[CalledFunction, ...]
    varies: bool = False

    @property
    def calls_python(self) -> bool:
        """Whether it is a Python function, or calls one."""
        return any(one.python is not None for one in self.called)

    @property
    def signature(self) -> str:
        """The function as its callers see it."""
        parameters = ", ".join(f"{name} {type_}" for name, type_ in self.parameters)
        returns = f" RETURNS {self.returns}" if self.returns else ""
        return f"{self.name}({parameters}){returns} in {self.file}"


Functions = Mapping[str, ProjectFunction]
"""The functions of a project by their names in lower case."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A text with its calls expanded, and the functions that they call."""

    origins: Origins
    called: tuple[CalledFunction, ...]
    varies: bool


def named_in(text: str, functions: Functions) -> bool:
    """Whether a text may call a function of the project."""
    return any(word.lower() in functions for word in _WORD.findall(text)) if functions else False


_WORD = re.compile(r"\w+")


def expand(
    parsed: Parsed, functions: Functions, errors: list[InfoldError], *, named: bool = True
) -> Expanded | None:
    """
    A query with its calls expanded; None where it has none. Wrong calls are noted.

    A call that is a whole column needs a name, unless what is ``named`` is no matter.
    """
    work = _Expansion(parsed.text, functions, errors, named)
    for node in parsed.tree.walk():
        name = node.meta.get(CALL) if node.meta else None
        if name is not None and str(name).lower() in functions:
            work.note(node, functions[str(name).lower()])
    if not work.calls:
        return None
    return work.expanded()


@dataclass(slots=True)
class _Expansion:
    text: Text
    functions: Functions
    errors: list[InfoldError]
    named: bool
    calls: dict[int, tuple[ProjectFunction, Call]] = field(default_factory=dict)
    """By the index of its first token."""

    def note(self, node: exp.Expr, function: ProjectFunction) -> None:
        """A call in the tree; what is wrong with it is noted."""
        i = self.text.token_index(node.meta[SPAN][0])
        if i and self.text.tokens[i - 1].token_type is TokenType.DOT:
            return  # a function of a catalog: refused later
        call = call_at(self.text.tokens, i)
        self.calls[i] = function, call
        self.errors.extend(self._wrong(node, function, call))

    def _wrong(
        self, node: exp.Expr, function: ProjectFunction, call: Call
    ) -> Iterator[InfoldError]:
        at = self.text.spot_of_token(self.text.tokens[call.start])
        name, signature = function.name, function.signature
        beside = _beside(call)
        if beside:
            yield function_findings.not_a_plain_call(
                at, what=beside, name=name, signature=signature
            )
            return
        if not isinstance(node, exp.Anonymous) or isinstance(node.parent, (exp.Table, exp.Lateral)):
            yield function_findings.lost_call(at, name=name, signature=signature)
            return
        if function.calls_python and node.find_ancestor(exp.Lambda):
            yield function_findings.in_lambda(at, name=name, signature=signature)
        wanted, found = len(function.parameters), len(call.arguments)
        if wanted != found:
            yield function_findings.wrong_arguments(
                at, wanted=_arguments(wanted), found=found or "none", name=name, signature=signature
            )
            return
        if self.named and _is_nameless_column(node):
            yield function_findings.nameless_call(at, name=name)
        for argument, tokens in zip(node.expressions, call.arguments, strict=False):
            problem, todo = _unusable(argument)
            if problem:
                place = self.text.spot_of_token(self.text.tokens[tokens[0]])
                yield function_findings.bad_argument(
                    place, what=problem, todo=todo, name=name, signature=signature
                )

    def expanded(self) -> Expanded:
        """The text with all calls expanded."""
        text = self.text
        before = Piece(text.source[: text.start], 0, text.start)
        after = Piece(text.source[text.end :], text.end, len(text.source))
        pieces = [before]
        if not self.errors:
            pieces += self._pieces(0, len(text.tokens), inside=False)
        written = text.origins.written if text.origins else text.source
        origins = Origins.of(written, [*pieces, after])
        called = {one.name: one for function, _ in self.calls.values() for one in function.called}
        return Expanded(
            origins,
            tuple(called[name] for name in sorted(called)),
            any(function.varies for function, _ in self.calls.values()),
        )

    def _pieces(self, start: int, end: int, *, inside: bool) -> list[Piece]:
        """``tokens[start:end]``; ``inside`` a call, what is between them is on one line."""
        pieces: list[Piece] = []
        tokens, i = self.text.tokens, start
        while i < end:
            if i in self.calls:
                pieces += self._call(*self.calls[i], padded=not inside)
                i = self.calls[i][1].end
            else:
                pieces.append(self._written(tokens[i].start, tokens[i].end + 1))
                i = index_behind_word(tokens, i)
            if i < end:
                gap = self._written(tokens[i - 1].end + 1, tokens[i].start)
                pieces.append(_one_line(gap) if inside else gap)
        return pieces

    def _written(self, start: int, end: int) -> Piece:
        at = self.text.start
        return Piece(self.text.sql[start:end], at + start, at + end)

    def _call(self, function: ProjectFunction, call: Call, *, padded: bool) -> list[Piece]:
        """A call's expansion, followed by as many line breaks as the call had."""
        tokens, at = self.text.tokens, self.text.start
        start, end = at + tokens[call.start].start, at + tokens[call.end - 1].end + 1
        arguments = [self._pieces(*argument, inside=True) for argument in call.arguments]
        self._check_repeated(function, call, arguments)
        pieces = [*_substituted(function, arguments, start, end)]
        if sum(len(piece.text) for piece in pieces) > LIMIT:
            spot = self.text.spot_of_token(tokens[call.start])
            raise function_findings.too_long(spot, name=function.name, limit=f"{LIMIT:,}")
        if padded:
            written = self.text.source.count("\n", start, end)
            missing = written - sum(piece.text.count("\n") for piece in pieces)
            pieces.append(Piece("\n" * max(0, missing), end - 1, end))
        return pieces

    def _check_repeated(
        self, function: ProjectFunction, call: Call, arguments: Sequence[Sequence[Piece]]
    ) -> None:
        """An argument that varies is drawn once in Spark; it must not be drawn twice here."""
        for number, (argument, written) in enumerate(zip(arguments, call.arguments, strict=True)):
            uses = sum(isinstance(p, Use) and p.parameter == number for p in function.body)
            if uses > 1 and self._varies(argument, written):
                place = self.text.spot_of_token(self.text.tokens[written[0]])
                self.errors.append(
                    function_findings.bad_argument(
                        place,
                        what="a value by chance",
                        name=function.name,
                        signature=function.signature,
                        todo="The function uses it several times: make a column of it in a "
                        "subquery first.",
                    )
                )

    def _varies(self, argument: Sequence[Piece], written: tuple[int, int]) -> bool:
        text = "".join(piece.text for piece in argument)
        by_chance = any(map(varies, _CALLED.findall(text)))
        inner = (self.calls[i][0] for i in range(*written) if i in self.calls)
        return by_chance or any(function.varies for function in inner)


_CALLED = re.compile(r"(\w+)\s*\(")


def _substituted(
    function: ProjectFunction, arguments: Sequence[Sequence[Piece]], start: int, end: int
) -> Iterator[Piece]:
    """The body with the arguments in it, which stands for the call at ``[start, end)``."""

    def own(text: str) -> Piece:
        return Piece(text, start, end, function.file)

    yield own("cast(" if function.returns else "(")
    for part in function.body:
        if isinstance(part, str):
            yield own(part)
        else:
            _, type_ = function.parameters[part.parameter]
            yield own(f"{part.before}cast(")
            yield from arguments[part.parameter]
            yield own(f" AS {type_}){part.after}")
    yield own(f" AS {function.returns})" if function.returns else ")")


def index_behind_word(tokens: Sequence[Token], i: int) -> int:
    """The index of the next word of the text: ``3.75D`` is one word and three tokens."""
    end = tokens[i].end
    while i < len(tokens) and tokens[i].start <= end:
        i += 1
    return i


def _one_line(gap: Piece) -> Piece:
    """What is between two tokens, without line breaks and comments."""
    plain = gap.text.isspace() and "\n" not in gap.text
    return gap if plain or not gap.text else Piece(" ", gap.start, gap.end)


def between(text: Text, token: Token, behind: Token) -> str:
    """What is between two tokens, without line breaks and comments."""
    return _one_line(Piece(text.sql[token.end + 1 : behind.start], 0, 0)).text


def _beside(call: Call) -> str:
    """What a call has that only aggregates and window functions have."""
    if call.distinct:
        return "DISTINCT"
    if call.over:
        return "OVER"
    if call.filter is not None:
        return "FILTER"
    if call.within:
        return "WITHIN GROUP"
    return f"{call.nulls.upper()} NULLS" if call.nulls else ""


def _arguments(count: int) -> str:
    if not count:
        return "no arguments"
    return f"{count} argument" if count == 1 else f"{count} arguments"


def _unusable(argument: exp.Expr) -> tuple[str, str]:
    """What an argument is that no value can be made of, and what to write; empty if it is fine."""
    if isinstance(argument, (exp.Kwarg, exp.PropertyEQ)):
        return "a named argument", "Give the arguments in the order of the parameters."
    if isinstance(argument, exp.Alias):
        return "an alias", "Write the expression alone."
    star = argument.this if isinstance(argument, exp.Column) else argument
    if isinstance(star, exp.Star):
        return "*", "Name the columns."
    if isinstance(argument, exp.Lambda):
        return "a lambda function", "Call the function in it."
    return "", ""


def _is_nameless_column(node: exp.Expr) -> bool:
    """Whether a call alone is a column of a SELECT whose columns have names."""
    outer = node.parent
    while isinstance(outer, exp.Paren):
        node, outer = outer, outer.parent
    if not isinstance(outer, exp.Select) or node.arg_key != "expressions":
        return False
    around = outer.parent
    if isinstance(around, exp.SetOperation):
        return around.this is outer
    return around is None or isinstance(around, (exp.CTE, exp.Subquery))
