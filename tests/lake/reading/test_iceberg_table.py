"""The files of an Iceberg table, by what decides which rows they have; without a JVM."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lake.iceberg.owner import Owner

from infold.lake.reading.iceberg_table import data_files


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    """Of a table with a file."""
    owner = Owner(tmp_path, f"file://{tmp_path / 'lake'}")
    owner.append(a=1)
    return owner


def fingerprint(owner: Owner) -> str:
    """Of the table's one file, for a source that declares some columns."""
    [file] = data_files(owner.table.metadata_location, ["id", "v"])
    return file.fingerprint


def test_names_in_files_that_say_which_column_is_meant(owner: Owner) -> None:
    """Who sets or changes the table's name mapping gives its files other values."""
    found = [fingerprint(owner)]
    for names in (("v",), ("v", "w"), ("w",), ()):
        owner.map_names(*names)
        found.append(fingerprint(owner))
    assert len({*found}) == len(found)

    owner.map_names("v")
    assert fingerprint(owner) == found[1]


def test_names_of_columns_that_are_not_asked_for(owner: Owner) -> None:
    """They change nothing: a column that the table gains gets names too."""
    owner.map_names("v")
    before = fingerprint(owner)
    owner.map_names("v", other=9)
    assert fingerprint(owner) == before


@pytest.mark.parametrize("text", ["{", "7", "[7]", "[{}]", '[{"field-id": 1}]', "null", " "])
def test_a_mapping_that_is_none(owner: Owner, text: str) -> None:
    """It is an owner's text: whatever it is, the listing goes on, and it counts as another one."""
    before = fingerprint(owner)
    with owner.table.transaction() as change:
        change.set_properties({"schema.name-mapping.default": text})
    assert fingerprint(owner) != before or text == "[{}]"
