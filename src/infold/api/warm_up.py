"""
Runs of a small project, so that the archive of classes has what runs need.

``python -m infold.api.warm_up`` makes the archive and waits for it; a second call finds it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copytree

from infold import api
from infold.spark.jvm import class_archive
from infold.spark.jvm.warm_up import record
from infold.system.circumstances import set_session_priority


def main() -> int:
    """Make the archive if it is missing."""
    if os.getpriority(os.PRIO_PROCESS, 0) >= class_archive.LOWEST:  # not by a target of make
        set_session_priority(os.getpid(), class_archive.LOWEST)
    with class_archive.archive_to_make() as written, tempfile.TemporaryDirectory() as name:
        if written is not None:
            record(written, Path(name), build_starter)
    return 0


def build_starter(folder: Path) -> None:
    """
    Build the tables of the starter, then with late files, then without one of these.

    So events, sessions and tables are built, folded, merged and made again.
    """
    at = folder / "starter"
    with as_file(files("infold") / "starter") as starter:
        copytree(starter, at)
    landing = at / "landing" / "clicks"
    api.run(api.open_project(at))
    late = [path.rename(landing / path.name) for path in sorted((at / "later").iterdir())]
    api.run(api.open_project(at))
    late[0].unlink()
    api.run(api.open_project(at), allow_removals=True)


if __name__ == "__main__":
    sys.exit(main())
