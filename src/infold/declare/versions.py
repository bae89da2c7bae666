"""The key ``scd_type_2`` of a model: what makes a version."""

from __future__ import annotations

from infold.core.version_rules import VersionRules
from infold.declare.keys import Keys

KEYS = ("updated_at", "columns", "invalidate_hard_deletes")


def read_versions(keys: Keys) -> VersionRules:
    """What the key declares; with errors noted, it is not to be used."""
    section = keys.section("scd_type_2")
    if section is None:
        if "scd_type_2" not in keys.entries:
            keys.missing("scd_type_2", "it says which column has the time: updated_at")
        return VersionRules("")
    section.check(KEYS)
    if "updated_at" not in section.entries:
        section.missing("updated_at", "the column with the time of each version")
    return VersionRules(
        section.text("updated_at") or "",
        section.texts("columns"),
        section.flag("invalidate_hard_deletes", default=False),
    )
