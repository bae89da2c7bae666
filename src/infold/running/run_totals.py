"""
The receipt of a whole run, from the receipts of its steps.

Receipts add up, but for counts of files: rows of a file arrive once, however many models ingest the
file, and wait once. Rows that several sessions models leave out are set aside once, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from infold.core.plan import Step
from infold.core.record import Receipt

Done = Sequence[tuple[Step, Receipt]]


def run_receipt(done: Done) -> Receipt:
    """The receipt of a run: each file of a source counts once, and each row that is set aside."""
    ran = {step.model for step, _ in done}
    found = sum((_without_shared_rows(receipt, ran) for _, receipt in done), Receipt())
    taken = _by_source(done)
    if not taken:
        return found
    sources = [list(models.values()) for models in taken.values()]
    return replace(
        found,
        arrived=sum(
            _rows_counted_once((one.arrived, one.new_files) for one in models) for models in sources
        ),
        waiting=sum(
            _rows_counted_once((one.waiting, one.read_files) for one in models)
            for models in sources
        ),
        files_new=sum(len(set().union(*(one.new_files for one in models))) for models in sources),
        files_removed=sum(len(set().union(*(one.removed for one in models))) for models in sources),
        folders_listed=sum(max(one.folders for one in models)[0] for models in sources),
        folders_left_out=sum(max(one.folders for one in models)[1] for models in sources),
    )


def _without_shared_rows(receipt: Receipt, ran: Collection[str]) -> Receipt:
    """A receipt without the rows that other models of the run set aside and count as well."""
    again = sum(
        rows
        for names, rows in receipt.set_aside_also
        if any(name in ran for name in names.split(", "))
    )
    if not receipt.set_aside_also:
        return receipt
    # A sessions model leaves rows out for one reason.
    by = tuple((reason, rows - again) for reason, rows in receipt.set_aside_by if rows > again)
    left = receipt.set_aside - again
    return replace(receipt, set_aside=left, set_aside_by=by, set_aside_also=())


@dataclass(slots=True)
class _SourceTotals:
    """What one model ingested from one source: rows, and paths with sizes."""

    arrived: int = 0
    waiting: int = 0
    new_files: dict[str, int] = field(default_factory=dict)
    read_files: dict[str, int] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    folders: tuple[int, int] = (0, 0)
    """Those listed, and those left out, in its last step."""


def _by_source(done: Done) -> dict[str, dict[str, _SourceTotals]]:
    """Source → model → what it took in."""
    found: dict[str, dict[str, _SourceTotals]] = {}
    for step, receipt in done:
        if step.files is None:
            continue
        one = found.setdefault(step.files.source, {}).setdefault(step.model, _SourceTotals())
        one.arrived += receipt.arrived
        one.waiting += receipt.waiting
        one.new_files.update((file.path, file.size) for file in step.files.new)
        one.read_files.update((file.path, file.size) for file in step.files.new)
        one.read_files.update((file.path, file.size) for file in step.files.come_due)
        one.folders = (receipt.folders_listed, receipt.folders_left_out)
        if receipt.files_removed:
            one.removed.update(file.path for file in step.files.removed)
    return found


def _rows_counted_once(counts: Iterable[tuple[int, Mapping[str, int]]]) -> int:
    """
    Rows of files that several models ingested, each file's once.

    Mostly models ingest the same files, or one ingests all that another does. Where they share only
    some, the rows of the others are estimated by the sizes of files.
    """
    known: set[str] = set()
    rows = 0
    for count, files in sorted(counts, key=lambda pair: -len(pair[1])):
        size = sum(files.values())
        fresh = sum(size for path, size in files.items() if path not in known)
        rows += count if fresh == size else round(count * fresh / size)
        known.update(files)
    return rows
