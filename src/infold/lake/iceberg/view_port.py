"""The views of a catalog: the port behind which they are made, whatever the catalog's type."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from infold.lake.iceberg.view_metadata import View


@dataclass(frozen=True, slots=True)
class FoundView:
    """A view that infold made: what it says, where that stands, and what a server gave of it."""

    digest: str
    location: str = ""
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class FoundViews:
    """What is in a namespace: infold's views, and the names that anything else has."""

    own: Mapping[str, FoundView]
    others: Collection[str] = ()
    there: bool = True
    """Whether there is such a namespace."""


class Views(Protocol):
    """The views of a catalog, all of one namespace at a time."""

    def check(self) -> None:
        """Raise ``catalog_errors.without_views`` where there can be none."""

    def name(self, table: str) -> str:
        """What the catalog calls the view of a table."""

    def found(self, namespace: str) -> FoundViews:
        """What is there."""

    def others(self, namespace: str) -> Collection[str]:
        """The names of the tables there, and maybe of views that infold did not make."""

    def change(
        self,
        namespace: str,
        wanted: Mapping[str, View],
        gone: Collection[str],
        found: FoundViews,
    ) -> Collection[str]:
        """
        Make views, or make them say something else, and take others away.

        Returns what was left as it was, because somebody else has just changed it.
        """
