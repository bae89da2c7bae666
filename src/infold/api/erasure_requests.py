"""Reads the sources that have requests to erase: with Spark, or of a database where they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from infold.core.erasure import RequestColumns, RequestRows
from infold.core.formats import FORMATS
from infold.core.ports import Ledger, Progress
from infold.core.project import Project
from infold.running.erasure_requests import TakenRequests, take_requests

if TYPE_CHECKING:
    from infold.core.files import ListedFile
    from infold.running.source_listings import Listing


def take(project: Project, ledger: Ledger, listing: Listing, progress: Progress) -> TakenRequests:
    """Record the requests that sources have and the ledger does not; see ``take_requests``."""
    return take_requests(project, ledger, listing, partial(_read, project, progress))


def _read(
    project: Project, progress: Progress, columns: RequestColumns, files: Sequence[ListedFile]
) -> RequestRows:
    progress.note(f"{columns.source.name}: requests to erase are read")
    if FORMATS[columns.source.format].is_extracted:
        from infold.api.extraction import open_table
        from infold.lake.databases.erasure_requests import read_requests as read_table

        with open_table(columns.source, project.root) as table:
            return read_table(columns, table)
    from infold.api.spark_sessions import session

    spark = session(project)  # what is imported next is imported while its JVM starts
    from infold.spark.reading.erasure_requests import read_requests

    return read_requests(spark, project, columns, files)
