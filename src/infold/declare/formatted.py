"""
The SELECT of a model laid out anew by sqlfmt, and the proof that nothing else became of it.

sqlfmt changes layout and the case of keywords; names keep theirs, as Spark stores them. Its result
is used only if it has the same tokens, the same tree and the same words in comments. sqlglot's own
printer would say another query: with other functions, casts and quotes, and so of another
fingerprint. Front matter stays as it is, to the letter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlglot.tokenizer_core import TokenType

from infold.analysis.sql.parse import Parsed, parse
from infold.analysis.sql.run_interval import replace_run_interval
from infold.core.yaml_tree import decoded, split_front_matter
from infold.declare.folder import Folder, read_folder
from infold.declare.load import deeply
from infold.messages import command_errors
from infold.messages.errors import InfoldError

LINE = 100
"""Signs in a line, as far as a line can be broken."""

_MOST_PASSES = 4
"""How often a result is laid out again, as comments in a line may need it, before it stays so."""

PACKAGE = "shandy-sqlfmt"
"""What has sqlfmt in it: an extra, as it brings a template language along."""


@dataclass(frozen=True, slots=True)
class Formatted:
    """The models that were asked for: the new texts, what is as it should be, what is left."""

    changed: Mapping[str, str]
    same: tuple[str, ...]
    left: tuple[InfoldError, ...]


def format_models(root: Path, names: tuple[str, ...] = ()) -> Formatted:
    """The SQL models of a project, all or those of these names, laid out; nothing is written."""
    check_installed()
    folder = read_folder(root)
    files = [
        (file, content)
        for file, content in folder.models()
        if file.endswith(".sql") and (not names or Path(file).stem in names)
    ]
    stems = {Path(file).stem for file, _ in files}
    for name in names:
        if name not in stems:
            known = [Path(file).stem for file, _ in folder.models() if file.endswith(".sql")]
            raise command_errors.unknown_model(name, known)
    changed: dict[str, str] = {}
    same: list[str] = []
    left: list[InfoldError] = []
    for file, content in files:
        try:
            before = decoded(file, content)
            after = format_text(file, before)
        except InfoldError as error:
            left += error.each
            continue
        if after == before:
            same.append(file)
        else:
            changed[file] = after
    unequal = deeply(lambda: _other_fingerprints(folder, changed))
    left += [command_errors.not_formatted(file=file, why="its fingerprint") for file in unequal]
    equal = {file: text for file, text in changed.items() if file not in unequal}
    return Formatted(equal, tuple(same), tuple(left))


def check_installed() -> None:
    """Raise an error that names what has to be installed, if it is not."""
    if find_spec("sqlfmt") is None:
        raise command_errors.package_missing(package=PACKAGE, method="`infold format`")


def format_text(file: str, source: str) -> str:
    """
    The text of a model's file with its SELECT laid out.

    Raises InfoldError where there is none that can be parsed, or where something would change.
    """
    start = split_front_matter(file, source).sql_start
    head, query = source[:start], source[start:]
    before = _parsed(file, source, start)
    laid_out = _laid_out(file, query)
    if "\r\n" in source:
        laid_out = laid_out.replace("\n", "\r\n")
    after = head + laid_out
    if difference := _difference(before, _parsed(file, after, start), query, laid_out):
        raise command_errors.not_formatted(file=file, why=difference)
    return after


def _laid_out(file: str, query: str) -> str:
    from sqlfmt.api import format_string
    from sqlfmt.exception import SqlfmtError
    from sqlfmt.mode import Mode

    # sqlfmt calls so the dialect that is every other one with names as they are written.
    mode = Mode(dialect_name="clickhouse", line_length=LINE, no_jinjafmt=True)
    before, after = "", query.replace("\r\n", "\n")
    try:
        for _ in range(_MOST_PASSES):
            if after == before:
                break
            before, after = after, format_string(after, mode)
        return after
    except (SqlfmtError, RecursionError) as error:
        why = str(error).splitlines()[0]
        raise command_errors.not_laid_out(file=file, why=why) from error


def _parsed(file: str, source: str, start: int) -> Parsed:
    text, _ = replace_run_interval(file, source, start)
    return deeply(lambda: parse(file, text, start))


def _difference(before: Parsed, after: Parsed, query: str, laid_out: str) -> str:
    """What is not the same in a query that was laid out; empty if all is."""
    if [*_words(before)] != [*_words(after)] or before.tree != after.tree:
        return "the query"
    if _words_of_comments(query) != _words_of_comments(laid_out):
        return "a comment"
    return ""


_EXACT = frozenset(
    {
        *(TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING),
        *(TokenType.HEX_STRING, TokenType.NATIONAL_STRING, TokenType.UNICODE_STRING),
    }
)


def _words(parsed: Parsed) -> Iterator[tuple[Any, str]]:
    """
    The tokens; the case of a keyword is layout, that of texts is not.

    A name may look like a keyword, as WITHIN does: the tree has the case of names.
    """
    for token in parsed.text.tokens:
        exact = token.token_type in _EXACT
        yield token.token_type, token.text if exact else token.text.upper()


_COMMENT = re.compile(
    r"(--[^\n]*|/\*.*?\*/)|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", re.DOTALL
)


def _words_of_comments(query: str) -> Counter[str]:
    """The words of all comments: a long one may be broken into lines, and stand elsewhere."""
    comments = (match[1] or "" for match in _COMMENT.finditer(query))
    return Counter(word for comment in comments for word in comment.replace("--", " ").split())


def _other_fingerprints(folder: Folder, changed: Mapping[str, str]) -> list[str]:
    """
    The files whose model gets another fingerprint by the new texts; there should be none.

    Nothing can be said of a project with mistakes, where the comparison of each query has to do.
    """
    from infold.declare.project import read_project

    if not changed:
        return []
    contents = tuple(
        (file, changed[file].encode() if file in changed else content)
        for file, content in folder.files
    )
    (before, _, wrong), (after, _, also) = (
        read_project(one) for one in (folder, replace(folder, files=contents))
    )
    if before is None or after is None or wrong:
        return []
    if also:
        return list(changed)
    return [
        file
        for file in changed
        if before[Path(file).stem].fingerprint != after[Path(file).stem].fingerprint
    ]
