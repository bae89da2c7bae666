"""
Values of columns that the names of folders have: ``country=DE/hour=01/a.json``.

Hive, Spark and Athena write tables in this way. A character that a folder's name cannot have is
written as ``%`` and two hexadecimal digits, NULL as ``__HIVE_DEFAULT_PARTITION__``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_values(path: str, names: Iterable[str]) -> Mapping[str, str | None]:
    """
    The texts of the columns ``names`` in the folders of a file, without those that none has.

    Names are compared letter by letter. Of two folders of a name the one nearer to the file counts.
    """
    wanted, found = set(names), {}
    for folder in path.split("/")[:-1]:
        name, equals, value = folder.partition("=")
        if equals and unquote(name) in wanted:
            found[unquote(name)] = None if value == NULL else unquote(value)
    return found
