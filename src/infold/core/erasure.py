"""
Erasures: persons whose rows are to be gone from every table, now and whenever they come again.

A project declares which columns of its sources hold the keys of persons (or of devices, accounts:
whatever is erased by a key). A request to erase one is kept for good, and has keyed hashes in place
of keys, so that the list of those who were forgotten is no list of persons.

A key is hashed as a text and, if it can be one, as a whole number: ``007`` is another text than
``7`` and the same number. A column is compared in the form that its type has.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infold.core.model import Source

BLOCK = 64
"""The bytes of a block of SHA-256, to which HMAC (RFC 2104) fills its key."""


class KeyForm(StrEnum):
    """What keys are compared as."""

    TEXT = "text"
    NUMBER = "number"


_FORMS = (
    (KeyForm.TEXT, re.compile(r"string|(?:var)?char\(\d+\)")),
    (KeyForm.NUMBER, re.compile(r"tinyint|smallint|int|bigint|decimal\(\d+(?:,0)?\)")),
)
_NUMBER = re.compile(r"[+-]?[0-9]{1,38}")


def form_of(type_: str) -> KeyForm | None:
    """How keys of a column of a type (of Spark's SQL) are compared; None: it can hold none."""
    plain = type_.lower().replace(" ", "")
    return next((form for form, types in _FORMS if types.fullmatch(plain)), None)


def as_number(key: str) -> str | None:
    """A key as a whole number is written; None where it is none."""
    plain = key.strip()
    return str(int(plain)) if _NUMBER.fullmatch(plain) else None


@dataclass(frozen=True, slots=True)
class ErasedColumn:
    """A column of a source that holds keys of an ``erasure``, by that name."""

    erasure: str
    column: str
    form: KeyForm


@dataclass(frozen=True, slots=True)
class RequestColumns:
    """
    A source with rows that are requests to erase, a key each, and what its columns are.

    ``requested_at`` has when it was asked, ``id`` what its writer calls it; None where it has none.
    """

    erasure: str
    source: Source
    key: str
    requested_at: str | None = None
    id: str | None = None

    @property
    def source_read(self) -> Source:
        """The source with these columns alone: what is wrong with others matters to nobody."""
        others = {column.name for column in self.source.columns}
        return self.source.without_columns(sorted(others - {self.key, self.requested_at, self.id}))


@dataclass(frozen=True, slots=True)
class AskedKey:
    """A key that rows of such a source have, and what one of them says with it (µs)."""

    key: str
    requested_at: int | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class RequestRows:
    """
    The rows of such a source: each key once, and how many rows are no requests.

    These by file (empty where there is none) and reason, which has no value in it.
    """

    asked: Sequence[AskedKey] = ()
    unusable: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """
    A request to erase the rows with some keys: what nobody may take back.

    ``keys`` are keyed hashes, of each key in all of its forms; without any it only says that all
    earlier requests are about the columns that are declared now. Of ``source`` alone if that is
    given, and of rows dated before ``before`` (µs) if that is.
    """

    number: int
    id: str
    erasure: str
    keys: tuple[str, ...] = ()
    source: str | None = None
    before: int | None = None
    reason: str = ""
    made_at: int = 0

    def is_about(self, source: str) -> bool:
        """Whether it is about rows of a source that has a column of its erasure."""
        return self.source is None or self.source.lower() == source.lower()


@dataclass(frozen=True, slots=True)
class KnownErasures:
    """
    What the ledger has of erasures without their keys.

    ``newest`` is the number of the newest request by erasure and source (None: of any source).
    ``columns`` are those that the requests were applied to: by erasure and source, its column.
    ``secret`` is the fingerprint of the secret that keys are hashed with; empty without requests.
    ``purges`` are numbers up to which no file of a table has a row that was erased, each with when
    that was first so (µs; None: it was not noted), in order.
    """

    newest: Mapping[tuple[str, str | None], int]
    columns: Mapping[tuple[str, str], str]
    secret: str = ""
    purges: tuple[tuple[int, int | None], ...] = ()

    @property
    def purged(self) -> int:
        """The number up to which no file has such a row; 0 for none."""
        return max((number for number, _ in self.purges), default=0)

    def newest_of(self, source: str, columns: Iterable[ErasedColumn]) -> int:
        """The number of the newest request that is about a source with these columns; else 0."""
        names = {entry.erasure for entry in columns}
        return max(
            (
                number
                for (erasure, of_source), number in self.newest.items()
                if erasure in names and (of_source or source).lower() == source.lower()
            ),
            default=0,
        )


@dataclass(frozen=True, slots=True)
class KeyHasher:
    """HMAC-SHA-256 by a secret, whose own hash is the key of the HMAC."""

    key: bytes

    @staticmethod
    def of_secret(secret: str) -> KeyHasher:
        """The hasher of a secret, however long that is."""
        return KeyHasher(sha256(secret.encode()).digest())

    @property
    def fingerprint(self) -> str:
        """Tells whether a secret is the same, and nothing else of it."""
        return self._hash("infold: the secret of erasures")[:16]

    def hashes_of(self, erasure: str, key: str) -> tuple[str, ...]:
        """The hashes of a key in all of its forms."""
        number = as_number(key)
        text = self.hash_of(erasure, KeyForm.TEXT, key)
        return (text,) if number is None else (text, self.hash_of(erasure, KeyForm.NUMBER, number))

    def hash_of(self, erasure: str, form: KeyForm, key: str) -> str:
        """The hash of a key as it is written in a form."""
        return self._hash(message(erasure, form) + key)

    @property
    def pads(self) -> tuple[bytes, bytes]:
        """What goes before the message, and before its hash, in an HMAC (RFC 2104)."""
        filled = self.key.ljust(BLOCK, b"\0")
        inner, outer = (bytes(byte ^ pad for byte in filled) for pad in (0x36, 0x5C))
        return inner, outer

    def _hash(self, text: str) -> str:
        return hmac.new(self.key, text.encode(), sha256).hexdigest()


def message(erasure: str, form: KeyForm) -> str:
    """What stands before a key, where it is hashed: so equal keys of two erasures differ."""
    return f"{erasure}:{form}:"


def latest_by_key(requests: Iterable[ErasureRequest]) -> dict[str, int | None]:
    """Each hash with the instant before which rows are erased; None: all of them."""
    latest: dict[str, int | None] = {}
    for request in requests:
        for key in request.keys:
            before, known = request.before, latest.get(key, request.before)
            latest[key] = None if before is None or known is None else max(known, before)
    return latest


@dataclass(frozen=True, slots=True)
class ProvenRequest:
    """
    A request: whether a table ``waits`` to erase its rows, and whether no file has one (``gone``).

    Since when, in microseconds; None where it is not so, or where nothing noted it.
    """

    request: ErasureRequest
    waits: bool
    gone: bool
    erased_at: int | None = None
    gone_at: int | None = None


@dataclass(frozen=True, slots=True)
class LandingFile:
    """
    A file of a source with rows of erased persons.

    ``rows`` is how many; None where it cannot be looked into, or not all files of the source
    (``path`` is empty then). ``why`` says why that is, or why it was not written again; empty
    where it was, or where nobody asked.
    """

    source: str
    path: str
    rows: int | None
    why: str = ""
