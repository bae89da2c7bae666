"""The table of what each key of a declaration decides about has every key."""

from __future__ import annotations

from dataclasses import fields

from infold.core.definition import KEYS, Decides
from infold.core.model import Incremental, Model, Source, Timeseries
from infold.core.session_cuts import DeclaredCut
from infold.core.session_rules import Sessions
from infold.core.version_rules import VersionRules

SECTIONS = (
    Model,
    Timeseries,
    Incremental,
    Sessions,
    VersionRules,
    Source,
    *DeclaredCut.__subclasses__(),
)


def test_every_field_of_a_declaration_is_in_the_table() -> None:
    """KEYS has every field and no other; nothing but places is never compared."""
    every = {f"{of.__name__}.{field.name}" for of in SECTIONS for field in fields(of)}

    assert set(KEYS) == every

    silent = {key for key, decides in KEYS.items() if decides is Decides.NOTHING}

    assert silent == {"Model.sql_line", "Model.place", "Source.place", "Source.unread_columns"}
