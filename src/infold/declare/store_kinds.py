"""Options in ``storage_options`` that are for another store than those of a target's places."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from infold.core.model import Source
from infold.core.object_store import (
    OPTION_KINDS,
    SCHEMES,
    StoreKind,
    form_of,
    is_url,
    kind_by_name,
    kind_of,
    scheme_of,
    split,
)
from infold.core.target import Target
from infold.declare.keys import Keys
from infold.declare.storage_options import BUCKETS
from infold.messages import findings
from infold.messages.errors import InfoldError

_OF_EXPORTS = "Of a bucket that only exports go to, they stand in `storage_options.buckets`."


def refuse_other_kinds(
    target: Target, keys: Keys, sources: Collection[Source], *, complete: bool
) -> None:
    """
    Note each option that no library looks at for the places that it is for.

    Of one bucket that is always a mistake. Options of all may be those of several stores, as far as
    places are in them. Which places there are is not known without ``complete`` sources, or where
    the tables of a catalog are sources; and if none is in a store, all options are for exports.
    """
    looked = Keys(keys.value, keys.where, [])  # what is no mapping has its error already
    section = looked.section("storage_options", f"storage_options of {keys.where}")
    if section is None:
        return
    paths = (target.warehouse, *(one.path or "" for one in sources))
    urls = [path for path in paths if is_url(path) and scheme_of(path) in SCHEMES]
    own = section.section(BUCKETS, f"buckets of {section.where}")
    for name, bucket in own.sections("bucket") if own else ():
        kinds = {kind_of(url) for url in urls if split(url)[0] == name}
        keys.errors.extend(_others(bucket, kinds or {_kind_of_named(name, bucket)}, ""))
    if complete and not any(one.path is None and one.url is None for one in sources):
        named = own.entries if own else ()
        kinds = {kind_of(url) for url in urls if split(url)[0] not in named}
        keys.errors.extend(_others(section, kinds, _OF_EXPORTS))


def _kind_of_named(name: str, bucket: Keys) -> StoreKind:
    """Whose store a bucket is in that no place names: the first option that fits its name."""
    if (kind := kind_by_name(name)) is not None:
        return kind
    given = (OPTION_KINDS.get(key, StoreKind.AZURE) for key in bucket.entries)
    return next((kind for kind in given if kind is not StoreKind.AZURE), StoreKind.S3)


def _others(section: Keys, kinds: Collection[StoreKind], todo: str) -> Iterator[InfoldError]:
    where = f"{section.where}, whose places are in {_listed(kinds)}"
    for key in section.entries if kinds else ():
        kind = OPTION_KINDS.get(key)
        if kind is not None and kind not in kinds:
            more = f"It is for places such as {form_of(kind)}. {todo}".strip()
            yield findings.needless_key(section.key_at(key), key=key, where=where, todo=more)


def _listed(kinds: Iterable[StoreKind]) -> str:
    return " and ".join(f"{kind}://" for kind in sorted(kinds))
