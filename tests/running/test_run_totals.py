"""A run's totals, from its steps: rows of files count once, however many models read them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infold.core.files import IngestedFile, ListedFile
from infold.core.interval import Ranges
from infold.core.plan import Action, FileDiff, Step
from infold.core.record import Receipt
from infold.running.run_progress import run_receipt


def took(
    model: str, source: str, paths: str, receipt: Receipt, gone: str = "", due: str = ""
) -> tuple[Step, Receipt]:
    """A step of a model that took in files of ten bytes each, by their letters."""
    files = FileDiff(
        source,
        new=tuple(ListedFile(path, 10, 0, "1") for path in paths),
        removed=tuple(IngestedFile(1, path, 10, "1", 0) for path in gone),
        come_due=tuple(IngestedFile(1, path, 10, "1", 0) for path in due),
    )
    return Step(model, Action.INGEST, Ranges(), (), files=files), receipt


def of(rows: int, files: int = 1, waiting: int = 0, removed: int = 0) -> Receipt:
    """A receipt of rows that arrived."""
    return Receipt(arrived=rows, files_new=files, read=rows, waiting=waiting, files_removed=removed)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("raw.a", "xy", 10), ("raw.a", "xy", 10), (10, 2)),
        (("raw.a", "xy", 10), ("raw.b", "xy", 10), (20, 4)),
        (("raw.a", "x", 4), ("raw.a", "xyz", 10), (10, 3)),
        (("raw.a", "x", 4), ("raw.a", "yz", 10), (14, 3)),
        (("raw.a", "xy", 8), ("raw.a", "yz", 10), (13, 3)),
        (("raw.a", "", 0), ("raw.a", "", 0), (0, 0)),
    ],
    ids=["the same files", "other sources", "more files", "other files", "some alike", "none"],
)
def test_a_file_arrives_once(
    first: tuple[str, str, int], second: tuple[str, str, int], expected: tuple[int, int]
) -> None:
    """A file counts as arrived once, while rows read add up over the models that read it."""
    done = [
        took(model, source, paths, of(rows, len(paths)))
        for model, (source, paths, rows) in (("one", first), ("two", second))
    ]
    found = run_receipt(done)
    assert (found.arrived, found.files_new) == expected
    assert found.read == first[2] + second[2]


def test_rows_wait_once_and_removed_files_count_once() -> None:
    """Waiting rows and removed files count once, also files that come due. Rows of several steps
    of one model add up, because they ingest different files.
    """
    done = [
        took(name, "raw.a", "x", of(3, waiting=2, removed=1), gone="g", due="y")
        for name in ("one", "two")
    ]
    done.append((Step("three", Action.FOLD, Ranges(), ()), Receipt(read=5)))
    found = run_receipt(done)
    assert (found.arrived, found.waiting, found.files_removed, found.read) == (3, 2, 1, 11)
    found = run_receipt([took("one", "raw.a", "x", of(3)), took("one", "raw.a", "y", of(4))])
    assert (found.arrived, found.files_new) == (7, 2)


def test_dated_folders_count_once() -> None:
    """Models of one source list the same folders, or more; those of other sources add up."""
    done = [
        took(name, source, "x", replace(of(3), folders_listed=listed, folders_left_out=out))
        for name, source, listed, out in (
            ("one", "raw.a", 3, 7),
            ("two", "raw.a", 10, 0),
            ("three", "raw.b", 2, 4),
        )
    ]
    found = run_receipt(done)
    assert (found.folders_listed, found.folders_left_out) == (12, 4)


def out(model: str, by: str, rows: int, **also: int) -> tuple[Step, Receipt]:
    """A step of a sessions model that leaves rows out, some that others leave out as well."""
    others = tuple((names.replace("_", ", "), count) for names, count in also.items())
    receipt = Receipt(set_aside=rows, set_aside_by=((by, rows),), set_aside_also=others)
    return Step(model, Action.FOLD, Ranges(), ()), receipt


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        ([out("a", "user", 3), out("b", "user", 2, a=2)], (("user", 3),)),
        ([out("a", "user", 3), out("b", "id", 4, a=1)], (("id", 3), ("user", 3))),
        ([out("b", "user", 2, a=2)], (("user", 2),)),
        ([out("b", "user", 2, a=2), out("c", "user", 3, a=1, a_b=1)], (("user", 4),)),
        ([out("a", "user", 3), out("c", "user", 3, a_b=2, b=1)], (("user", 4),)),
    ],
    ids=["the same", "some of them", "the other did not run", "twice", "in turn"],
)
def test_a_row_is_set_aside_once(
    done: list[tuple[Step, Receipt]], expected: tuple[tuple[str, int], ...]
) -> None:
    """A row counts as set aside in the first model that
    leaves it out; each model alone counts all of its own.
    """
    found = run_receipt(done)
    assert found.set_aside_by == expected
    assert (found.set_aside, found.set_aside_also) == (sum(n for _, n in expected), ())


def test_no_reason_is_left_where_all_rows_count_elsewhere() -> None:
    """A reason disappears when all its rows count for another model, and other reasons stay."""
    first = Step("c", Action.INGEST, Ranges(), ()), Receipt(set_aside=5, set_aside_by=(("bad", 5),))
    found = run_receipt([first, out("a", "user", 2), out("b", "id", 2, a=2)])
    assert (found.set_aside, found.set_aside_by) == (7, (("bad", 5), ("user", 2)))
