"""How a file's columns differ from the declared ones, by their names."""

from __future__ import annotations

import pytest

from infold.core.formats import Format
from infold.core.model import Column, Drift, NewColumns, Source
from infold.lake.reading.source_file import SourceFile
from infold.spark.reading.drift import PresentFile, differences

FILE = PresentFile(1, "a.json", SourceFile("a.json", 0))
COLUMNS = (Column("id", "string"), Column("userId", "string", optional=True))


@pytest.mark.parametrize("new_columns", [NewColumns.IGNORE, NewColumns.SET_ASIDE])
@pytest.mark.parametrize("on_drift", Drift)
def test_another_case_is_never_ignored(new_columns: NewColumns, on_drift: Drift) -> None:
    """A declared column that a file spells otherwise would be NULL, as one that is optional."""
    source = Source(
        "raw.a", Format.JSON, COLUMNS, path="*", on_new_columns=new_columns, on_drift=on_drift
    )

    found = differences(source, FILE, ["id", "userid"])

    assert found is not None
    assert "column userid in place of userId" in found.how
    assert found.error is (on_drift is not Drift.SET_ASIDE)


def test_both_spellings_are_two_columns() -> None:
    """Beside the declared one another spelling is a column like any other."""
    source = Source("raw.a", Format.JSON, COLUMNS, path="*", on_new_columns=NewColumns.IGNORE)

    assert differences(source, FILE, ["id", "userid", "userId"]) is None
