"""
The formats of sources: the one list of them, and what each is without a row of it being read.

Two packages read them, a module for each format in both: ``lake/reading`` without a JVM (which
files there are, event times for an estimate, numbers of rows) and ``spark/reading`` with Spark
(which files drift, rows). Each package has a registry by format. :func:`complete` refuses, when it
is imported, a registry that lacks a format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TypeVar

from infold.core.interval import SECOND

T = TypeVar("T")


class Format(StrEnum):
    """How the rows of a source are stored."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    AVRO = "avro"
    ORC = "orc"
    ICEBERG = "iceberg"
    DELTA = "delta"
    JDBC = "jdbc"


@dataclass(frozen=True, slots=True)
class FormatTraits:
    """
    What is known of a format before a file is opened.

    A format of files is found by ``path``. A table (``is_table``) is found by ``table`` in a
    catalog. If it is a folder (``is_folder``), ``path`` may name that, too. It has columns of its
    own, and a change of it moves rows from file to file. A table of a database (``is_extracted``)
    is found by ``url``: runs copy its rows into files.
    """

    suffixes: tuple[str, ...] = ()
    """Endings of file names that mean this format, before those of ``PACKINGS``."""
    keys: tuple[str, ...] = ()
    """Keys of a source in infold.yml that only this format has."""
    is_table: bool = False
    is_extracted: bool = False
    is_folder: bool = False
    has_types: bool = False
    """Whether the values of a file have types of their own, and are no texts."""
    reading_cost: int = 1
    """How much longer than a text of that size a file takes to be read in this process, about."""

    @property
    def is_in_catalog(self) -> bool:
        """Whether it is a table that is known by its name in a catalog, and by nothing else."""
        return self.is_table and not self.is_folder


FORMATS: Mapping[Format, FormatTraits] = {
    Format.CSV: FormatTraits(suffixes=(".csv", ".tsv"), keys=("delimiter", "header", "quote")),
    Format.JSON: FormatTraits(suffixes=(".json", ".jsonl", ".ndjson"), keys=("multiline",)),
    Format.PARQUET: FormatTraits(suffixes=(".parquet",), has_types=True),
    Format.AVRO: FormatTraits(suffixes=(".avro",), has_types=True, reading_cost=10),
    Format.ORC: FormatTraits(suffixes=(".orc",), has_types=True),
    Format.ICEBERG: FormatTraits(is_table=True),
    Format.DELTA: FormatTraits(is_table=True, is_folder=True),
    Format.JDBC: FormatTraits(
        keys=("url", "key", "corrections"), is_extracted=True, has_types=True
    ),
}


EPOCH_UNITS: Mapping[str, int] = {
    "epoch_seconds": SECOND,
    "epoch_millis": 1_000,
    "epoch_micros": 1,
}
"""Timestamps written as numbers since 1970: the name in infold.yml, and 1 in microseconds."""

TIMESTAMP_FORMATS = ("iso", *EPOCH_UNITS)
"""The names that ``timestamp_format`` knows; anything else is a pattern."""


PACKINGS: Mapping[str, str] = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".bz2": "bz2",
    ".zst": "zstd",
    ".zstd": "zstd",
}
"""Endings of packed files of text, in letters of any case, and Arrow's word for each."""
_PACKED_SUFFIXES = tuple(PACKINGS)

_SUFFIX_IN_SPARK: Mapping[str, str] = {
    ".gzip": ".gz",
    ".zstd": ".zst",
    ".deflate": "",
    ".lz4": "",
    ".snappy": "",
}
"""
Endings by which Spark takes a file of text for another than it is here, and what it has to see.

A long file with one of the first two it divides, and then cannot unpack the parts. Files with one
of the others it unpacks, which nothing here does.
"""


def packing_of(path: str) -> str | None:
    """How a file is packed, by the ending of its name."""
    if not path[-5:].lower().endswith(_PACKED_SUFFIXES):  # asked of many thousands
        return None
    return PACKINGS.get(PurePosixPath(path).suffix.lower())


def ending_for_spark(name: str) -> str | None:
    """What ending Spark has to see in place of a file's own; None if its own will do."""
    return _SUFFIX_IN_SPARK.get(f".{name.rpartition('.')[2].lower()}")


def unpacked_name(path: str) -> str:
    """The name without the ending that says how it is packed."""
    return path if packing_of(path) is None else path[: -len(PurePosixPath(path).suffix)]


def format_of_path(path: str) -> Format | None:
    """The format of a file's name; None when its ending is of no format."""
    name = unpacked_name(PurePosixPath(path).name.lower())
    suffix = PurePosixPath(name).suffix
    return next((format_ for format_, one in FORMATS.items() if suffix in one.suffixes), None)


def complete(registry: Mapping[Format, T]) -> Mapping[Format, T]:
    """The registry itself; TypeError when it lacks a format."""
    missing = [format_.value for format_ in Format if format_ not in registry]
    if missing:
        raise TypeError(f"a registry of formats lacks {', '.join(missing)}")
    return registry


complete(FORMATS)
