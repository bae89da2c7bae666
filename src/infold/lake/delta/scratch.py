"""Scratch tables, whose later versions can be taken away as if they had never been."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from infold.lake.delta import folders
from infold.lake.delta.commit import LOG
from infold.lake.delta.expiry import delete
from infold.lake.delta.log import entries_after, read_log


def scratch_versions(parent: Path) -> dict[str, int]:
    """The newest version of each table in a folder."""
    logs = {name: read_log(str(parent / name)) for name in folders.names(str(parent))}
    return {name: log.newest for name, log in logs.items() if log is not None}


def put_scratch_back(parent: Path, kept: Mapping[str, int]) -> None:
    """Let there be exactly these tables, each at its version; their logs have never been cut."""
    for name in scratch_versions(parent):
        if name not in kept:
            shutil.rmtree(parent / name)
            continue
        folder = str(parent / name)
        delete([*entries_after(folder, kept[name]), f"{folder}/{LOG}/_last_checkpoint"])
