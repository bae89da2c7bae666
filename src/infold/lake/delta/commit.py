"""
One commit of a Delta table: a file of its log, with an action in each line.

The names of actions and fields are those of Delta's protocol. A file of the log is never written
twice, so what one says is kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from infold.core.files import stat_fingerprint
from infold.lake.stores import places
from infold.messages import run_errors

_READ_AT_ONCE = 16

LOG = "_delta_log"
STEP = "infold.step"
RUN = "infold.run"
SET_BACK = "infold.set_back"
"""In a commit that set the table back: the version whose rows it has again."""
RESTORE = "RESTORE"
"""The operation by which others set a table back to a version."""

Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Commit:
    """
    What a commit did.

    ``own`` is what infold wrote into it. ``changes`` says whether it changed rows, columns or what
    the table asks of its readers; ``rewrites``, whether it put rows into other files only.
    ``may_add_files`` says whether some partition has more files by it, of data or of deletes.
    """

    version: int
    at: int
    """The instant by the writer's clock, in milliseconds since 1970."""
    own: Mapping[str, str]
    changes: bool
    rewrites: bool
    may_add_files: bool
    metadata: Action | None = None
    """The table's name, columns and properties, if the commit sets them."""

    @property
    def is_ours(self) -> bool:
        """Whether infold made it."""
        return STEP in self.own or RUN in self.own or SET_BACK in self.own

    @property
    def is_version(self) -> bool:
        """Whether it counts: removing old files writes commits too, which say nothing of rows."""
        return self.is_ours or self.changes or self.rewrites


def read_commit(file: str, mark: str = "") -> Commit:
    """
    The commit in a file of the log. Raises ``metadata_missing`` where it cannot be read.

    ``mark`` tells it from another file of its name; without one it is looked at first.
    """
    with _named_errors(file):
        return _read_commit(file, fingerprint(file, mark))


def read_actions(file: str, mark: str = "") -> Sequence[Action]:
    """All that the commit in a file of the log did, as the protocol has it; raises the same."""
    with _named_errors(file):
        return _read_actions(file, fingerprint(file, mark))


def fingerprint(file: str, mark: str) -> str:
    """What tells a file from another one of its name. Raises ``OSError``."""
    return mark or stat_fingerprint(Path(file).stat())


@contextmanager
def _named_errors(file: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise run_errors.metadata_missing(path=file, why=why) from error
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        why = f"it is damaged: {error}"
        raise run_errors.metadata_missing(path=file, why=why) from error


@lru_cache(maxsize=256)
def read_ahead(files: tuple[tuple[str, str], ...]) -> None:
    """Read commits of a store beside each other: what is asked for next is known then."""
    with ThreadPoolExecutor(_READ_AT_ONCE) as readers:
        list(readers.map(read_commit, *zip(*files, strict=True)))


@lru_cache(maxsize=4096)
def _read_commit(file: str, mark: str) -> Commit:
    version = int(file.rpartition("/")[2].partition(".")[0])
    return _commit(version, _read_actions(file, mark))


@lru_cache(maxsize=8)
def _read_actions(file: str, mark: str) -> Sequence[Action]:
    """Of few commits: of a version that is made, these are asked for twice."""
    del mark
    return [json.loads(line) for line in places.read(file).decode().splitlines() if line]


def _commit(version: int, actions: Iterable[Action]) -> Commit:
    info: Action = {}
    metadata = None
    data = rewritten = protocol = False
    files: Counter[str] = Counter()
    deletes: Counter[str] = Counter()
    known = True
    for action in actions:
        ((kind, values),) = action.items()
        if kind == "commitInfo":
            info = values
        elif kind == "metaData":
            metadata = values
        elif kind == "protocol":
            protocol = True
        elif kind in ("add", "remove"):
            data = data or bool(values.get("dataChange"))
            rewritten = True
            one = 1 if kind == "add" else -1
            known = known and values.get("partitionValues") is not None
            part = json.dumps(values.get("partitionValues"), sort_keys=True)
            files[part] += one
            deletes[part] += one if values.get("deletionVector") else 0
    more = any(count > 0 for count in (*files.values(), *deletes.values()))
    return Commit(
        version=version,
        at=int(info.get("timestamp", 0)),
        own=_own_facts(info),
        changes=data or metadata is not None or protocol,
        rewrites=rewritten and not data,
        may_add_files=more or not known,
        metadata=metadata,
    )


def _own_facts(info: Action) -> Mapping[str, str]:
    """
    What infold wrote into a commit, of everything that its writer did.

    A table that others restored to a version is as one that infold set back to it.
    """
    own = {key: str(value) for key, value in info.items() if key.startswith("infold.")}
    if info.get("operation") == RESTORE:
        version = str(dict(info.get("operationParameters") or {}).get("version"))
        return {SET_BACK: version} if version.isdecimal() else {}
    try:
        metadata = json.loads(info.get("userMetadata") or "{}")
    except ValueError:  # of somebody else, who may write what he likes
        return own
    if not isinstance(metadata, dict):
        return own
    return {
        **own,
        **{key: str(value) for key, value in metadata.items() if key.startswith("infold.")},
    }
