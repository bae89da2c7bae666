"""
Views on a server of Iceberg's REST protocol.

The server writes the metadata, so a view's file tells nothing. What infold made has the digest of
what it says among its properties, and one of its queries: an engine that replaces a view changes
these and leaves the properties, and then the view is somebody else's.

The protocol changes one view at a time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from infold.lake.iceberg.rest_catalog import (
    SIDE_BY_SIDE,
    RejectedError,
    RestCatalog,
    RestClient,
)
from infold.lake.iceberg.view_metadata import View
from infold.lake.views import FoundView, FoundViews

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
