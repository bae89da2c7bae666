"""Fingerprints of a project's models, and which of them differ after a change of a file."""

from __future__ import annotations

from collections.abc import Mapping

from tests.declare.shop import SHOP, project

from infold.analysis.definitions.compare import compare_projects
from infold.core.definition import Redefinition

VIEW = "---\nmaterialization: view\n---\nSELECT * FROM clicks WHERE amount > 0"
OVER_VIEW = (
    "---\nmaterialization: table\n---\n"
    "SELECT user_id, sum(amount) AS total FROM paid GROUP BY user_id"
)

PLANS = (
    "---\nmaterialization: scd_type_2\nunique_key: [user_id]\n"
    "scd_type_2: {updated_at: event_ts}\n---\n"
    "SELECT user_id, event_ts, event_ts AS seen_at, url FROM clicks"
)

TIMES = SHOP["infold.yml"].replace("      url:", "      sent_at: timestamp\n      url:")
ALL = {**SHOP, "infold.yml": TIMES, "models/paid.sql": VIEW, "models/totals.sql": OVER_VIEW}
WITH_VERSIONS = {**ALL, "models/plans.sql": PLANS}


def fingerprints(files: dict[str, str]) -> dict[str, str]:
    """Each model's fingerprint."""
    return {node.name: node.fingerprint for node in project(files)}


BEFORE = fingerprints(ALL)


def changed(file: str, old: str, new: str) -> set[str]:
    """The models whose fingerprint differs after a change."""
    files = WITH_VERSIONS if file == "models/plans.sql" else ALL
    assert old in files[file], f"{file} has no {old!r}"
    before = fingerprints(files)
    after = fingerprints({**files, file: files[file].replace(old, new)})
    return {name for name in before if after[name] != before[name]}


def redefinitions(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, Redefinition]:
    """What becomes of the models by other files, by name; those that stay are not there."""
    old, new = project(before), project(after)
    found = compare_projects(old.nodes, old.sources, new.nodes, new.sources)
    return {one.model: one for one in found}
