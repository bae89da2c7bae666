"""The key ``scd_type_2`` of a model: what makes a version."""

from __future__ import annotations

from collections.abc import Sequence

from infold.core.version_rules import ALL_COLUMNS, VersionRules
from infold.declare.keys import Keys
from infold.messages import findings

VERSION_KEYS = ("updated_at", "columns", "invalidate_hard_deletes")


def read_versions(keys: Keys) -> VersionRules:
    """What the key declares; with errors noted, it is not to be used."""
    section = keys.section("scd_type_2")
    if section is None:
        if "scd_type_2" not in keys.entries:
            keys.missing("scd_type_2", "it says which column has the time: updated_at")
        return VersionRules("")
    section.check(VERSION_KEYS)
    if "updated_at" not in section.entries:
        section.missing("updated_at", "the column with the time of each version")
    return VersionRules(
        section.text("updated_at") or "",
        section.texts("columns"),
        section.flag("invalidate_hard_deletes", default=False),
    )


def check_compared(keys: Keys, rules: VersionRules, unique_key: Sequence[str]) -> None:
    """Note ``columns`` that compare nothing, and one beside `*`."""
    section = keys.section("scd_type_2")
    if section is None or "columns" not in section.entries:
        return
    named, listed = section.full_name("columns"), section.entries["columns"]
    same = {name.lower() for name in (*unique_key, rules.updated_at)}
    if not rules.columns and listed.kind == "a list":
        section.empty("columns")
    elif ALL_COLUMNS in rules.columns:
        for item in (one for one in listed.items if one.text != ALL_COLUMNS):
            todo = f"`{ALL_COLUMNS}` is all columns but the key and `updated_at`."
            at, where = item.at, f"{named} with {ALL_COLUMNS!r}"
            keys.errors.append(findings.needless_key(at, key=item.text, where=where, todo=todo))
    elif not rules.invalidate_hard_deletes and {one.lower() for one in rules.columns} <= same:
        # With it these are the stretches of time in which a key is there.
        where = "a list of the key and `updated_at` alone"
        todo = (
            f"Name the columns whose change makes a version, or {ALL_COLUMNS!r} for all. Without "
            "the key every instant is a version."
        )
        at = section.key_at("columns")
        keys.errors.append(findings.needless_key(at, key=named, where=where, todo=todo))
