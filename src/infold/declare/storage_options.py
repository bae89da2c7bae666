"""``storage_options`` of a target in infold.yml, and the URLs that they are for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from infold.core.catalogs import Catalog, CatalogType
from infold.core.object_store import (
    APPLICATION,
    AWS_KEY,
    AZURE_KEYS,
    OPTION_KEYS,
    PLANNED_SCHEMES,
    SCHEMES,
    SECRETS,
    StorageOptions,
    Stores,
    form_of,
    forms,
    is_url,
    names_bucket,
    scheme_of,
)
from infold.core.storages import STORAGE_SETTINGS, Storage
from infold.declare.keys import Keys
from infold.messages import findings, store_errors
from infold.system.secrets import REFERENCE, bad_reference, has_password

BUCKETS = "buckets"
ENDPOINTS = ("https://", "http://")


def read_stores(keys: Keys) -> Stores:
    """How a target reaches object stores; by the environment where nothing is said."""
    section = keys.section("storage_options", f"storage_options of {keys.where}")
    if section is None:
        return Stores()
    section.check((*OPTION_KEYS, BUCKETS))
    own = section.section(BUCKETS, f"buckets of {section.where}")
    found = []
    for name, bucket in own.sections("bucket") if own else ():
        bucket.prefix = f"storage_options.{BUCKETS}.{name}."
        bucket.check(OPTION_KEYS)
        found.append((name, _options(bucket)))
    return Stores(_options(section), tuple(found))


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


def _options(section: Keys) -> StorageOptions:
    texts = {key: section.text(key) or "" for key in OPTION_KEYS if key != "path_style"}
    for key in SECRETS:
        _check_storage_secret(section, key, texts[key])
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
    given = [key for key in APPLICATION if texts[key]]
    lacking = [key for key in APPLICATION if key not in section.entries]
    if given and lacking:
        at = section.key_at(given[0])
        section.errors.append(
            store_errors.application_in_part(
                at, where=section.where, key=given[0], other=lacking[0]
            )
        )
    ways = [key for key in AZURE_KEYS if texts[key]]
    if ways:
        section.needless(ways[1:], f"{section.where} with {ways[0]}")


def _check_storage_secret(section: Keys, key: str, text: str) -> None:
    """Note a secret that is written out, or a reference that is none; it is never shown."""
    at, full = replace(section.at(key), text=""), section.full_name(key)
    if (wrong := bad_reference(text)) is not None:
        section.errors.append(findings.bad_secret(at, key=full, value=wrong))
    elif text and not REFERENCE.fullmatch(text.strip()):
        section.errors.append(store_errors.secret_written_out(at, key=full))
