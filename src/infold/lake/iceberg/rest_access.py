"""
How a server of Iceberg's REST protocol is reached: its URL, and the secrets that are sent to it.

Spark and infold's own client take both from here. What cannot be sent is refused before somebody
tries it: libraries quote what they cannot use, secrets too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote_plus, urlsplit

from infold.core.catalogs import Catalog
from infold.messages import catalog_errors
from infold.messages.errors import InfoldError
from infold.system.secrets import REFERENCE, resolve, resolve_url

SENDABLE = re.compile(r"[ -~]+")
"""What OAuth2 lets a token and a credential consist of, and a line of HTTP."""

_IN_A_URL = re.compile(r"[!-~]+")


def server_url(text: str, root: Path, key: str, *, query: bool = False) -> str:
    """
    A URL of infold.yml with its secrets. Raises ``bad_url``, with nothing of it.

    That of a catalog has no ``query``: paths are put behind it, here and by Spark.
    """
    found = resolve_url(text, root, key).strip()
    why = _wrong(found) or _needless(found, query=query)
    if why:
        raise catalog_errors.bad_url(key=key, why=why)
    return found


def sent_secrets(declared: Catalog, root: Path, key: str) -> Mapping[str, str]:
    """Token and credential, as far as they are declared. Raises ``bad_secret`` without a value."""
    found = {}
    for name, text in (("token", declared.token), ("credential", declared.credential)):
        if text:
            found[name] = resolve(text, root, key).strip()
            if not SENDABLE.fullmatch(found[name]):
                why = "it has a line break, or a character that is not of ASCII"
                raise catalog_errors.bad_secret(
                    key=key, secret=name, why=why if found[name] else "it is blank"
                )
    return found


def without_secrets(words: str, declared: Catalog, root: Path, key: str) -> str:
    """What a server or a library said, with references in place of the secrets that it repeats."""
    known = {}
    for text in (declared.token, declared.credential, declared.uri, declared.oauth2_server_uri):
        for reference in REFERENCE.finditer(text):
            with suppress(InfoldError):  # what cannot be read any more was not sent
                known[resolve(reference[0], root, key).strip()] = reference[0]
    with suppress(InfoldError):
        credential = resolve(declared.credential, root, key).strip()
        known.setdefault(credential.partition(":")[2], "***")
    for secret in sorted(filter(None, known), key=len, reverse=True):
        for form in (secret, quote_plus(secret)):
            words = words.replace(form, known[secret])
    return words


def _needless(url: str, *, query: bool) -> str:
    """What a URL has behind its path that cannot be sent; empty without that."""
    if "#" in url:
        return "it has a #, which no server is sent"
    if "?" in url and not query:
        return "it has a query (?…), and paths are put behind a catalog's URL"
    return ""


def _wrong(url: str) -> str:
    """Why a URL cannot be used; empty where it can."""
    if not _IN_A_URL.fullmatch(url):
        return "it has a space, or a character that is percent-encoded in a URL"
    try:
        where = urlsplit(url)
        known = where.scheme in ("http", "https") and bool(where.hostname)
    except ValueError:
        known = False
    if not known:
        return "it is no https://HOST/PATH"
    if "@" in where.netloc:
        return "it has a user or a password, which belong into `credential` or `token`"
    try:
        usable = where.port is None or where.port > 0
    except ValueError:
        usable = False
    return "" if usable else "its port is no number"
