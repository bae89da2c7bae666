"""The views of a catalog of Iceberg's: the port behind which they are made, whatever its type."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from infold.lake.iceberg.view_metadata import View
from infold.lake.views import Views


class CatalogViews(Views[View], Protocol):
    """The views of a catalog, all of one namespace at a time."""

    def check(self) -> None:
        """Raise ``catalog_errors.without_views`` where there can be none."""

    def name(self, table: str) -> str:
        """What the catalog calls the view of a table."""

    def others(self, namespace: str) -> Collection[str]:
        """The names of the tables there, and maybe of views that infold did not make."""
