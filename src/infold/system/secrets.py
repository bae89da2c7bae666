"""
Secrets that infold.yml names and does not have: ``${env:NAME}`` and ``${file:PATH}``.

They are read when they are needed and kept nowhere: a project, and all that is shown, stored or
logged of it, has the reference only.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from infold.messages import run_errors

REFERENCE = re.compile(r"\$\{(env|file):([^${}]+)\}")


def bad_reference(text: str) -> str | None:
    """What looks like a reference to a secret and is none; None where there is nothing such."""
    parts = REFERENCE.sub("", text).partition("${")
    return parts[1] + parts[2].partition("}")[0] + "}" if parts[1] else None


def resolve_url(text: str, root: Path, key: str) -> str:
    """
    A URL with its secrets in it: one that is all of a URL as it is, another as a part of one.

    ``key`` is what errors call the text; a relative file is the project's (``root``).
    """
    only = REFERENCE.fullmatch(text.strip())
    if only:
        return _secret(only, root, key)
    return REFERENCE.sub(lambda match: quote(_secret(match, root, key), safe=""), text)


def resolve(text: str, root: Path, key: str) -> str:
    """A text with its secrets in it, as they are."""
    return REFERENCE.sub(lambda match: _secret(match, root, key), text)


def _secret(match: re.Match[str], root: Path, key: str) -> str:
    kind, name = match[1], match[2].strip()
    if kind == "env":
        value = os.environ.get(name, "")
        why = "it is not set" if name not in os.environ else "it is empty"
    else:
        value, why = _content(root / Path(name).expanduser())
    if not value:
        raise run_errors.secret_missing(key=key, reference=match[0], why=why)
    return value


def _content(path: Path) -> tuple[str, str]:
    """What a file says, without the ends of its line, and why it is nothing."""
    try:
        return path.read_text(encoding="utf-8").strip("\r\n"), "the file is empty"
    except OSError as error:
        return "", f"the file cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        return "", "the file is not UTF-8"


# To the last @: a password may have any characters, though not all of them are right in a URL.
_BEFORE_HOST = re.compile(r"(?<=://).*(?=@)", re.DOTALL)
_PARAMETER = re.compile(
    r"(?<=[?&])((?:(?:ssl)?pass(?:word|phrase)?|oauth_client_secret|scram_\w+_key)=)([^&]+)",
    re.IGNORECASE,
)

_TOKEN = re.compile(r"(?<=;)(token=)((?:\$\{[^{}]*\}|[^;\s,}#\"'])+)", re.IGNORECASE)
"""The token of a server of Spark Connect, in its address."""

_KEYED = re.compile(r"(\b(?:token|credential)[\"']?\s*:\s*[\"']?)([^\s,}#\"'][^,}#\"']{9,})")
"""A secret of a catalog; what is shorter is taken for a type of a column that is called so."""


def address(url: str) -> SplitResult:
    """The parts of a URL, without secrets and without who asks."""
    parts = urlsplit(REFERENCE.sub("", url))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2])


def has_password(url: str) -> bool:
    """Whether a password is written out in a URL."""
    own = REFERENCE.sub("", url.strip())
    users = (match[0].partition(":")[2] for match in _BEFORE_HOST.finditer(own))
    return any(users) or _PARAMETER.search(unquote(own)) is not None


def hide_passwords(line: str) -> str:
    """
    A line of a file as it may be shown: as long as it is, with no password of a URL in it.

    Where a URL ends in a line is not known: rather too much is hidden.
    """
    line = _BEFORE_HOST.sub(lambda match: _hide_password(match[0]), line)
    line = _KEYED.sub(lambda match: match[1] + _hide(match[2]), line)
    line = _TOKEN.sub(lambda match: match[1] + _hide(match[2]), line)
    return _PARAMETER.sub(lambda match: match[1] + _hide(match[2]), line)


def _hide_password(user: str) -> str:
    """USER:PASSWORD without the password; a colon in a reference is no beginning of one."""
    plain = REFERENCE.sub(lambda match: "_" * len(match[0]), user)
    end = plain.find(":") + 1 or len(user)
    return user[:end] + _hide(user[end:])


def _hide(text: str) -> str:
    shown, at = [], 0
    for match in REFERENCE.finditer(text):
        shown += ["*" * (match.start() - at), match[0]]
        at = match.end()
    return "".join([*shown, "*" * (len(text) - at)])
