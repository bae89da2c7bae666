"""
Secrets that infold.yml names and does not have: ``${env:NAME}`` and ``${file:PATH}``.

They are read when they are needed and kept nowhere: a project, and all that is shown, stored or
logged of it, has the reference only.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote

from infold.messages import run_errors

REFERENCE = re.compile(r"\$\{(env|file):([^${}]+)\}")


def bad_reference(text: str) -> str | None:
    """What looks like a reference to a secret and is none; None where there is nothing such."""
    found = REFERENCE.sub("", text).partition("${")
    return found[1] + found[2].partition("}")[0] + "}" if found[1] else None


def resolve_url(text: str, root: Path, key: str) -> str:
    """
    A URL with its secrets in it: one that is all of a URL as it is, another as a part of one.

    ``key`` is what errors call the text; a relative file is the project's (``root``).
    """
    whole = REFERENCE.fullmatch(text.strip())
    if whole:
        return _secret(whole, root, key)
    return REFERENCE.sub(lambda found: quote(_secret(found, root, key), safe=""), text)


def _secret(found: re.Match[str], root: Path, key: str) -> str:
    kind, name = found[1], found[2].strip()
    if kind == "env":
        value = os.environ.get(name, "")
        why = "it is not set" if name not in os.environ else "it is empty"
    else:
        value, why = _content(root / Path(name).expanduser())
    if not value:
        raise run_errors.secret_missing(key=key, reference=found[0], why=why)
    return value


def _content(path: Path) -> tuple[str, str]:
    """What a file says, without the ends of its line, and why it is nothing."""
    try:
        return path.read_text(encoding="utf-8").strip("\r\n"), "the file is empty"
    except OSError as error:
        return "", f"the file cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        return "", "the file is not UTF-8"


_BEFORE_HOST = re.compile(r"(?<=://)[^\s'\"]*(?=@)")
_PARAMETER = re.compile(r"(?<=[?&])((?:ssl)?pass(?:word|phrase)?=)([^\s&'\"]+)", re.IGNORECASE)


def has_password(url: str) -> bool:
    """Whether a password is written out in a URL."""
    own = REFERENCE.sub("", url)
    users = (found[0].partition(":")[2] for found in _BEFORE_HOST.finditer(own))
    return any(users) or _PARAMETER.search(unquote(own)) is not None


def hide_passwords(line: str) -> str:
    """A line of a file as it may be shown: as long as it is, with no password of a URL in it."""

    def hide(text: str) -> str:
        shown, at = [], 0
        for found in REFERENCE.finditer(text):
            shown += ["*" * (found.start() - at), found[0]]
            at = found.end()
        return "".join([*shown, "*" * (len(text) - at)])

    def hide_user(found: re.Match[str]) -> str:
        user, colon, password = found[0].partition(":")
        return user + colon + hide(password)

    line = _BEFORE_HOST.sub(hide_user, line)
    return _PARAMETER.sub(lambda found: found[1] + hide(found[2]), line)
