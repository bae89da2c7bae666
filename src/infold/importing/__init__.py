"""
Projects of other tools, read into one of infold's, with a report of all that did not fit.

Here are the tools whose projects can be imported, and how a folder of each is known.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from infold.importing.draft import Draft
from infold.messages import command_errors

Reader = Callable[[Path, str], Draft]


def reader_of(tool: str) -> Reader:
    """What reads a folder of a tool, by its name."""
    if tool == "dbt":
        if find_spec("jinja2") is None:
            raise command_errors.package_missing(method="`infold import dbt`", package="jinja2")
        from infold.importing.dbt.project import read_dbt

        return read_dbt
    if tool == "sqlmesh":
        from infold.importing.sqlmesh.project import read_sqlmesh

        return read_sqlmesh
    from infold.importing.snowplow import read_snowplow

    return read_snowplow


PROJECT_FILES = {
    "dbt": ("dbt_project.yml",),
    "sqlmesh": ("config.yaml", "config.yml", "config.py"),
    "snowplow": ("dbt_project.yml",),
}
"""A project of a tool has one of these."""


def check_folder(tool: str, root: Path) -> None:
    """Raise for a folder that has no project of this tool."""
    names = PROJECT_FILES[tool]
    if not any((root / name).is_file() for name in names):
        raise command_errors.nothing_to_import(folder=str(root), tool=tool, files=names)
