"""``catalog`` of a target in infold.yml."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from infold.core.object_store import (
    APPLICATION,
    AWS_KEY,
    AZURE_KEYS,
    OPTION_KEYS,
    PLANNED_SCHEMES,
    SCHEMES,
    SECRETS,
    StorageOptions,
    StoreKind,
    Stores,
    form_of,
    forms,
    is_url,
    names_bucket,
    scheme_of,
)
from infold.core.storages import (
    PLANNED_CATALOGS,
    SQLITE_FILE,
    STORAGE_SETTINGS,
    Catalog,
    CatalogType,
    Storage,
)
from infold.core.target import Publish, Target
from infold.declare.keys import NAME, Keys
from infold.messages import catalog_errors, delta_errors, findings, store_errors
from infold.messages.errors import InfoldError, Spot
from infold.system.secrets import REFERENCE, bad_reference, has_password

KEYS: Mapping[CatalogType, tuple[str, ...]] = {
    CatalogType.SQLITE: ("uri",),
    CatalogType.JDBC: ("uri", "namespace"),
    CatalogType.REST: (
        *("uri", "namespace", "warehouse", "token", "credential", "scope", "oauth2_server_uri"),
    ),
    CatalogType.HIVE: ("uri", "namespace"),
}
"""The keys of each type, beside ``type``."""

CATALOG_SCHEMES: Mapping[CatalogType, tuple[str, ...]] = {
    CatalogType.SQLITE: (SQLITE_FILE,),
    CatalogType.JDBC: ("postgresql://", "postgresql+psycopg://", "${"),
    CatalogType.REST: ("https://", "http://", "${"),
    CatalogType.HIVE: ("thrift://", "${"),
}
FORMS: Mapping[CatalogType, tuple[str, ...]] = {
    CatalogType.SQLITE: ("sqlite:///FILE",),
    CatalogType.JDBC: ("postgresql://USER@HOST:PORT/DATABASE",),
    CatalogType.REST: ("https://HOST/PATH",),
    CatalogType.HIVE: ("thrift://HOST:PORT",),
}
SECRET_FORMS: Mapping[CatalogType, str] = {
    CatalogType.SQLITE: "sqlite:///FILE",
    CatalogType.JDBC: "postgresql://USER:${env:NAME}@HOST:PORT/DATABASE",
    CatalogType.REST: "https://HOST/PATH",
    CatalogType.HIVE: "thrift://HOST:PORT",
}
"""URLs without a password; a server of REST or Hive gets none by its URL."""

CATALOG_SECRETS = ("token", "credential")
OF_ACCESS = ("scope", "oauth2_server_uri")
"""Keys that say how one of these is used."""


def read_catalog(keys: Keys) -> Catalog:
    """The catalog of a target; SQLite in the warehouse where nothing is said."""
    if "catalog" not in keys.entries:
        return Catalog()
    return _declared(keys, of_source=False)


def read_source_catalog(keys: Keys) -> Catalog | None:
    """The catalog that has the table of a source: a SQLite file, or any; None: the target's."""
    value = keys.entries.get("catalog")
    if value is None:
        return None
    if value.kind == "a mapping":
        return _declared(keys, of_source=True)
    return Catalog(uri=f"{SQLITE_FILE}{keys.text('catalog') or ''}")


def _declared(keys: Keys, *, of_source: bool) -> Catalog:
    """A catalog with its keys; the name of a source's table has the namespace in it."""
    section = keys.section("catalog", f"catalog of {keys.where}")
    if section is None:
        return Catalog()
    if "type" not in section.entries:
        section.missing("type")
        return Catalog()
    name = section.choice("type", tuple(CatalogType), PLANNED_CATALOGS)
    if name is None:
        return Catalog()
    type_ = CatalogType(name)
    known = [key for key in KEYS[type_] if not (of_source and key == "namespace")]
    section.check(("type", *known))
    texts = {key: section.text(key) or "" for key in known}
    for key in ("uri", "oauth2_server_uri"):
        if texts.get(key):
            _check_url(section, key, type_)
    if (of_source or type_ is not CatalogType.SQLITE) and "uri" not in section.entries:
        section.missing("uri")
    for key in CATALOG_SECRETS:
        if texts.get(key):
            _check_secret(section, key, texts[key])
    _check_names(section, texts)
    return Catalog(type=type_, **texts)


def _check_names(section: Keys, texts: Mapping[str, str]) -> None:
    """Note two ways to be let in, what is of none, and a namespace that can be none."""
    if texts.get("token") and texts.get("credential"):
        todo = "A catalog has a token, or a credential that is exchanged for one."
        section.needless(("credential",), f"{section.where} with a token", todo)
    elif not any(key in section.entries for key in CATALOG_SECRETS):
        needless = (key for key in OF_ACCESS if texts.get(key))
        section.needless(needless, f"{section.where} without a credential")
    if (namespace := texts.get("namespace")) and not NAME.match(namespace):
        form, at = "letters, digits and underscores, a letter first", section.at("namespace")
        section.errors.append(findings.bad_name(at, what="namespace", name=namespace, form=form))


def refuse_not_together(target: Target, keys: Keys) -> None:
    """Note ``publish: together`` where the catalog cannot do that."""
    if target.publish is Publish.TOGETHER and not target.catalog.at_once:
        keys.errors.append(
            catalog_errors.not_published_together(
                keys.at("publish"), type=target.catalog.type.value
            )
        )


def _check_url(section: Keys, key: str, type_: CatalogType) -> None:
    """Note what is wrong with a URL; none in which a password may be is shown."""
    text = section.entries[key].text
    at, full = replace(section.at(key), text=""), f"catalog.{key}"
    if (wrong := bad_reference(text)) is not None:
        section.errors.append(findings.bad_secret(at, key=full, value=wrong))
    elif has_password(text):
        section.errors.append(
            catalog_errors.secret_written_out(at, key=full, form=SECRET_FORMS[type_])
        )
    elif not text.startswith(CATALOG_SCHEMES[type_]):
        scheme, begun, _ = text.partition("://")
        shown = f"{scheme}://…" if begun else "…" if "@" in text else text
        section.errors.append(findings.bad_value(at, key=full, value=shown, known=FORMS[type_]))


def _check_secret(section: Keys, key: str, text: str) -> None:
    """Note a secret that is written out, or a reference that is none; it is never shown."""
    at, full = replace(section.at(key), text=""), f"catalog.{key}"
    secret = text.split(":", 1)[-1] if key == "credential" and not text.startswith("${") else text
    if (wrong := bad_reference(text)) is not None:
        section.errors.append(findings.bad_secret(at, key=full, value=wrong))
    elif REFERENCE.sub("", secret).strip(" :") or not secret.strip():
        section.errors.append(catalog_errors.secret_written_out(at, key=full, form="${env:NAME}"))


BUCKETS = "buckets"
ENDPOINTS = ("https://", "http://")


def read_stores(keys: Keys) -> Stores:
    """How a target reaches object stores; by the environment where nothing is said."""
    section = keys.section("storage_options", f"storage_options of {keys.where}")
    if section is None:
        return Stores()
    section.check((*OPTION_KEYS, BUCKETS))
    own = section.section(BUCKETS, f"buckets of {section.where}")
    buckets = []
    for name, bucket in own.sections("bucket") if own else ():
        bucket.prefix = f"storage_options.{BUCKETS}.{name}."
        bucket.check(OPTION_KEYS)
        buckets.append((name, _options(bucket)))
    return Stores(_options(section), tuple(buckets))


def check_place(keys: Keys, key: str, url: str) -> None:
    """Note what is wrong with a URL of a store; a path without a scheme is a folder."""
    if not is_url(url):
        return
    at, scheme = keys.at(key), scheme_of(url)
    if scheme in PLANNED_SCHEMES:
        known = ("a folder", *forms())
        keys.errors.append(findings.later_value(at, key=key, value=url, known=known))
    elif scheme not in SCHEMES or has_password(url):
        shown = f"{scheme}://…"
        keys.errors.append(findings.bad_value(at, key=key, value=shown, known=forms()))
    elif not names_bucket(url):
        keys.errors.append(store_errors.no_bucket(at, key=key, form=form_of(scheme)))


def check_warehouse(keys: Keys, url: str, catalog: Catalog, storage: Storage) -> None:
    """Note a warehouse that is no place, and one in a store without a catalog elsewhere."""
    check_place(keys, "warehouse", url)
    if catalog.type is not CatalogType.SQLITE or STORAGE_SETTINGS[storage].by_folders:
        return
    if is_url(url) and not catalog.uri:
        keys.errors.append(store_errors.sqlite_catalog(keys.at("warehouse"), warehouse=url))
    elif catalog.uri and not is_url(url):
        section = keys.section("catalog")
        assert section is not None
        section.needless(("uri",), "a warehouse that is a folder", "The file is in that folder.")


def _written_out(at: Spot, key: str) -> InfoldError:
    return store_errors.secret_written_out(at, key=key)


def _options(section: Keys) -> StorageOptions:
    texts = {key: section.text(key) or "" for key in OPTION_KEYS if key != "path_style"}
    for key in SECRETS:
        check_secret(section, key, texts[key], _written_out)
    for key, other in (AWS_KEY[:2], AWS_KEY[1::-1]):
        if texts[key] and not texts[other] and other not in section.entries:
            at = section.key_at(key)
            section.errors.append(
                store_errors.half_a_key(at, where=section.where, key=key, other=other)
            )
    _check_azure(section, texts)
    if texts["session_token"] and not texts["access_key_id"]:
        section.needless(("session_token",), f"{section.where} without access_key_id")
    if texts["profile"] and texts["access_key_id"]:
        section.needless(("profile",), f"{section.where} with access_key_id")
    endpoint = texts["endpoint"]
    if endpoint and (not endpoint.startswith(ENDPOINTS) or has_password(endpoint)):
        at, known = replace(section.at("endpoint"), text=""), ("https://HOST:PORT",)
        shown = f"{scheme_of(endpoint)}://…" if is_url(endpoint) else endpoint
        section.errors.append(
            findings.bad_value(at, key=section.full_name("endpoint"), value=shown, known=known)
        )
    style = section.flag("path_style", default=True) if "path_style" in section.entries else None
    return StorageOptions(**texts, path_style=style)


def _check_azure(section: Keys, texts: Mapping[str, str]) -> None:
    """Note an application without one of its parts, and a second way to say who one is."""
    parts_given = [key for key in APPLICATION if texts[key]]
    lacking = [key for key in APPLICATION if key not in section.entries]
    if parts_given and lacking:
        at = section.key_at(parts_given[0])
        section.errors.append(
            store_errors.application_in_part(
                at, where=section.where, key=parts_given[0], other=lacking[0]
            )
        )
    ways = [key for key in AZURE_KEYS if texts[key]]
    if ways:
        section.needless(ways[1:], f"{section.where} with {ways[0]}")


def check_secret(
    section: Keys, key: str, text: str, written_out: Callable[[Spot, str], InfoldError]
) -> bool:
    """
    Whether a secret is a reference, or empty.

    Notes one that is ``written_out``, or a reference that is none; it is never shown.
    """
    at, full = replace(section.at(key), text=""), section.full_name(key)
    if (wrong := bad_reference(text)) is not None:
        section.errors.append(findings.bad_secret(at, key=full, value=wrong))
    elif text and not REFERENCE.fullmatch(text.strip()):
        section.errors.append(written_out(at, full))
    else:
        return True
    return False


def refuse_beside_delta(target: Target, keys: Keys) -> None:
    """Note every key of a target that its tables in Delta Lake rule out."""
    if target.storage is not Storage.DELTA:
        return
    for key, feature, todo in _ruled_out(target):
        keys.errors.append(delta_errors.not_with_delta(keys.at(key), what=feature, todo=todo))


def _ruled_out(target: Target) -> Iterator[tuple[str, str, str]]:
    """The keys, with what each asks for, and what to do."""
    catalog = target.catalog
    if not target.registers and not catalog.is_in_warehouse:
        feature = f"a catalog of type {catalog.type.value}"
        todo = (
            "Leave the catalog out: the tables are found by their folders in the warehouse. A Hive "
            "metastore, `type: hive`, can have their names."
        )
        yield "catalog", feature, todo
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
        feature = "Spark Connect" if target.engine.remote else "spark-submit"
        todo = "Let infold start Spark, on this machine or with executors of a cluster."
        yield "engine", f"a Spark that is reached by {feature}", todo


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
