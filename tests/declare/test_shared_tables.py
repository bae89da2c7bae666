"""Two targets whose tables would be in one place, by two names of it, or guarded in one only."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import INFOLD, SHOP, read

from infold.core.storages import Storage
from infold.core.target import Target
from infold.declare.shared_tables import shared_tables
from infold.messages.errors import Spot


def found(root: Path, *targets: Target) -> list[tuple[str, str]]:
    """What is wrong with targets: slug and first sentence."""
    named = {target.name: target for target in targets}
    spots = {name: Spot.of_line("infold.yml", 1, "") for name in named}
    return [(error.slug, error.what) for error in shared_tables("shop", root, named, spots)]


@pytest.mark.parametrize("written", ["w", "./w", "linked"])
def test_one_folder_by_two_names(tmp_path: Path, written: str) -> None:
    """A folder is known by a path that is written otherwise, and by a link. In two storages each
    would find folders of the other; a run of a target that is free would rebuild what another one
    protects.
    """
    (tmp_path / "w").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "w")
    dev, new = Target("dev", "w"), Target("new", written, storage=Storage.DELTA)
    prod = Target("prod", written, protected=True)

    assert [slug for slug, _ in found(tmp_path, dev, new)] == ["not-with-delta"]
    assert found(tmp_path, dev, prod) == [("catalog-same-tables", SAME + "only prod is protected")]


SAME = "targets dev and prod would have the same tables, and "


@pytest.mark.parametrize(
    ("other", "wrong"),
    [
        ("protected: true", "only prod is protected"),
        ("apply: manual", "`apply` is auto in dev and manual in prod"),
        ("warehouse: ./warehouse, ledger: 'sqlite:///prod.db'", "each a ledger of its own"),
        ("warehouse: tables, protected: true", ""),
        ("ledger: 'postgresql://infold@db/ledgers', protected: true", ""),
        ("engine: {master: 'local[2]'}, spark: {spark.driver.memory: 4g}", ""),
    ],
)
@pytest.mark.parametrize("storage", ["iceberg", "delta"])
def test_targets_with_one_warehouse(storage: str, other: str, wrong: str) -> None:
    """Two targets with the same tables and ledger may differ in what computes, not in what guards
    the tables; two ledger files are two ledgers, and two addresses may be one.
    """
    targets = f"  dev: {{storage: {storage}}}\n  prod: {{storage: {storage}, {other}}}\n"

    _, errors = read({**SHOP, "infold.yml": INFOLD.partition("  dev:")[0] + targets})

    assert [error.what for error in errors] == ([SAME + wrong] if wrong else [])
    assert all("`warehouse`" in error.todo for error in errors)
    assert [(error.at.line, error.at.text) for error in errors if error.at] == [
        (21, targets.splitlines()[1]) for _ in errors
    ]


@pytest.mark.parametrize(
    ("schemas", "one"), [(("a", "a"), True), (("", "infold_shop_dev"), True), (("", ""), False)]
)
def test_ledgers_on_a_server(tmp_path: Path, schemas: tuple[str, str], one: bool) -> None:
    """One address and one schema are one ledger; by default each target has a schema."""
    server = "postgresql://infold@db/ledgers"
    dev = Target("dev", ledger=server, ledger_schema=schemas[0])
    prod = Target("prod", ledger=server, ledger_schema=schemas[1], protected=True)

    assert bool(found(tmp_path, dev, prod)) is one


def test_a_named_target_for_development_protects_the_others() -> None:
    """What follows from `dev_target` counts as if it were written."""
    text = f"dev_target: dev\n{INFOLD}  prod: {{}}\n"

    _, [error] = read({**SHOP, "infold.yml": text})

    assert error.what == f"{SAME}only prod is protected"
