"""
Views of Delta tables, for engines that look for them in a Hive metastore.

A view reads its table by the name that it has there. It says for which folder infold made it, as
the name of the table does: so two projects can have their views in one namespace.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from infold.core import write_points
from infold.lake.delta.log import Log
from infold.lake.delta.metastore import FOLDER, Metastore, alter, entry_of, is_named_for
from infold.lake.delta.spark_view import SparkView, said_by, say, view_of
from infold.lake.hive_client import HiveClient, user_name
from infold.lake.refused import RefusedError
from infold.lake.views import SUFFIX, FoundView, FoundViews, look, update
from infold.messages import catalog_errors, run_errors
from infold.messages.errors import InfoldError

VIEW_OF = "infold.view_of"
"""The parameter of a view that says for which folder infold made it, by the name of the view."""

_VIEW = "VIRTUAL_VIEW"
"""What kind of table a view is to a metastore."""


@dataclass(frozen=True, slots=True)
class ReaderViews:
    """The views of the tables in a folder that have their names in a metastore; see ``Views``."""

    metastore: Metastore
    above: str
    """The folder, as the metastore has it."""

    @property
    def space(self) -> str:
        """The namespace of the views."""
        return self.metastore.namespace + SUFFIX

    def check(self, tables: Collection[str] | None) -> None:
        """
        Raise where these views are wanted and somebody else has a name of one.

        Raises ``shared_namespace`` where two projects would share a namespace: one has views there,
        and one tables.
        """
        if self.metastore.namespace.endswith(SUFFIX):
            namespace = self.metastore.namespace
            self._refuse_shared(self._client.found(namespace), namespace, VIEW_OF, "views")
        if tables is not None:
            found = self._client.found(self.space)
            self._refuse_shared(found, self.space, FOLDER, "tables")
            asked = {table.lower() for table in tables}
            taken = [one for one in found if one.tableName in asked and not self._is_own(one)]
            Metastore(self._client, self.space).refuse([*map(entry_of, taken)], "views")

    def _refuse_shared(self, found: Sequence[Any], namespace: str, mark: str, what: str) -> None:
        names = sorted(str(one.tableName) for one in found if mark in (one.parameters or {}))
        if names:
            raise catalog_errors.shared_namespace(
                catalog=self._client.place, namespace=namespace, what=what, names=", ".join(names)
            )

    def refresh(self, tables: Mapping[str, Log], *, only_new: bool) -> Sequence[str]:
        """
        Have exactly the views of some tables, by the names that these have; those that were taken.

        With ``only_new``, views that are there already are taken for right: no log is read.
        """
        found = look(self, self.space, wanted=bool(tables))
        if found is None:
            return ()

        def made(names: Sequence[str]) -> Mapping[str, SparkView]:
            views = {name: self._view(name, tables[name]) for name in names}
            return {name: view for name, view in views.items() if view is not None}

        taken, _ = update(self, self.space, found, sorted(tables), made, only_new=only_new)
        return taken

    def _view(self, name: str, log: Log) -> SparkView | None:
        """
        The view of a table, as it is to be.

        None for a table that nobody can read: who builds it says so, and its view stays as it was.
        """
        try:
            return view_of(self.metastore.namespace, name, log.schema().fields)
        except InfoldError as error:
            if error.slug != run_errors.METADATA_MISSING:
                raise
            return None

    def found(self, namespace: str) -> FoundViews:
        """See ``Views``: two requests."""
        tables = self._client.found(namespace)
        own = {
            str(one.tableName): FoundView(said_by(one).digest)
            for one in tables
            if self._is_own(one)
        }
        names = [str(one.tableName) for one in tables]
        return FoundViews(own, [name for name in names if name not in own], there=bool(names))

    def change(
        self,
        namespace: str,
        wanted: Mapping[str, SparkView],
        gone: Collection[str],
        found: FoundViews,
    ) -> Collection[str]:
        """See ``Views``: one after the other."""
        if wanted and not found.there:
            self._client.have_namespace(namespace)
        left = []
        for name, view in wanted.items():
            write_points.point(f"view {name}: before")
            if not self._make((namespace, name), view, known=name in found.own):
                left.append(name)
            write_points.point(f"view {name}: after")
        for name in gone:
            write_points.point(f"drop view {name}: before")
            if not self._drop((namespace, name)):
                left.append(name)
            write_points.point(f"drop view {name}: after")
        return left

    def _make(self, key: tuple[str, str], view: SparkView, *, known: bool) -> bool:
        """Have a view, of which one may be ``known``; False where somebody else has its name."""

        def replaced(hive: Any) -> bool:
            found = hive.get_table(*key)
            if not self._is_own(found):
                return False
            say(found, view)
            alter(hive, key, found)
            return True

        if known:
            with suppress(RefusedError):  # it is gone meanwhile
                return self._client.change(replaced)
        made = self._made(key, view)
        try:
            self._client.change(lambda hive: hive.create_table(made))
        except RefusedError:
            return False
        return True

    def _drop(self, key: tuple[str, str]) -> bool:
        """Take a view away; False where it is somebody else's by now, or gone."""

        def dropped(hive: Any) -> bool:
            if not self._is_own(hive.get_table(*key)):
                return False
            hive.drop_table(*key, deleteData=False)
            return True

        try:
            return self._client.change(dropped)
        except RefusedError as error:
            if self._client.found(key[0], [key[1]]):
                raise error.named from None
            return False

    def _is_own(self, table: Any) -> bool:
        made_for = (table.parameters or {}).get(VIEW_OF, "")
        return table.tableType == _VIEW and is_named_for(made_for, table.tableName, self.above)

    def _made(self, key: tuple[str, str], view: SparkView) -> Any:
        """What the metastore is to have of a view, as Spark would write it."""
        from hive_metastore.ttypes import Table

        name = f"{self.metastore.namespace}.{key[1]}"
        made = Table(
            tableName=key[1],
            dbName=key[0],
            owner=user_name(),
            createTime=int(time.time()),
            partitionKeys=[],
            parameters={
                "comment": f"{name} without technical columns, by infold",
                VIEW_OF: f"{self.above}/{key[1]}",
            },
            tableType=_VIEW,
        )
        say(made, view)
        return made

    @property
    def _client(self) -> HiveClient:
        return self.metastore.client
