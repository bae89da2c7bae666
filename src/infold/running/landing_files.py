"""
Rows of erased persons in the files of sources, which infold reads and did not write.

They are found by the hashes of requests in the columns that are declared, and counted, or the files
are written again without them. Then a file counts as the one it was: its rows are erased already,
wherever it was read, so no table is built again. Only a file that is in every way as it was read is
written, and one that has rows which were set aside is read again: they go with it.

Extracted files of databases are infold's own, and are written again by each purge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING

from infold.core.environment import model_of_key
from infold.core.erasure import (
    ErasedColumn,
    KeyForm,
    KeyHasher,
    LandingFile,
    as_number,
    latest_by_key,
)
from infold.core.files import IngestedFile, ListedFile, is_as_listed, stat_fingerprint
from infold.core.formats import FORMATS
from infold.core.interval import now
from infold.core.model import Kind, Source
from infold.core.project import Project
from infold.messages.errors import InfoldError
from infold.running.erasures import hasher_of

if TYPE_CHECKING:
    from infold.core.ports import Ledger

_DIGITS = 38
"""Digits of the largest whole number that a column can have."""
_JAVA_SPACE = "".join(map(chr, range(0x21)))


@dataclass(frozen=True, eq=False)
class ErasedKeys:
    """Who is erased from a source whenever a row was: by column, the hashes of erased keys."""

    hasher: KeyHasher
    columns: Sequence[ErasedColumn]
    hashes: Mapping[str, frozenset[str]]
    """By erasure. Requests for older rows alone are left out: rows may be there rightly."""

    @staticmethod
    def by_source(project: Project, ledger: Ledger) -> dict[str, ErasedKeys]:
        """Those of each source that somebody is erased from; raises as :func:`hasher_of`."""
        requests = ledger.erasures()
        keys = {}
        hasher = hasher_of(project, ledger.known_erasures().secret) if requests else None
        for name, columns in project.erased_columns.items():
            hashes = {}
            for entry in columns:
                about = (
                    one for one in requests if one.erasure == entry.erasure and one.is_about(name)
                )
                latest = latest_by_key(about)
                hashes[entry.erasure] = frozenset(
                    key for key, before in latest.items() if before is None
                )
            kept = [entry for entry in columns if hashes[entry.erasure]]
            if kept and hasher is not None:
                keys[name] = ErasedKeys(hasher, kept, hashes)
        return keys

    @property
    def names(self) -> Sequence[str]:
        """The columns that are compared."""
        return [entry.column for entry in self.columns]

    def are_in(self, texts: Sequence[str | None]) -> bool:
        """Whether a row is erased; ``texts`` are its values of ``names``, and maybe more."""
        return any(
            text is not None and self._is_erased(entry, text)
            for entry, text in zip(self.columns, texts, strict=False)
        )

    @lru_cache(maxsize=100_000)  # noqa: B019 - as long as a command
    def _is_erased(self, entry: ErasedColumn, text: str) -> bool:
        key = whole_number(text) if entry.form is KeyForm.NUMBER else text
        hashes = self.hashes[entry.erasure]
        return key is not None and self.hasher.hash_of(entry.erasure, entry.form, key) in hashes


def whole_number(text: str) -> str | None:
    """A value of a column of whole numbers as keys are written: ``1.0`` and ``1e0`` are 1."""
    plain = text.strip(_JAVA_SPACE)
    if (key := as_number(plain)) is not None:
        return key
    try:
        value = Decimal(plain)
    except InvalidOperation:
        return None
    if not value.is_finite() or value.adjusted() >= _DIGITS or value != value.to_integral_value():
        return None
    return str(int(value))


def find_rows(
    project: Project, ledger: Ledger, of: Callable[[Source], bool]
) -> Iterator[tuple[LandingFile, ListedFile | None]]:
    """
    The files of some sources, each with how many rows of erased persons it has; 0 as well.

    Of a source that cannot be looked into, one without a path.
    """
    from infold.lake.reading.formats import files_of
    from infold.lake.reading.row_texts import NotReadError, count_rows, refuse_unread
    from infold.lake.reading.source_file import source_file
    from infold.lake.stores.bucket import ReplacedError

    for name, keys in sorted(ErasedKeys.by_source(project, ledger).items()):
        source = replace(project.sources[name], settle=0)
        if not of(source):
            continue
        try:
            refuse_unread(source, keys.names)
            files, _ = files_of(source.format).list_files(project, source, now())
        except NotReadError as error:
            yield LandingFile(name, "", None, str(error)), None
            continue
        except InfoldError as error:
            if error.slug != "no-such-folder":
                yield LandingFile(name, "", None, error.what), None
            continue
        for file in files:
            stored = source_file(project.root, file, project.target.stores)
            try:
                rows = count_rows(stored, source, keys.names, keys.are_in) if file.size else 0
            except (ValueError, OSError, ReplacedError, InfoldError) as error:
                yield LandingFile(name, file.path, None, _in_a_line(error)), file
            else:
                yield LandingFile(name, file.path, rows), file


def is_own(source: Source) -> bool:
    """Whether infold wrote the files of a source."""
    return FORMATS[source.format].is_extracted


def _in_a_line(error: Exception) -> str:
    """Why a file is not read; no value of it is in that."""
    if isinstance(error, InfoldError):
        return error.what
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)


def rewrite_files(
    project: Project, ledger: Ledger, *, landing: bool, behind: frozenset[str]
) -> Iterator[LandingFile]:
    """
    Write files again without rows of erased persons; those that had some.

    Extracted files of databases, and with ``landing`` all that can be. ``behind`` are keys of
    tables that have yet to erase rows: what they read stays. Whoever calls this has the lease.
    """
    from infold.lake.reading.row_texts import NotReadError
    from infold.lake.reading.source_file import source_file
    from infold.lake.rewritten_files import write_without

    keys, known = ErasedKeys.by_source(project, ledger), _Known(project, ledger, behind)
    # A new file has such a name until it is complete.
    paths = [source.path or "" for source in project.sources.values()]
    hidden_too = any(path.rpartition("/")[2].startswith(("_", ".")) for path in paths)
    for found, file in find_rows(project, ledger, lambda source: landing or is_own(source)):
        source = project.sources[found.source]
        if file is None or not found.rows:
            if found.rows is None:
                yield found
            continue
        stored, of = source_file(project.root, file, project.target.stores), keys[found.source]
        try:
            if hidden_too:
                raise NotReadError("a source takes in names that begin with _ or a dot")
            known.refuse_other(source, file)
            status = write_without(stored, source, of.names, of.are_in, file.fingerprint)
        except (NotReadError, ValueError, OSError) as error:
            yield replace(found, why=_in_a_line(error))
            continue
        if not known.has_set_aside(source, file):
            ledger.replace_file(source.name, file.path, file.fingerprint, stat_fingerprint(status))
        yield found


@dataclass
class _Known:
    """What tables have ingested of the files of sources; those ``behind`` have yet to erase."""

    project: Project
    ledger: Ledger
    behind: frozenset[str]
    _by_source: dict[str, Sequence[Mapping[str, IngestedFile]]] = field(default_factory=dict)

    def refuse_other(self, source: Source, file: ListedFile) -> None:
        """Raise :class:`NotReadError` unless each table has erased from this version of a file."""
        from infold.lake.reading.row_texts import NotReadError

        entries = self._entries(source, file)
        if not entries or not all(
            entry is not None and is_as_listed(entry.fingerprint, file.fingerprint)
            for entry in entries
        ):
            raise NotReadError("no run has read it as it is now")
        if late := sorted(self.behind & {*self._keys(source)}):
            raise NotReadError(f"{late[0]} has yet to erase its rows")

    def has_set_aside(self, source: Source, file: ListedFile) -> bool:
        """Whether a table has set rows of a file aside."""
        return any(entry is not None and entry.set_aside for entry in self._entries(source, file))

    def _entries(self, source: Source, file: ListedFile) -> Sequence[IngestedFile | None]:
        if source.name not in self._by_source:
            self._by_source[source.name] = [
                {entry.path: entry for entry in self.ledger.files(key)}
                for key in self._keys(source)
            ]
        return [entries.get(file.path) for entries in self._by_source[source.name]]

    def _keys(self, source: Source) -> Sequence[str]:
        """The tables that take in files of a source, those of environments too."""
        nodes = {
            node.name
            for node in self.project
            if node.model.kind is Kind.EVENTS and (node.source or node.name) == source.name
        }
        return [key for key in self.ledger.traces() if model_of_key(key) in nodes]
