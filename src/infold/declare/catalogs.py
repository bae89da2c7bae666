"""``catalog`` of a target in infold.yml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from infold.core.catalogs import PLANNED_CATALOGS, SQLITE_FILE, Catalog, CatalogType
from infold.core.target import Publish, Target
from infold.declare.keys import NAME, Keys
from infold.messages import catalog_errors, findings
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
    found = {key: section.text(key) or "" for key in known}
    for key in ("uri", "oauth2_server_uri"):
        if found.get(key):
            _check_url(section, key, type_)
    if (of_source or type_ is not CatalogType.SQLITE) and "uri" not in section.entries:
        section.missing("uri")
    for key in CATALOG_SECRETS:
        if found.get(key):
            _check_secret(section, key, found[key])
    _check_names(section, found)
    return Catalog(type=type_, **found)


def _check_names(section: Keys, found: Mapping[str, str]) -> None:
    """Note two ways to be let in, what is of none, and a namespace that can be none."""
    if found.get("token") and found.get("credential"):
        todo = "A catalog has a token, or a credential that is exchanged for one."
        section.needless(("credential",), f"{section.where} with a token", todo)
    elif not any(key in section.entries for key in CATALOG_SECRETS):
        given = (key for key in OF_ACCESS if found.get(key))
        section.needless(given, f"{section.where} without a credential")
    if (namespace := found.get("namespace")) and not NAME.match(namespace):
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
