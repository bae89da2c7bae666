"""The statements about files of sources; see ``statements``."""

from __future__ import annotations

from sqlalchemy import (
    ClauseElement,
    Delete,
    Table,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)

from infold.ledger import schema as s


def file_statements() -> dict[str, ClauseElement]:
    """The statements by name; parameters are named like their columns."""
    file, ingest, part = s.files.c, s.ingests.c, s.file_cells.c
    ingested = (
        select(
            file.id,
            file.path,
            file.size,
            file.fingerprint,
            ingest.horizon,
            ingest.next_due,
            ingest.rows,
            ingest.waiting,
            ingest.set_aside,
            ingest.dropped,
            ingest.received_at,
        )
        .join(s.ingests, ingest.file == file.id)
        .where(ingest.model == bindparam("model"))
        .order_by(file.id)
    )
    return {
        "file_id": select(file.id).where(
            file.source == bindparam("source"),
            file.path == bindparam("path"),
            file.fingerprint == bindparam("fingerprint"),
        ),
        "files_of_source": select(file.path, file.fingerprint, file.id).where(
            file.source == bindparam("source")
        ),
        "last_file_id": select(func.max(file.id)),
        "add_file": insert(s.files),
        "files": ingested,
        "file": ingested.where(ingest.file == bindparam("file")),
        "files_due": ingested.where(ingest.next_due <= bindparam("until")),
        "files_set_aside": ingested.where(ingest.set_aside > literal_column("0")),
        "file_versions": select(file.path, file.fingerprint, file.id)
        .join(s.ingests, ingest.file == file.id)
        .where(ingest.model == bindparam("model")),
        "add_ingest": insert(s.ingests),
        "drop_ingest": _without(s.ingests, "model", "file"),
        "drop_ingests": _without(s.ingests, "model"),
        "lose_rows": update(s.ingests)
        .where(ingest.model == bindparam("of_model"), ingest.file == bindparam("of_file"))
        .values(dropped=ingest.dropped + bindparam("more")),
        "file_cells": select(part.file, part.cell_start, part.cell_end, part.rows, part.dropped)
        .where(part.model == bindparam("model"))
        .order_by(part.file, part.cell_start),
        "cells_of_file": select(part.file, part.cell_start, part.cell_end, part.rows, part.dropped)
        .where(part.model == bindparam("model"), part.file == bindparam("file"))
        .order_by(part.file, part.cell_start),
        "add_file_cell": insert(s.file_cells),
        "drop_cells_of_file": _without(s.file_cells, "model", "file"),
        "drop_file_cells": _without(s.file_cells, "model"),
        "lose_rows_in_cell": update(s.file_cells)
        .where(
            part.model == bindparam("of_model"),
            part.file == bindparam("of_file"),
            part.cell_start == bindparam("of_start"),
            part.cell_end == bindparam("of_end"),
        )
        .values(dropped=part.dropped + bindparam("more")),
    }


def _without(table: Table, *names: str) -> Delete:
    return delete(table).where(*(table.c[name] == bindparam(name) for name in names))
