"""
CREATE FUNCTION name(parameter TYPE, …) RETURNS TYPE RETURN …: a function's file up to its body.

It is the statement that Spark has. Clauses that say nothing new are accepted, others are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import PurePosixPath

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from infold.analysis.sql.origins import spot_in
from infold.analysis.sql.token_calls import closing_bracket, split_arguments
from infold.declare.types import ALIKE, is_type
from infold.messages import findings, function_findings
from infold.messages.errors import InfoldError, Spot


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
        found = self._word() == word
        self.at += found
        return found

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._wanted(word)

    def _token(self, what: str) -> Token:
        if self.at >= len(self.tokens):
            raise self._wanted(what)
        return self.tokens[self.at]

    def _wanted(self, what: str) -> InfoldError:
        return function_findings.not_a_function(self._here(), what=what)

    def _unsupported(self, what: str, instead: str) -> InfoldError:
        return function_findings.unsupported_clause(self._here(), what=what, instead=instead)

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
    for one, two in split_arguments(tokens, start, end):
        for i in range(one, two):
            text = tokens[i].text
            depth += (text == "<") - (text == ">") - 2 * (text == ">>")
        if depth <= 0:
            yield at, two
            at, depth = two + 1, 0
