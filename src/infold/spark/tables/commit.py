"""What every commit of a storage has in common: its stamp, its write points, its tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from infold.core import write_points
from infold.core.interval import Ranges
from infold.spark.tables.port import Stamp

ROWS_OF_A_FILE = 500_000
"""How many rows of replaced partitions each writing task gets."""


def stamped(stamp: Stamp) -> Mapping[str, str]:
    """A stamp as the properties of a commit."""
    return {
        "infold.run": stamp.run,
        "infold.step": stamp.step,
        "infold.version": str(stamp.version),
        "infold.inputs": json.dumps(dict(stamp.inputs), sort_keys=True),
    }


@contextmanager
def commit_point(table: str) -> Iterator[None]:
    """
    The commit inside is a numbered write point, before and after (see
    ``infold.core.write_points``).
    """
    write_points.point(f"table {table}: before commit")
    yield
    write_points.point(f"table {table}: after commit")


def writing_tasks(touched: Ranges, about: int) -> int:
    """By how many tasks about so many rows are written, each of which makes files of its own."""
    return (1 if len(touched) < 4 else 2) + about // ROWS_OF_A_FILE
