"""
The catalog on a server of Iceberg's REST protocol: its tables and views, and how it is asked.

The protocol gives one table at a time, and renames one at a time. So many tables are asked for side
by side, and renamed one after the other (``OneByOne``).

pyiceberg's client takes half a second to import, reads the whole metadata of each table into
objects, and takes any 404 for a table that is gone, also that of a proxy (docs/decisions/0130). A
plan asks only where the metadata of each table is. So this is the standard library, with a
connection for each thread that stays open.

The server writes the metadata of views, so a view's file tells nothing. What infold made has the
digest of what it says among its properties, and one of its queries: an engine that replaces a view
changes these and leaves the properties, and then the view is somebody else's. The protocol changes
one view at a time.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import RLock, local
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlencode, urlsplit

from infold import __version__
from infold.core.storages import Catalog
from infold.lake.iceberg.metadata_file import commit_of, read_metadata
from infold.lake.iceberg.table_catalog import Key, OneByOne
from infold.lake.iceberg.view_metadata import View
from infold.lake.views import FoundView, FoundViews, RefusedError
from infold.messages import catalog_errors
from infold.messages.errors import InfoldError
from infold.system.secrets import REFERENCE, hide_passwords, resolve, resolve_url

ANSWER_SECONDS = 30
"""Seconds that an answer is waited for."""

TRIES = 4
"""How often something is asked for that changes nothing, if the server is busy."""

BUSY = frozenset({429, 502, 503, 504})
_SCOPE = "catalog"
_NO_CATALOG = "what answers there is no server of Iceberg's protocol"


class RejectedError(Exception):
    """An answer with a status that the caller may know what to do with; else it is ``named``."""

    def __init__(self, status: int, named: InfoldError) -> None:
        super().__init__(str(named))
        self.status = status
        self.named = named


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    content: bytes
    wait: str = ""


class RestClient:
    """The server that a target's catalog is on, as infold.yml names it by ``key``."""

    def __init__(self, declared: Catalog, root: Path, key: str) -> None:
        self._declared, self._root, self._key = declared, root, key
        self._threads = local()
        self._lock = RLock()
        self._token = ""

    @property
    def place(self) -> str:
        """Where the server is, as infold.yml has it."""
        name = f", catalog {self._declared.warehouse}" if self._declared.warehouse else ""
        return f"{hide_passwords(self._declared.uri)}{name}"

    def get(self, path: str) -> dict[str, Any] | None:
        """What the server has at a path below the catalog's; None if there is nothing."""
        return self._parsed(self._changing_nothing(f"{self._base}/{path}"))

    def change(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        """
        Have the server change something, once. Raises ``RejectedError`` where it refuses.

        An answer that does not come leaves open whether it did: ``catalog_errors.answer_lost``.
        """
        answer = self._ask(method, f"{self._base}/{path}", body)
        if answer.status in (401, 419) and self._renew_token():
            answer = self._ask(method, f"{self._base}/{path}", body)
        if answer.status == 404 and not _is_not_there(answer):
            raise self._unreachable(_NO_CATALOG)
        if answer.status in (404, 409):
            raise RejectedError(answer.status, self._named(answer))
        if answer.status >= 500:
            raise self._lost(self._why(answer))
        if answer.status >= 300:
            raise self._named(answer)

    def namespace(self, name: str) -> str:
        """A namespace as a part of a path, also one of several levels."""
        between = unquote(self._config.get("namespace-separator") or "%1F")
        return quote(between.join(name.split(".")), safe="")

    @cached_property
    def _base(self) -> str:
        """Where the catalog is on the server."""
        prefix = str(self._config.get("prefix") or "").strip("/")
        return f"v1/{quote(prefix)}" if prefix else "v1"

    def missing(self, endpoints: Collection[str]) -> Sequence[str]:
        """
        Those of some endpoints that the server does not say that it has.

        One that lists none has what the protocol began with, which were tables alone.
        """
        listed = {" ".join(str(one).split()) for one in self._answered.get("endpoints") or ()}
        return [one for one in endpoints if one not in listed]

    @cached_property
    def _config(self) -> Mapping[str, str]:
        """What the server says of the catalog."""
        answer = self._answered
        return {**(answer.get("defaults") or {}), **(answer.get("overrides") or {})}

    @cached_property
    def _answered(self) -> Mapping[str, Any]:
        """What the server says of itself and of the catalog."""
        query = urlencode({"warehouse": self._declared.warehouse})
        path = f"v1/config?{query}" if self._declared.warehouse else "v1/config"
        answer = self._changing_nothing(path)
        settings = None if answer.status in (400, 405) else self._parsed(answer)
        if settings is None:
            raise self._unreachable("it has no /v1/config, as a server of Iceberg's protocol has")
        return settings

    def _changing_nothing(self, path: str) -> _Answer:
        """Ask for something until the server has time for it."""
        answer, renewed = self._ask("GET", path), False
        for attempt in range(1, TRIES):
            if answer.status in (401, 419) and not renewed and self._renew_token():
                renewed = True
            elif answer.status in BUSY:
                seconds = float(answer.wait) if answer.wait.isdigit() else 0.2 * 2**attempt
                time.sleep(min(seconds, ANSWER_SECONDS))
            else:
                break
            answer = self._ask("GET", path)
        return answer

    def _parsed(self, answer: _Answer) -> dict[str, Any] | None:
        if answer.status == 404:
            if not _is_not_there(answer):
                raise self._unreachable(_NO_CATALOG)
            return None
        if answer.status != 200:
            raise self._named(answer)
        try:
            document = json.loads(answer.content)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise self._unreachable(_NO_CATALOG)
        return document

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> _Answer:
        """One request; it is made again where a connection was closed before it was sent."""
        headers = {"Accept": "application/json", "User-Agent": f"infold/{__version__}"}
        if token := self._bearer():
            headers["Authorization"] = f"Bearer {token}"
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        return self._exchange(self._url, method, path, content, headers)

    def _exchange(
        self,
        url: str,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
    ) -> _Answer:
        where = urlsplit(url)
        target = f"{where.path.rstrip('/')}/{path}" if path else where.path or "/"
        target += f"?{where.query}" if where.query else ""
        if method != "GET":  # a server may be closing one that was idle, just as this is sent
            self._close()
        fresh = True
        while True:
            try:
                connection, fresh = self._connection(where.scheme, where.netloc)
                connection.request(method, target, content, dict(headers))
                answer = connection.getresponse()
                content_read = answer.read()
                return _Answer(answer.status, content_read, answer.headers.get("Retry-After", ""))
            except (OSError, http.client.HTTPException) as error:
                self._close()
                closed = isinstance(error, ConnectionError | http.client.RemoteDisconnected)
                if not fresh and closed and method == "GET":
                    continue
                why = self._without_secrets(str(error)) or type(error).__name__
                if method != "GET" and not _never_sent(error):
                    raise self._lost(why) from None
                raise self._unreachable(why) from None
            except ValueError:  # its words would quote what cannot be sent
                self._close()
                raise self._unreachable("the request to it cannot be sent") from None

    def _connection(self, scheme: str, netloc: str) -> tuple[http.client.HTTPConnection, bool]:
        """This thread's connection, and whether it is a new one; never one of a parent process."""
        key = (os.getpid(), scheme, netloc)
        current = getattr(self._threads, "open", None)
        if current is not None and current[0] == key:
            return current[1], False
        opened: http.client.HTTPConnection
        if scheme == "https":
            context = ssl.create_default_context()
            opened = http.client.HTTPSConnection(netloc, timeout=ANSWER_SECONDS, context=context)
        else:
            opened = http.client.HTTPConnection(netloc, timeout=ANSWER_SECONDS)
        self._threads.open = (key, opened)
        return opened, True

    def _close(self) -> None:
        """Close this thread's connection, if it has one."""
        current, self._threads.open = getattr(self._threads, "open", None), None
        if current is not None:
            current[1].close()

    @cached_property
    def _url(self) -> str:
        return server_url(self._declared.uri, self._root, self._key)

    def _bearer(self) -> str:
        """The token for a request; a credential is exchanged for one when it is first needed."""
        if self._declared.token:
            return self._secrets()["token"]
        if not self._declared.credential:
            return ""
        with self._lock:
            if not self._token:
                self._token = self._new_token()
            return self._token

    def _renew_token(self) -> bool:
        """Forget a token that has run out; whether there can be another."""
        with self._lock:
            had, self._token = bool(self._token), ""
        return had

    def _new_token(self) -> str:
        name, colon, secret = self._secrets()["credential"].partition(":")
        form = {
            "grant_type": "client_credentials",
            "client_id": name if colon else "",
            "client_secret": secret if colon else name,
            "scope": self._declared.scope or _SCOPE,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        content = urlencode({key: text for key, text in form.items() if text}).encode()
        other = self._declared.oauth2_server_uri
        url = server_url(other, self._root, self._key, query=True) if other else self._url
        path = "" if other else "v1/oauth/tokens"
        answer = self._exchange(url, "POST", path, content, headers)
        if answer.status in (400, 401, 403):
            why = self._why(answer)
            raise catalog_errors.login_refused(key=self._key, at=self.place, why=why)
        token = (self._parsed(answer) or {}).get("access_token")
        if not isinstance(token, str) or not SENDABLE.fullmatch(token):
            raise self._unreachable("it gave no token for the credential")
        return token

    def _named(self, answer: _Answer) -> InfoldError:
        why = self._why(answer)
        if answer.status in (401, 419):
            return catalog_errors.login_refused(key=self._key, at=self.place, why=why)
        if answer.status == 403:
            return catalog_errors.not_permitted(key=self._key, at=self.place, why=why)
        return catalog_errors.failed(key=self._key, at=self.place, why=why)

    def without_views(self, missing: Sequence[str]) -> InfoldError:
        """What to say of a server that has no views."""
        why = f"its /v1/config does not list {missing[0]}"
        return catalog_errors.without_views(key=self._key, at=self.place, why=why)

    def _secrets(self) -> Mapping[str, str]:
        return sent_secrets(self._declared, self._root, self._key)

    def _without_secrets(self, words: str) -> str:
        words = words.replace(self._token, "***") if self._token else words
        return without_secrets(words, self._declared, self._root, self._key)

    def _why(self, answer: _Answer) -> str:
        """What the server says, in one line."""
        line = " ".join(self._without_secrets(_server_message(answer)).split())[:300]
        return f"{answer.status} {http.client.responses.get(answer.status, '')} {line}".strip()

    def _unreachable(self, why: str) -> InfoldError:
        return catalog_errors.unreachable(key=self._key, at=self.place, why=why)

    def _lost(self, why: str) -> InfoldError:
        return catalog_errors.answer_lost(key=self._key, at=self.place, why=why)


def _never_sent(error: BaseException) -> bool:
    """Whether a request did not leave this machine."""
    import socket

    return isinstance(
        error, ConnectionRefusedError | socket.gaierror | ssl.SSLCertVerificationError
    )


def _is_not_there(answer: _Answer) -> bool:
    """Whether a 404 is the catalog's own: anything else on the way may answer so, too."""
    error = _error(answer)
    if not isinstance(error, dict):
        return False
    named = str(error.get("type")).startswith(("NoSuchTable", "NoSuchView", "NoSuchNamespace"))
    return named or error.get("code") == 404


def _server_message(answer: _Answer) -> str:
    """The server's own words."""
    error = _error(answer)
    if isinstance(error, dict):
        return str(error.get("message") or "")
    return "" if error is None else str(json.loads(answer.content).get("error_description") or "")


def _error(answer: _Answer) -> Any:
    """The error of an answer: an object of Iceberg's, a word of OAuth2's; None if there is none."""
    try:
        document = json.loads(answer.content)
    except ValueError:
        return None
    return document.get("error") if isinstance(document, dict) else None


# Spark and infold's own client take both from here. What cannot be sent is refused before somebody
# tries it: libraries quote what they cannot use, secrets too.

SENDABLE = re.compile(r"[ -~]+")
"""What OAuth2 lets a token and a credential consist of, and a line of HTTP."""

_IN_A_URL = re.compile(r"[!-~]+")


def server_url(text: str, root: Path, key: str, *, query: bool = False) -> str:
    """
    A URL of infold.yml with its secrets. Raises ``bad_url``, with nothing of it.

    That of a catalog has no ``query``: paths are put behind it, here and by Spark.
    """
    url = resolve_url(text, root, key).strip()
    why = _wrong(url) or _needless(url, query=query)
    if why:
        raise catalog_errors.bad_url(key=key, why=why)
    return url


def sent_secrets(declared: Catalog, root: Path, key: str) -> Mapping[str, str]:
    """Token and credential, as far as they are declared. Raises ``bad_secret`` without a value."""
    secrets = {}
    for name, text in (("token", declared.token), ("credential", declared.credential)):
        if text:
            secrets[name] = resolve(text, root, key).strip()
            if not SENDABLE.fullmatch(secrets[name]):
                why = "it has a line break, or a character that is not of ASCII"
                raise catalog_errors.bad_secret(
                    key=key, secret=name, why=why if secrets[name] else "it is blank"
                )
    return secrets


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


SIDE_BY_SIDE = 8
"""How many tables are asked for at the same time."""


def rest_catalog(declared: Catalog, root: Path, key: str) -> RestCatalog:
    """The catalog that a target declares; nothing is asked for yet."""
    known = (declared, root)
    if known not in _clients:
        _clients[known] = RestClient(declared, root, key)
    return RestCatalog(_clients[known])


_clients: dict[tuple[Catalog, Path], RestClient] = {}
"""The servers that this process knows."""


@dataclass(frozen=True, slots=True)
class RestCatalog(OneByOne):
    """A server of Iceberg's REST protocol as ``TableCatalog``."""

    client: RestClient

    @property
    def place(self) -> str:
        """The address without secrets, as messages name it."""
        return self.client.place

    def find(self, tables: Collection[Key]) -> Mapping[Key, str]:
        """See ``TableCatalog``; each table as it is when it is asked for."""
        keys = list(dict.fromkeys(tables))
        if len(keys) < 3:
            locations = list(map(self._location, keys))
        else:
            with ThreadPoolExecutor(min(SIDE_BY_SIDE, len(keys))) as pool:
                locations = list(pool.map(self._location, keys))
        return {key: at for key, at in zip(keys, locations, strict=True) if at is not None}

    def locations(self, namespace: str) -> Mapping[str, str]:
        """A request for the names, and one for each table."""
        by_key = self.find([(namespace, name) for name in self.names(namespace)])
        return {name: at for (_, name), at in by_key.items()}

    def names(self, namespace: str) -> Collection[str]:
        """One request; none where the server knows no such namespace."""
        listed = self.client.get(f"namespaces/{self.client.namespace(namespace)}/tables") or {}
        return [str(table["name"]) for table in listed.get("identifiers") or ()]

    def drop(self, namespace: str, names: Sequence[str]) -> None:
        """See ``TableCatalog``: one after the other."""
        for name in names:
            try:
                self.client.change(
                    "DELETE", f"{self._path((namespace, name))}?purgeRequested=false"
                )
            except RejectedError as error:
                if error.status != 404:
                    raise error.named from None

    def rename_one(self, namespace: str, table: str, to: str) -> None:
        """A request, which the server refuses where the new name is taken."""
        body = {
            "source": {"namespace": [namespace], "name": table},
            "destination": {"namespace": [namespace], "name": to},
        }
        try:
            self.client.change("POST", "tables/rename", body)
        except RejectedError as error:
            raise RefusedError(error.named) from None

    def set_back(self, table: Key, location: str, snapshot: int) -> bool:
        """See ``TableCatalog``: the server makes the metadata, if no commit came in between."""
        if self._location(table) != location:
            return False
        try:
            self.client.change(
                "POST", self._path(table), commit_of(read_metadata(location), snapshot)
            )
        except RejectedError:
            return False
        return True

    def _location(self, table: Key) -> str | None:
        loaded = self.client.get(f"{self._path(table)}?snapshots=refs")
        at = (loaded or {}).get("metadata-location")
        return None if at is None else str(at)

    def _path(self, table: Key) -> str:
        namespace, name = table
        return f"namespaces/{self.client.namespace(namespace)}/tables/{quote(name, safe='')}"


DIGEST, QUERIES = "infold.view", "infold.view-queries"
"""The properties that have the digests."""

_VIEWS = "/v1/{prefix}/namespaces/{namespace}/views"
ENDPOINTS = (
    *(f"GET {_VIEWS}", f"POST {_VIEWS}"),
    *(f"{method} {_VIEWS}/{{view}}" for method in ("GET", "POST", "DELETE")),
)
"""What a server has to have, by the names that the protocol gives it."""

_TYPES = ("type", "element", "key", "value")
"""The keys of a schema whose values are names of types."""

_LAST_ADDED = -1
"""As an id in a change: the schema, or the version, that the same change adds."""


@dataclass(frozen=True, slots=True)
class RestViews:
    """Views by the endpoints for them, which not every server has."""

    catalog: RestCatalog

    def check(self) -> None:
        """See ``CatalogViews``: by what the server says of itself."""
        missing = self._client.missing(ENDPOINTS)
        if missing:
            raise self._client.without_views(missing)

    def name(self, table: str) -> str:
        """The name of the table: the protocol keeps the case of letters."""
        return table

    def found(self, namespace: str) -> FoundViews:
        """See ``Views``: a request for each view, and one for all tables and for all views."""
        if self._client.missing(ENDPOINTS):
            return FoundViews({}, there=False)
        listed = self._client.get(self._path(namespace))
        if listed is None:
            return FoundViews({}, there=False)
        names = [str(answer["name"]) for answer in listed.get("identifiers") or ()]
        own, foreign = {}, [*self.catalog.names(namespace)]
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            loaded = pool.map(lambda name: self._client.get(self._path(namespace, name)), names)
            for name, answer in zip(names, loaded, strict=True):
                if answer is None:
                    continue
                digest = _digest_of(answer["metadata"])
                if digest is None:
                    foreign.append(name)
                else:
                    own[name] = FoundView(digest, metadata=answer["metadata"])
        return FoundViews(own, foreign)

    def others(self, namespace: str) -> Collection[str]:
        """See ``CatalogViews``: the tables, in one request."""
        return self.catalog.names(namespace)

    def change(
        self,
        namespace: str,
        views: Mapping[str, View],
        gone: Collection[str],
        present: FoundViews,
    ) -> Collection[str]:
        """See ``Views``: one after the other."""
        if views and not present.there:
            self._have_namespace(namespace)
        left = []
        for name, view in views.items():
            known = present.own.get(name)
            try:
                if known is None or not self._replace(namespace, name, known, view):
                    self._client.change("POST", self._path(namespace), _creation(name, view))
            except RejectedError as error:
                if error.status != 409:
                    raise error.named from None
                left.append(name)
        for name in gone:
            try:
                self._client.change("DELETE", self._path(namespace, name))
            except RejectedError as error:
                if error.status != 404:
                    raise error.named from None
        return left

    def _replace(self, namespace: str, name: str, known: FoundView, view: View) -> bool:
        """Make a view say something else; False where it is no longer there."""
        assert known.metadata is not None
        body = _replacement(known.metadata, view)
        try:
            self._client.change("POST", self._path(namespace, name), body)
        except RejectedError as error:
            if error.status != 404:
                raise
            return False
        return True

    def _have_namespace(self, namespace: str) -> None:
        levels = namespace.split(".")
        try:
            self._client.change("POST", "namespaces", {"namespace": levels, "properties": {}})
        except RejectedError as error:
            if error.status != 409:
                raise error.named from None

    @property
    def _client(self) -> RestClient:
        return self.catalog.client

    def _path(self, namespace: str, name: str = "") -> str:
        every = f"namespaces/{self._client.namespace(namespace)}/views"
        return f"{every}/{quote(name, safe='')}" if name else every


def _digest_of(metadata: Mapping[str, Any]) -> str | None:
    """The digest of a view that infold made and nobody changed since; else None."""
    properties = metadata.get("properties") or {}
    same = properties.get(QUERIES) == _queries_digest(_current(metadata))
    return str(properties[DIGEST]) if same and DIGEST in properties else None


def _current(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The version of a view that is in force."""
    current: int = metadata["current-version-id"]
    versions: Sequence[Mapping[str, Any]] = metadata["versions"]
    return next(one for one in versions if one["version-id"] == current)


def _queries_digest(version: Mapping[str, Any]) -> str:
    queries = sorted((one["dialect"], one["sql"]) for one in version["representations"])
    return sha256(json.dumps(queries).encode()).hexdigest()[:32]


def _properties(view: View) -> Mapping[str, str]:
    own = {DIGEST: view.digest, QUERIES: _queries_digest(_current(view.metadata))}
    return {**view.metadata["properties"], **own}


def _creation(name: str, view: View) -> Mapping[str, Any]:
    metadata = view.dated()
    return {
        "name": name,
        "location": view.folder,
        "schema": metadata["schemas"][0],
        "view-version": metadata["versions"][0],
        "properties": _properties(view),
    }


def _replacement(present: Mapping[str, Any], view: View) -> Mapping[str, Any]:
    """
    The change that makes a view another one.

    A server keeps earlier schemas and versions, and adds none that it has: then that is named.
    """
    metadata = view.dated()
    schema, version = metadata["schemas"][0], metadata["versions"][0]
    updates: list[Mapping[str, Any]] = []
    known = [one["schema-id"] for one in present["schemas"] if _same_columns(one, schema)]
    if not known:
        highest = max(one["schema-id"] for one in present["schemas"])
        updates.append({"action": "add-schema", "schema": {**schema, "schema-id": highest + 1}})
    new_version = {**version, "schema-id": known[0] if known else _LAST_ADDED}
    same = [one["version-id"] for one in present["versions"] if _says_the_same(one, new_version)]
    if not same:
        new_version["version-id"] = max(one["version-id"] for one in present["versions"]) + 1
        updates.append({"action": "add-view-version", "view-version": new_version})
    current = same[0] if same else _LAST_ADDED
    updates += [
        {"action": "set-current-view-version", "view-version-id": current},
        {"action": "set-properties", "updates": _properties(view)},
    ]
    return {
        "requirements": [{"type": "assert-view-uuid", "uuid": present["view-uuid"]}],
        "updates": updates,
    }


def _same_columns(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    return bool(_plain(first["fields"]) == _plain(second["fields"]))


def _says_the_same(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    keys = ("schema-id", "default-catalog", "default-namespace")
    return _queries_digest(first) == _queries_digest(second) and all(
        first.get(key) == second.get(key) for key in keys
    )


def _plain(value: Any, key: str = "") -> Any:
    """What a schema says, however a server spells it: ``decimal(9, 2)``, and null for no words."""
    if isinstance(value, Mapping):
        return {name: _plain(one, name) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return "".join(value.split()) if key in _TYPES and isinstance(value, str) else value
