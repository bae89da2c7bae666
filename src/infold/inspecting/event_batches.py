"""The events of a session by arrival: the input version that added them, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from infold.core.trace import Version


@dataclass(frozen=True, slots=True)
class EventBatch:
    """
    Events of a session that one version of an input added, or (None) an unknown one.

    ``files`` are some of the files that they came in, and ``more_files`` the number of others.
    ``late``: the session existed already; None where that is not known. ``rebuilt``: the input was
    rebuilt by this version, so when the events first arrived is no longer known.
    """

    version: Version | None
    events: int
    first: int
    last: int
    files: tuple[str, ...] = ()
    more_files: int = 0
    late: bool | None = None
    rebuilt: bool = False
    input: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its time, its input and the input's version that added it, and its file's id."""

    at: int
    version: int | None = None
    file: int | None = None
    input: str = ""


FILES = 2
"""How many files of an arrival are named."""


def event_batches(
    events: Iterable[Event],
    versions: Iterable[Version],
    paths: Mapping[int, str],
    made: int | None,
    *,
    known: bool,
    name: str = "",
) -> tuple[EventBatch, ...]:
    """
    Events of the input ``name``, grouped by the version that added them, in order of arrival.

    ``made`` is the version of the input that the session was first made from. ``known``: it was
    created then; if not, earlier events may have been late nevertheless.
    """
    by_number = {version.number: version for version in versions}
    groups: dict[int | None, list[Event]] = {}
    for event in events:
        groups.setdefault(event.version, []).append(event)
    found = []
    for number in sorted(groups, key=lambda entry: -1 if entry is None else entry):
        group = groups[number]
        version = None if number is None else by_number.get(number)
        named = [paths[one.file] for one in group if one.file is not None and one.file in paths]
        files = sorted(set(named), key=lambda path: (-named.count(path), path))
        rebuilt = version is not None and version.whole and version.number > 1
        found.append(
            EventBatch(
                version=version,
                events=len(group),
                first=min(event.at for event in group),
                last=max(event.at for event in group),
                files=tuple(files[:FILES]),
                more_files=max(0, len(files) - FILES),
                late=None if rebuilt else _is_late(number, made, known),
                rebuilt=rebuilt,
                input=name,
            )
        )
    return tuple(found)


def _is_late(number: int | None, made: int | None, known: bool) -> bool | None:
    if number is None or made is None:
        return None
    return True if number > made else False if known else None
