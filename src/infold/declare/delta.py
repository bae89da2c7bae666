"""What does not go with Delta Lake, yet: keys of a target with such tables, names of sources."""

from __future__ import annotations

from collections.abc import Iterator

from infold.core.catalogs import CatalogType
from infold.core.object_store import StoreKind, scheme_of
from infold.core.storages import Storage
from infold.core.target import Publish, Target
from infold.declare.keys import Keys
from infold.messages import delta_errors, findings


def refuse_beside_delta(target: Target, keys: Keys) -> None:
    """Note every key of a target that its tables in Delta Lake rule out."""
    if target.storage is not Storage.DELTA:
        return
    for key, what, todo in _ruled_out(target):
        keys.errors.append(delta_errors.not_with_delta(keys.at(key), what=what, todo=todo))


def _ruled_out(target: Target) -> Iterator[tuple[str, str, str]]:
    """The keys, with what each asks for, and what to do."""
    catalog = target.catalog
    if not target.registers and not catalog.is_in_warehouse:
        what = f"a catalog of type {catalog.type.value}"
        todo = (
            "Leave the catalog out: the tables are found by their folders in the warehouse. A Hive "
            "metastore, `type: hive`, can have their names."
        )
        yield "catalog", what, todo
    if target.in_store and scheme_of(target.warehouse) == StoreKind.HDFS:
        todo = "Store the tables in Iceberg, or in a folder or another store. Sources may be there."
        yield "warehouse", "a warehouse in HDFS", todo
    if target.publish is Publish.TOGETHER and catalog.at_once:  # else that is said of the catalog
        todo = "Leave it out: readers see each table once its step is done."
        yield "publish", "`publish: together`", todo
    if target.hide_technical is not None and not target.registers:
        todo = (
            "Leave it out: a folder is a table and no view. A Hive metastore, `type: hive` in "
            "`catalog`, can have views of the tables."
        )
        yield "hide_technical", "`hide_technical: views` without a metastore", todo
    if target.engine.remote or target.engine.submitted:
        what = "Spark Connect" if target.engine.remote else "spark-submit"
        todo = "Let infold start Spark, on this machine or with executors of a cluster."
        yield "engine", f"a Spark that is reached by {what}", todo


def check_delta_name(keys: Keys, table: str) -> None:
    """Note what is wrong with `table` and `catalog` of a source in Delta Lake."""
    if not all(table.split(".")) or table.count(".") != 1:
        form = "namespace.name, as the metastore has it"
        keys.errors.append(findings.bad_name(keys.at("table"), what="table", name=table, form=form))
    catalog = keys.entries.get("catalog")
    if catalog is None:
        keys.missing("catalog", "a Delta table is found by its name in a Hive metastore")
        return
    is_file = catalog.kind == "text"
    named = catalog.entries.get("type") if catalog.kind == "a mapping" else None
    type_ = CatalogType.SQLITE.value if is_file else named.text if named else ""
    if type_ in {*CatalogType} and type_ != CatalogType.HIVE:
        keys.errors.append(delta_errors.source_catalog(keys.at("catalog"), type=type_))
