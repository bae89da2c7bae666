"""
The objects of a source that are there now: pages of a listing, compared with a pattern.

A pattern means what it means for files (``listing``): all objects below the part of it that has no
pattern are listed, and those are left out that it does not match. A listing shows the ETag of each
object, which changes with its content. So an object is never told to be new by its time. The
fingerprint has the time too where it becomes a column (``file_time_column``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from operator import attrgetter

from infold.core.files import (
    WILD,
    DatedPath,
    IngestedFile,
    Listed,
    ListedFile,
    glob_of,
    listed_fingerprint,
)
from infold.core.formats import FORMATS, ending_for_spark
from infold.core.interval import SECOND
from infold.core.model import Source
from infold.core.object_store import split
from infold.core.project import Project
from infold.lake.reading.table_folders import (
    HIDDEN,
    TableFolder,
    marks_above,
    matcher,
    may_be_of_tables,
    refuse_files_of,
    refuse_tables,
    table_with,
)
from infold.lake.stores.bucket import AT_ONCE, PAGE, Bucket
from infold.lake.stores.bucket import Listed as Object
from infold.lake.stores.buckets import bucket_of
from infold.messages import store_errors
from infold.messages.errors import InfoldError


def matching_objects(
    project: Project, source: Source, now: int
) -> tuple[tuple[ListedFile, ...], tuple[str, ...]]:
    """The objects that match a source's path, by URL; and the URLs of those yet to settle."""
    url = glob_of(source.path or "")
    bucket = bucket_of(url, project.target.stores, project.root)
    base, _ = _split(split(url)[1])
    objects = list(bucket.list(base)) or ([] if WILD.search(url) else _alone(bucket, base))
    if not objects and not bucket.has_folder(base):
        raise _nothing_there(source)
    return _matching(source, objects, now, bucket)


def objects_without(
    project: Project, source: Source, now: int, path: DatedPath, skip: frozenset[str]
) -> Listed:
    """As :func:`matching_objects`, without dated folders that may be left out."""
    bucket = bucket_of(source.path or "", project.target.stores, project.root)
    above = _above(source)
    base = path.start[len(above) :].rstrip("/")
    dated = [base]
    for pattern in path.names:
        dated = [inner for folder in dated for inner in _folders(bucket, folder, pattern)]
    if not dated and not bucket.has_folder(base):
        raise _nothing_there(source)
    folders = [folder for folder in dated if above + folder not in skip]
    with ThreadPoolExecutor(max(1, min(AT_ONCE, len(folders)))) as pool:
        pages = pool.map(lambda folder: list(bucket.list(folder)), folders)
        files, settling = _matching(source, chain.from_iterable(pages), now, bucket)
    left_out = frozenset(above + folder for folder in dated) & skip
    return Listed(files, settling, len(folders), left_out)


def _folders(bucket: Bucket, folder: str, pattern: str) -> list[str]:
    """The folders in a folder that match; objects of such names too, below which is nothing."""
    matches, hidden = matcher(pattern, last=False), pattern[0] in HIDDEN
    return [
        f"{folder}/{name}" if folder else name
        for name in bucket.names(folder)
        if (hidden or name[:1] not in HIDDEN) and matches(name)
    ]


def start_and_parts(source: Source) -> tuple[str, list[str]]:
    """What the URLs of all objects begin with, and the patterns of the names after it."""
    base, parts = _split(split(glob_of(source.path or ""))[1])
    return _above(source) + (base and base + "/"), parts


def _above(source: Source) -> str:
    """The URL of the bucket, with a slash."""
    url = source.path or ""
    return url[: url.index("://") + 3] + split(url)[0] + "/"


def _nothing_there(source: Source) -> InfoldError:
    folder = start_and_parts(source)[0].rstrip("/")
    return store_errors.nothing_there(source=source.name, pattern=source.path or "", folder=folder)


def _matching(
    source: Source, objects: Iterable[Object], now: int, bucket: Bucket
) -> tuple[tuple[ListedFile, ...], tuple[str, ...]]:
    """Those of some objects that match."""
    base, parts = _split(split(glob_of(source.path or ""))[1])
    above, latest = _above(source), now - source.settle if source.settle else None
    skip = len(base) + 1 if base else 0
    matching: list[ListedFile] = []
    young: list[str] = []
    tables: set[TableFolder] = set()
    for entry in objects:
        if (table := table_with(above + entry.key)) is not None:
            tables.add(table)
        names = entry.key[skip:] or entry.key.rpartition("/")[2]
        # What has no bytes has no rows; most are what tools leave for the name of a folder.
        if not entry.size or not _matches(names.split("/"), parts):
            continue
        path = above + entry.key
        if latest is not None and entry.seconds * SECOND > latest:
            young.append(path)
            continue
        refuse_name(source, path)
        fingerprint = _fingerprint(source, entry)
        matching.append(ListedFile(path, entry.size, entry.seconds * SECOND, fingerprint))
    if may_be_of_tables(source):
        urls = [*(file.path for file in matching), *young]
        refuse_files_of(source, urls, tables)
        marks = (above + mark for mark in marks_above(base and base + "/"))
        refuse_tables(source, urls, marks, partial(_names_in, bucket))
    matching.sort(key=attrgetter("path"))
    return tuple(matching), tuple(sorted(young))


def _names_in(bucket: Bucket, url: str) -> Iterator[str]:
    """The names below a folder, as far as one request shows them."""
    folder = split(url)[1]
    for listed in islice(bucket.list(folder), PAGE):
        yield listed.key.removeprefix(folder + "/")


def _alone(bucket: Bucket, key: str) -> list[Object]:
    """The one object that a path without a pattern names, which is no folder."""
    try:
        return [bucket.head(key)] if key else []
    except FileNotFoundError:
        return []


def _split(key: str) -> tuple[str, list[str]]:
    """The part of a key without a pattern, and the patterns below it."""
    names = [name for name in key.split("/") if name not in ("", ".")]
    fixed = next((i for i, name in enumerate(names) if WILD.search(name)), len(names))
    parts = [
        name for i, name in enumerate(names) if i >= fixed and names[i - 1 : i + 1] != ["**"] * 2
    ]
    return "/".join(names[:fixed]), parts or ["**", "*"]


def _matches(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether the names of folders and of an object match those of a pattern."""
    if not names or not parts:
        return not names and not parts
    part = parts[0]
    if part == "**":
        deeper = parts[1:] or ["*"]
        return _matches(names, deeper) or (
            names[0][:1] not in HIDDEN and len(names) > 1 and _matches(names[1:], parts)
        )
    if names[0][:1] in HIDDEN and part[0] not in HIDDEN:
        return False
    last = len(parts) == 1
    return bool(matcher(part, last=last)(names[0])) and _matches(names[1:], parts[1:])


def _fingerprint(source: Source, entry: Object) -> str:
    plain = f"{entry.size}:{entry.etag}"
    return plain if source.file_time_column is None else f"{plain}:{entry.seconds * 10**9}"


def refuse_name(source: Source, path: str) -> None:
    """Raise for an object that Spark would pass over silently, or look for under another name."""
    name = path.rpartition("/")[2]
    why = ""
    if name[0] in HIDDEN or name.endswith("._COPYING_"):
        why = f"Spark passes over names that begin with {name[0]}"
    elif ":" in split(path)[1]:
        why = "Hadoop takes a colon for the end of a URL's scheme"
    elif not path.isprintable():
        why = "there are characters in it that cannot be printed"
    elif ending_for_spark(name) is not None and _is_text(source):
        why = "infold reads packed objects whose names end in .gz, .bz2 or .zst"
    if why:
        raise store_errors.bad_name(source=source.name, path=ascii(path).strip("'"), why=why)


def _is_text(source: Source) -> bool:
    traits = FORMATS[source.format]
    return bool(traits.suffixes) and not traits.has_types


def changed_objects(
    project: Project, source: Source, files: Iterable[ListedFile | IngestedFile]
) -> list[str]:
    """Those of some objects that are no longer what their listing showed."""
    files = list(files)
    if not files:
        return []
    with ThreadPoolExecutor(min(AT_ONCE, len(files))) as pool:
        same = pool.map(lambda file: _is_same(project, source, file), files)
        return [file.path for file, is_ in zip(files, same, strict=True) if not is_]


def _is_same(project: Project, source: Source, file: ListedFile | IngestedFile) -> bool:
    bucket = bucket_of(file.path, project.target.stores, project.root)
    try:
        current = bucket.head(split(file.path)[1])
    except FileNotFoundError:
        return False
    if isinstance(file, ListedFile) and file.modified_at != current.seconds * SECOND:
        return False  # replaced and put back: it may have been read in between
    return listed_fingerprint(file.fingerprint) == _fingerprint(source, current)
