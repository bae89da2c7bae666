"""The types and defaults of keys on the reference page are those of the code."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
import yaml
from docs.schemas import Row, rows
from tests.declare.shop import read
from tests.docs.pages import DOCS, files_of
from tests.hostile import test_keys as hostile

from infold.core.formats import TIMESTAMP_FORMATS, Format
from infold.core.model import (
    ON_UNREADABLE,
    Deduplicate,
    DefinitionChange,
    Drift,
    Late,
    Materialization,
    NewColumns,
    OnLoss,
    Strategy,
)
from infold.core.sessions import Choose, Keep, Nulls
from infold.core.storages import Storage
from infold.core.target import Apply, HideTechnical, Publish
from infold.declare import models, sources

ROWS = [row for row in rows() if "." not in row.key]

PLACES: Mapping[str, tuple[str, ...]] = {
    "Project keys": ("infold.yml",),
    "Source keys": ("infold.yml", "sources", "raw.clicks"),
    "Seed keys": ("infold.yml", "seeds", "prices"),
    "Request keys": ("infold.yml", "erasure_requests", "person", "raw.rates"),
    "Target keys": ("infold.yml", "targets", "dev"),
    "Model keys": ("clicks",),
    "timeseries": ("daily", "timeseries"),
    "events": ("clicks", "timeseries"),
    "incremental": ("daily", "incremental"),
    "safety_overrides": ("daily", "incremental", "safety_overrides"),
    "bounds": ("daily", "incremental", "bounds", "clicks"),
    "sessions": ("visits", "sessions"),
    "scd_type_2": ("plans", "scd_type_2"),
    "cuts": ("visits", "sessions", "cuts"),
    "campaign": ("visits", "sessions", "cuts", "campaign"),
}
"""Where the keys of a section of the page are in the project of this test."""

VALUES: Mapping[str, Iterable[str]] = {
    "state_messages": ["snowplow"],
    "format": Format,
    "timestamp_format": TIMESTAMP_FORMATS,
    "corrections": sources.CORRECTIONS,
    "quote": sources.QUOTES,
    "full_listing": ("always", "daily", "weekly"),
    "retain": ("forever",),
    "on_drift": Drift,
    "on_new_columns": NewColumns,
    "on_unreadable": ON_UNREADABLE,
    "storage": Storage,
    "apply": Apply,
    "publish": Publish,
    "hide_technical": HideTechnical,
    "materialization": Materialization,
    "prefer": ("column", "column desc"),
    "deduplicate": Deduplicate,
    "granularity": models.GRANULARITIES,
    "week_start": ("monday", "sunday"),
    "strategy": Strategy,
    "on_definition_change": DefinitionChange,
    "on_destructive_change": OnLoss,
    "late": Late,
    "choose_user": Choose,
    "without_identifier": ("set_aside", "{gap: 30 minutes}"),
    "keep": Keep,
    "nulls": Nulls,
}
"""The values of the keys whose type is a list of values."""


def files(documents: Mapping[str, Any]) -> dict[str, str]:
    """The project of this test as files."""
    fronts = {name: document for name, document in documents.items() if name != "infold.yml"}
    found = hostile.files(documents["infold.yml"], fronts)
    return {name: text if isinstance(text, str) else text.decode() for name, text in found.items()}


def documents() -> dict[str, Any]:
    """A new copy of what the project declares."""
    return copy.deepcopy({"infold.yml": hostile.PROJECT, **hostile.FRONTS})


def place(among: dict[str, Any], section: str) -> dict[str, Any]:
    """The mapping that the keys of a section belong to."""
    for name in PLACES[section]:
        among = among[name]
    return among


def test_the_project_of_this_test_is_right() -> None:
    """The project has no errors and every section of keys; the other tests start from it."""
    assert read(files(documents()))[1] == []
    assert {row.section for row in ROWS} | {"events"} == set(PLACES)


WRITTEN = [row for row in ROWS if re.fullmatch(r"`[^`]+`", row.default)]


@pytest.mark.deep
@pytest.mark.parametrize("row", WRITTEN, ids=lambda row: f"{row.section}.{row.key}")
def test_a_default_written_out_changes_nothing(row: Row) -> None:
    """A default in backticks gives the same project as the key left out."""
    bare, given = documents(), documents()
    value = yaml.safe_load(row.default.strip("`"))
    section = row.section
    if row.key == "partition_column":
        value, section = bare["clicks"]["timeseries"][value], "events"
    for each in (bare, given):
        target = place(each, section)
        target.pop(row.key, None)
        if row.key == "week_start":
            target["granularity"] = "week"
    place(given, section)[row.key] = value

    expected, errors = read(files(bare))
    found, more = read(files(given))

    assert (errors, more) == ([], [])
    assert found == expected


REQUIRED = [row for row in ROWS if row.default == "required"]


@pytest.mark.parametrize("row", REQUIRED, ids=lambda row: f"{row.section}.{row.key}")
def test_a_required_key_cannot_be_left_out(row: Row) -> None:
    """A key that the page calls required is missed by its name."""
    given = documents()
    if row.key in ("sessions", "scd_type_2"):
        del given["visits" if row.key == "sessions" else "plans"][row.key]
    else:
        del place(given, row.section)[row.key]

    _, errors = read(files(given))

    assert [error.slug for error in errors if row.key in error.what] == ["missing-key"]


def test_the_values_of_a_key_are_those_of_the_code() -> None:
    """A key with a list of values lists all of them, in the code's order."""
    listed = {
        row.key: re.findall(r"`([^`]+)`", row.type) for row in ROWS if row.type.startswith("`")
    }
    named = {row.key: re.findall(r"`([^`]+)`", row.type) for row in ROWS if row.key == "prefer"}

    assert listed | named == {
        key: [str(value) for value in values] for key, values in VALUES.items()
    }


def test_every_key_is_in_the_annotated_project() -> None:
    """The annotated project has every key of the page that is not one of its model's kind."""
    shown = files_of(DOCS / "annotated-project.md")
    of_tables = ("timeseries", "incremental")
    places = dict.fromkeys(of_tables, "models/daily.sql")
    places |= {f"{what} keys": "infold.yml" for what in ("Project", "Source", "Seed", "Target")}

    assert [
        (row.section, row.key)
        for row in ROWS
        if row.section in places
        and not re.search(rf"(?:^|[\s{{]){row.key}:\s", shown[places[row.section]], re.MULTILINE)
    ] == []
