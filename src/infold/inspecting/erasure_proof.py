"""
Whether anything is left of erased persons: every value in every file of the tables, and the ledger.

Values are compared by their hashes with those of the requests, so nobody has to know a key. Who
does know one has it looked for inside of texts as well, and in the bytes of all other files.
Nothing is written, and no Spark is started.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from infold.core.erasure import (
    KeyForm,
    KeyHasher,
    KnownErasures,
    LandingFile,
    ProvenRequest,
    as_number,
)
from infold.core.interval import now
from infold.core.model import ERASURES
from infold.core.project import Project
from infold.core.report import ErasureProof
from infold.declare.unit_tests import PATTERN
from infold.lake.databases.extracted_files import extracted_folder
from infold.lake.stores import places
from infold.ledger.whole_tables import TABLES, batches
from infold.running.erasures import (
    events_with_keys,
    hasher_of,
    list_erasures,
)
from infold.running.landing_files import find_rows, is_own

if TYPE_CHECKING:
    from infold.core.erasure import ErasureRequest
    from infold.core.ports import Lake
    from infold.ledger.store import SqlLedger

_ALL = 1 << 31
"""More runs than a ledger has."""
_AVRO_SYNC = 16
"""Bytes that end a block of an Avro file."""
_LONG_KEY = 8
"""So many bytes in a row are no part of another word by chance."""


def prove_erased(
    project: Project, ledger: SqlLedger, lake: Lake, values: Collection[str] = ()
) -> ErasureProof:
    """
    What is left of all persons who were erased without conditions, and where.

    Raises what :func:`hasher_of` raises.
    """
    known, requests = ledger.known_erasures(), ledger.erasures()
    search = _Search.of(project, known, requests, values)
    search.look_at_tables(project, lake)
    search.look_at_own_files(project)
    with ledger.database.read() as query:
        for table in TABLES if query.exists else ():
            for row in chain.from_iterable(batches(query, table)):
                values_of_row = (value for value in row if isinstance(value, str))
                texts = {text for one in values_of_row for text in _texts(one, search.columns)}
                search.look_at_values(f"ledger: {table.name}", "", KeyForm.TEXT, texts)
            search.looked["tables of the ledger"] += 1
    landing = tuple(_landing_files(project, ledger, search))
    proven = tuple(_proven(project, ledger, known))
    return ErasureProof(
        at=now(),
        requests=tuple(one for one in proven if _is_whole(one.request)),
        conditional=tuple(one for one in proven if not _is_whole(one.request)),
        looked=tuple(sorted(search.looked.items())),
        found=tuple(sorted(search.found.items())),
        by_value=bool(values),
        landing=landing,
    )


def _landing_files(project: Project, ledger: SqlLedger, search: _Search) -> Iterator[LandingFile]:
    """Files of sources and tests with rows of erased persons, and what cannot be looked into."""
    for file, _ in find_rows(project, ledger, lambda source: not is_own(source)):
        search.looked["file of a source"] += file.rows is not None
        if file.rows != 0:
            yield file
    for asked in project.erasure_requests:
        if asked.source.name not in project.erased_columns:
            yield LandingFile(asked.source.name, "", None, "it has the requests of a service")
    for path in sorted(project.root.glob(PATTERN)):
        lines = path.read_text("utf-8", errors="replace").splitlines()
        search.looked["file of unit tests"] += 1
        if rows := sum(any(map(search.is_key, line.split("|"))) for line in lines if "|" in line):
            yield LandingFile("unit tests", path.relative_to(project.root).as_posix(), rows)


def _proven(project: Project, ledger: SqlLedger, known: KnownErasures) -> Iterator[ProvenRequest]:
    """All requests, the oldest first, and since when each is carried out."""
    asked = list_erasures(project, ledger)
    applied: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for run in ledger.runs(_ALL) if asked else ():
        for step in run.steps:
            if step.state == "done" and step.outcome is not None and step.finished_at is not None:
                number = step.outcome.trace.applied_entry
                applied[step.model].append((number, step.finished_at))
    for one in reversed(asked):
        request = one.request
        models = [
            name
            for name, source in events_with_keys(project, request.erasure)
            if request.is_about(source)
        ]
        since = [
            min((at for number, at in applied[name] if number >= request.number), default=None)
            for name in models
            if applied[name]
        ]
        times = [at for at in since if at is not None]
        yield ProvenRequest(
            request,
            bool(one.pending),
            one.purged,
            None if one.pending or len(times) < len(since) else max(times, default=None),
            next((at for number, at in known.purges if number >= request.number), None),
        )


def _is_whole(request: ErasureRequest) -> bool:
    """Whether no row of its persons may be anywhere."""
    return request.source is None and request.before is None


def _folders(project: Project, lake: Lake) -> Iterator[str]:
    """The folders with files of the tables, those of a catalog's own choice too."""
    above = places.below(project.warehouse_location, project.namespace)
    yield above
    for table in lake.made_tables():
        location = lake.location(table)
        if location is not None and location.endswith(".json"):
            folder = places.folder_of(location)
            if not places.is_inside(folder, above):
                yield folder


def _texts(value: str, columns: frozenset[str]) -> Iterator[str]:
    """A text of the ledger; of JSON the texts in it at any depth, and numbers of ``columns``."""
    yield value
    if value[:1] not in ("{", "["):
        return
    try:
        parts = json.loads(value)
    except ValueError:
        return
    for name, part in parts.items() if isinstance(parts, dict) else enumerate(parts):
        if isinstance(part, str | dict | list):
            yield from _texts(part if isinstance(part, str) else json.dumps(part), columns)
        elif str(name).lower() in columns:
            yield str(part)


@dataclass
class _Search:
    """What is looked for, what was looked at, and where something was found."""

    hasher: KeyHasher | None
    requests: Mapping[str, Mapping[str, str]]
    """The request of each hash, by erasure."""
    columns: frozenset[str]
    """Names of columns with keys, in lower case: in others a whole number is no key."""
    values: Sequence[str]
    looked: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)

    @staticmethod
    def of(
        project: Project,
        known: KnownErasures,
        requests: Sequence[ErasureRequest],
        values: Collection[str],
    ) -> _Search:
        """The keys of all requests without conditions, and some that are known."""
        whole = [request for request in requests if _is_whole(request)]
        names = {request.erasure for request in whole}
        by_hash = {
            name: {key: one.id for one in whole if one.erasure == name for key in one.keys}
            for name in names
        }
        columns = {
            entry.column.lower() for entries in project.erased_columns.values() for entry in entries
        }
        hasher = hasher_of(project, known.secret) if any(by_hash.values()) else None
        return _Search(hasher, by_hash, frozenset(columns), [*values])

    def look_at_tables(self, project: Project, lake: Lake) -> None:
        """All files in the folders of tables, but for the table of requests."""
        for folder in _folders(project, lake):
            for name in sorted(places.file_names(folder)):
                if f"/{ERASURES}/" not in f"/{folder}/{name}":
                    self.look_at_file(places.below(folder, name))

    def look_at_own_files(self, project: Project) -> None:
        """What was extracted of databases, and what is below ``.infold``."""
        for source in filter(is_own, project.sources.values()):
            folder = str(extracted_folder(project, source))
            for name in sorted(places.file_names(folder)):
                self.look_at_file(places.below(folder, name))
        own = str(project.root / ".infold")
        for name in sorted(places.file_names(own)):
            if Path(own, name).is_file():  # an engine has a socket there
                self.look_at_bytes("file of .infold", places.below(own, name))

    def look_at_file(self, location: str) -> None:
        """A file of a table: its rows if it has some, else its bytes."""
        if not location.endswith(".parquet"):
            self.look_at_bytes("other file of tables", location)
            return
        self.looked["file with rows"] += 1
        for batch in pq.ParquetFile(pa.BufferReader(places.read(location))).iter_batches():
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                for leaf in leaves(column):
                    form = KeyForm.TEXT if _is_text(leaf.type) else KeyForm.NUMBER
                    texts = {str(value) for value in leaf.unique().to_pylist() if value is not None}
                    self.look_at_values(location, name, form, texts)

    def look_at_values(self, where: str, column: str, form: KeyForm, texts: set[str]) -> None:
        """Different values of a column, or of a table of the ledger."""
        self.looked["different values"] += len(texts)
        if form is KeyForm.NUMBER and column.lower() not in self.columns:
            return
        place = f"{where} {column}".rstrip()
        for text in texts:
            request = self._request_of(text, form)
            if request is not None:
                self.found[f"{place}, request {request}"] += 1
            elif self.values and self._words.search(text.encode(errors="replace")):
                self.found[place] += 1

    def is_key(self, text: str) -> bool:
        """Whether a text is a key of somebody erased, but for blanks around it."""
        key = text.strip()
        return not key.isdigit() and self._request_of(key, KeyForm.TEXT) is not None

    def _request_of(self, text: str, form: KeyForm) -> str | None:
        """The request that a value is a key of: as a text as it is written."""
        key = as_number(text) if form is KeyForm.NUMBER else text
        if self.hasher is None or key is None:
            return None
        for erasure, by_hash in self.requests.items():
            request = by_hash.get(self.hasher.hash_of(erasure, form, key))
            if request is not None:
                return request
        return None

    def look_at_bytes(self, what: str, location: str) -> None:
        """A file of which only bytes are compared: with keys that are known."""
        self.looked[what] += 1
        if not self.values:
            return
        content = places.read(location)
        blocks = b"".join(inflated(content))
        is_text = _is_utf8(content)
        if self._words.search(content) or self._has_key(blocks if is_text else content + blocks):
            self.found[location] += 1

    def _has_key(self, content: bytes) -> bool:
        """Whether bytes that are no text have a key that is known, whatever is beside it."""
        return any(_is_in(value.encode(), content) for value in self.values)

    @cached_property
    def _words(self) -> re.Pattern[bytes]:
        """Keys that are known, where they are no part of a longer word."""
        keys = b"|".join(re.escape(value.encode()) for value in self.values)
        return re.compile(rb"(?<![A-Za-z0-9])(?:" + keys + rb")(?![A-Za-z0-9])")


def _is_in(key: bytes, content: bytes) -> bool:
    """
    Whether a key is in bytes that are no text, whatever is beside it.

    A short one, which is a part of many words, only after its length.
    """
    size = len(key)
    if size >= _LONG_KEY:
        return key in content
    lengths = (bytes([2 * size]), bytes([size]), size.to_bytes(4, "little"))  # Avro, Thrift, plain
    return any(length + key in content for length in lengths)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def leaves(column: pa.Array) -> Iterator[pa.Array]:
    """The texts and whole numbers of a column, at any depth."""
    type_ = column.type
    if pa.types.is_struct(type_):
        for part in column.flatten():
            yield from leaves(part)
    elif pa.types.is_map(type_):
        yield from leaves(column.keys)
        yield from leaves(column.items)
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        yield from leaves(column.flatten())
    elif pa.types.is_dictionary(type_):
        yield from leaves(column.dictionary)
    elif _is_text(type_) or pa.types.is_integer(type_) or _is_whole_decimal(type_):
        yield column


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _is_whole_decimal(type_: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(type_) and type_.scale == 0)


def inflated(content: bytes) -> Iterator[bytes]:
    """
    The blocks of an Avro file by Java's "deflate" or "gzip", as far as there are any.

    Where one begins is not looked up: each place that could be one is tried.
    """
    if not content.startswith(b"Obj\x01"):
        return
    sync = content[-_AVRO_SYNC:]
    for part in content.split(sync)[1:]:
        for start in range(1, min(12, len(part))):
            for bits in (-zlib.MAX_WBITS, zlib.MAX_WBITS | 32):
                try:
                    yield zlib.decompressobj(bits).decompress(part[start:])
                except zlib.error:
                    continue
