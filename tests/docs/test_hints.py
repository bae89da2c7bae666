"""Every command and option that a message, an error, a help text or a page names exists.

Messages are read from the source: all its texts but docstrings. An option by itself has no
command beside it, so for each error with one this file lists the commands that it can come from.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import click
from tests.docs.pages import PAGES, ROOT

from infold.cli.main import COMMANDS, cli

SOURCES = sorted((ROOT / "src" / "infold").rglob("*.py"))
CURRENT = [page for page in PAGES if page.parent.name != "decisions"]
CONTEXT = click.Context(cli, **cli.context_settings)

HINT = re.compile(r"(?:`|^\$ |^    |^<sh>)infold ([^`\n|]+)", re.MULTILINE)
MAY_HINT = re.compile(r"(?:`|\$ |    )infold ")
"""Without it a file of code has no command line, and is not parsed."""
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")

BARE: Mapping[str, tuple[str, ...]] = {
    "bad-graph-file": ("dag",),
    "window-empty": ("plan", "run", "restate", "backbuild"),
    "window-unaligned": ("plan", "run", "restate", "backbuild"),
    "not-forward-only": ("plan", "run", "apply"),
    "unknown-session": ("quarantine",),
    "sessions-by-identifier": ("quarantine",),
    "bad-filter": ("show",),
    "nothing-to-plot": ("show",),
    "no-time-for-lines": ("show",),
    "port-unavailable": ("ui",),
    "protected": ("run", "apply", "restate", "backbuild", "forget", "teardown"),
    "unconfirmed": ("forget", "teardown"),
    "apply-not-confirmed": ("apply",),
    "promote-not-confirmed": ("promote", "rollback"),
    "over-budget": ("run", "apply"),
    "erasure-over-budget": ("erase",),
    "orphans-of-others": ("repair",),
    "destructive-change": ("run", "apply"),
    "source-shrank": ("run", "apply", "restate", "backbuild"),
}
"""The commands that an error with an option in its words can come from."""

MAKERS = ("InfoldError", "Message", "Finding")
"""What the words of an error are given to."""

OTHERS = {
    *("--packages", "--conf", "--help", "--version"),  # of Spark, and of every command
    *("--master", "--jars", "--driver-memory", "--deploy-mode"),  # of spark-submit
    *("--full-refresh", "--restate-model", "--allow-destructive-model"),  # of dbt and SQLMesh
    *("--defer", "--state"),  # of dbt
    *("--no-deps", "--prefix", "--rm"),  # of pip, Homebrew and podman
    "--rewrite",  # of the tests
}


def options_of(command: click.Command) -> set[str]:
    """All names of a command's options, and those that every command has."""
    own = {
        opt
        for param in command.params
        if not isinstance(param, click.Argument)
        for opt in (*param.opts, *param.secondary_opts)
    }
    return own | {"--help", "-h"}


@cache
def commands() -> Mapping[str, click.Command]:
    """Each command by its words, those of groups too."""
    found = {}
    for name in COMMANDS:
        command = cli.get_command(CONTEXT, name)
        assert command is not None
        found[name] = command
        for under, each in (command.commands if isinstance(command, click.Group) else {}).items():
            found[f"{name} {under}"] = each
    return found


@cache
def texts(path: Path) -> tuple[str, ...]:
    """The texts of a file of code, what is filled in left open; docstrings are for developers."""
    source = path.read_text()
    if not MAY_HINT.search(source):
        return ()
    nodes = list(ast.walk(ast.parse(source)))
    joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    left_out = {id(part) for node in joined for part in ast.walk(node) if part is not node}
    if path.parent.name != "cli":  # there docstrings are the help
        left_out |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}

    def text_of(node: ast.AST) -> str | None:
        if isinstance(node, ast.JoinedStr):
            return "".join(text_of(part) or "X" for part in node.values)
        return (
            node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
        )

    found = [text_of(node) for node in nodes if id(node) not in left_out]
    return tuple(text for text in found if text is not None)


FLAGS = ("--no-engine", "--version", "-h", "--help")


def wrong(hint: str) -> str:
    """What of a command line is not there; nothing if all is."""
    words = hint.replace("\\`", " ").split()
    while words and words[0].startswith("-"):
        known = {opt for param in cli.params for opt in param.opts} | {"-h", "--help"}
        if words[0] not in known:
            return words[0]
        words = words[1:] if words[0] in FLAGS else words[2:]
    if not words or not re.fullmatch(r"[a-z][a-z-]*[,.:;]?", words[0]):
        return ""  # a placeholder: COMMAND, X, …
    name = words[0].rstrip(",.:;")
    if name not in COMMANDS:
        return name
    command = commands()[name]
    under = " ".join((name, words[1].rstrip(",.:;"))) if len(words) > 1 else ""
    if isinstance(command, click.Group):
        if under not in commands():
            return "" if not re.match(r"[a-z]", under.removeprefix(f"{name} ")) else under
        command = commands()[under]
    known = options_of(command)
    named = [
        word.partition("=")[0].rstrip(",.:;)") for word in words if re.match(r"--?[a-z]", word)
    ]
    return next((f"{name} {word}" for word in named if word not in known), "")


def test_every_command_line_exists() -> None:
    """Every ``infold …`` in a text of the code or on a page is a command with its options."""
    code = {path: [hint for text in texts(path) for hint in HINT.findall(text)] for path in SOURCES}
    shown = code | {page: hints_on(page) for page in CURRENT}
    problems = {
        (name(path), problem)
        for path, hints in shown.items()
        for hint in hints
        if (problem := wrong(hint))
    }

    assert problems == set()


def hints_on(page: Path) -> list[str]:
    """The command lines that a page shows, in its sentences and in its blocks for the shell."""
    text = page.read_text()
    blocks = [
        re.sub(r"^(?=infold )", "<sh>", block, flags=re.MULTILINE) for block in SHELL.findall(text)
    ]
    return [hint for part in (text, *blocks) for hint in HINT.findall(part)]


def test_every_option_of_a_page_exists() -> None:
    """Every option that a page names exists in some command."""
    every = {opt for command in commands().values() for opt in options_of(command)}
    every |= {opt for param in cli.params for opt in param.opts} | OTHERS
    unknown = {name(page): set(OPTION.findall(page.read_text())) - every for page in CURRENT}

    assert {page: options for page, options in unknown.items() if options} == {}


def name(path: Path) -> str:
    """A file's path in the checkout."""
    return str(path.relative_to(ROOT))


def errors() -> Iterator[tuple[str, set[str]]]:
    """The slug of each error, with the options that stand in its words by themselves."""
    for path in SOURCES:
        text = path.read_text()
        if not any(f"{maker}(" in text for maker in MAKERS):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith(MAKERS):
                slug = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
                texts = [
                    part.value
                    for each in (*node.args[1:], *(word.value for word in node.keywords))
                    for part in ast.walk(each)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                ]
                alone = re.sub(r"`infold [^`]*`", "", " ".join(texts))
                yield str(slug), set(OPTION.findall(alone))


def test_an_option_in_an_error_exists_in_its_commands() -> None:
    """An option in an error is one of the commands that can raise that error."""
    missing = []
    for slug, options in errors():
        for option in options:
            assert slug in BARE, f"{slug} names {option}: say here which commands it can come from"
            for name in BARE[slug]:
                under = [c for words, c in commands().items() if words.partition(" ")[0] == name]
                if not any(option in options_of(command) for command in under):
                    missing.append((slug, name, option))

    assert missing == []
