"""Sources in a database: ``url``, ``key`` and ``corrections`` of a source in infold.yml."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from infold.core.formats import FORMATS, Format
from infold.core.interval import parse_duration
from infold.core.model import Column, Source
from infold.core.target import Target
from infold.declare.keys import Keys
from infold.declare.types import TIMES
from infold.messages import database_errors, findings
from infold.messages.errors import InfoldError, Spot
from infold.system.secrets import REFERENCE, bad_reference, has_password

SQLITE = "sqlite:///"
SCHEMES = (SQLITE, "postgresql+psycopg://", "postgresql://", "${")
FORMS = ("postgresql://USER@HOST:PORT/DATABASE", "sqlite:///FILE")
NONE = "none"
CORRECTIONS = (NONE, "reread 3 days")
NUMBERS = ("smallint", "short", "int", "integer", "bigint", "long")
_NEEDLESS = ("path", "catalog", "on_drift", "timestamp_format")
"""Keys of other sources, but for those that need ``path`` beside them."""
_REREAD = re.compile(r"reread\s+(.+)")


@dataclass(frozen=True, slots=True)
class DatabaseKeys:
    """What the keys of a source say of a database; nothing for any other source."""

    url: str | None = None
    key: str | None = None
    reread: int | None = None


def is_in_database(keys: Keys) -> bool:
    """Whether a source is a table in a database."""
    written = keys.entries.get("format")
    return "url" in keys.entries or (written is not None and written.text == Format.JDBC)


def check_format(keys: Keys) -> Format:
    """The format of such a source; notes what it lacks, and what makes no sense beside it."""
    keys.choice("format", (Format.JDBC,))
    if "url" not in keys.entries:
        keys.missing("url", "it says where the database is")
    if "table" not in keys.entries:
        keys.missing("table", "it names a table, or a view, of the database")
    keys.needless(_NEEDLESS, f"{keys.where}, which is in a database")
    return Format.JDBC


def read_database(keys: Keys, columns: Sequence[Column]) -> DatabaseKeys:
    """What a source says of its database."""
    if not is_in_database(keys):
        return DatabaseKeys()
    url, key, reread = _url(keys), keys.text("key"), _reread(keys)
    if key is None:
        if "key" not in keys.entries:
            where = f"{keys.where} without key, which is read whole each time"
            keys.needless(("corrections",), where)
        return DatabaseKeys(url)
    if "corrections" not in keys.entries:
        why = "whether rows that were read may change later: none, or reread 3 days"
        keys.missing("corrections", why)
    _check_key(keys, key, columns, rereads=reread is not None)
    return DatabaseKeys(url, key, reread)


def _check_key(keys: Keys, key: str, columns: Sequence[Column], *, rereads: bool) -> None:
    column = next((one for one in columns if one.name == key), None)
    at, known = keys.at("key"), [one.name for one in columns]
    if column is None:
        if columns:
            keys.errors.append(findings.no_such_column(at, key="key", column=key, known=known))
        return
    type_ = column.type.strip().lower()
    if column.optional:
        why = "it is optional, and a row without a key would never be read"
    elif type_ not in (*NUMBERS, *TIMES):
        why = f"its type is {column.type}: a whole number, a date or a timestamp grows"
    elif rereads and type_ in NUMBERS:
        why = "it is a number, and `corrections: reread` is a length of time"
    else:
        return
    keys.errors.append(database_errors.bad_key(at, column=key, why=why))


def _url(keys: Keys) -> str | None:
    """The URL, with references to secrets; none in which a password may be is shown."""
    text = keys.text("url")
    if text is None:
        return None
    at = replace(keys.at("url"), text="")
    if (wrong := bad_reference(text)) is not None:
        keys.errors.append(findings.bad_secret(at, key="url", value=wrong))
    elif has_password(text):
        keys.errors.append(findings.password_written_out(at, key="url"))
    elif not text.startswith(SCHEMES) or (text.startswith(SQLITE) and REFERENCE.search(text)):
        scheme, begun, _ = text.partition("://")
        shown = f"{scheme}://…" if begun else "…" if "@" in text else text
        keys.errors.append(findings.bad_value(at, key="url", value=shown, known=FORMS))
    return text


def _reread(keys: Keys) -> int | None:
    """How long before the newest key rows may still change."""
    text = keys.text("corrections")
    if text is None or text == NONE:
        return None
    found = _REREAD.fullmatch(text.strip())
    try:
        length = parse_duration(found[1]) if found else 0
    except ValueError:
        length = 0
    if length <= 0:
        at = keys.at("corrections")
        keys.errors.append(findings.bad_value(at, key="corrections", value=text, known=CORRECTIONS))
        return None
    return length


def refuse_in_stores(
    sources: Mapping[str, Source], targets: Mapping[str, Target], places: Mapping[str, Spot]
) -> Iterator[InfoldError]:
    """An error for each target that has no folder of a disk for what is extracted."""
    extracted = [name for name, source in sources.items() if FORMATS[source.format].is_extracted]
    for name, target in targets.items():
        if target.in_store and extracted:
            yield database_errors.not_beside_store(places[name], source=extracted[0])
