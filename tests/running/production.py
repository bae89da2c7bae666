"""A manual target with built tables, where a run with nothing new has nothing to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from tests.declare.shop import SHOP, write
from tests.running.commands import infold
from tests.running.standing_tables import DECLARED, copied, in_ledger, new_folder, stand_up

from infold import api
from infold.core.project import Project
from infold.lake.reading.formats import files_of
from infold.ledger.database import close_all

TARGET = "  prod: {warehouse: tables, ledger: 'sqlite:///prod.db', protected: true}\n"
EVENT = {"event_id": "1", "user_id": "u", "event_ts": "2024-03-01T10:00:00", "url": "/"}


def production(root: Path) -> Project:
    """The shop with its tables and its one file; nothing of an applied definition is recorded."""
    shop = stand_up(root, TARGET, "prod")
    path = root / "landing" / "clicks" / "a.json"
    path.write_text(json.dumps(EVENT), encoding="utf-8")
    source = shop.sources["raw.clicks"]
    listed, _ = files_of(source.format).list_files(shop, source, api.now())
    [file] = listed
    size, _, written = file.fingerprint.split(":")  # copies have other numbers on the disk
    known = "UPDATE files SET path = ?, size = ?, fingerprint = ?"
    in_ledger(shop, known, file.path, file.size, f"{size}:{written}")
    return shop


def shop_in_production(root: Path) -> Project:
    """The same; the first run has recorded what is applied."""
    return placed(_after_a_run(), root)


@pytest.fixture
def with_applied(tmp_path: Path) -> Project:
    """The shop in production; the first run has recorded what is applied."""
    return shop_in_production(tmp_path / "shop")


@cache
def _after_a_run() -> Project:
    shop = production(new_folder())
    code, printed = infold(shop, "run")
    assert (code, "Nothing to do" in printed) == (0, True), printed
    return shop


def placed(made: Project, root: Path) -> Project:
    """The same project in another folder, in the place of what was there."""
    close_all()  # what is copied is the file alone
    shutil.rmtree(root, ignore_errors=True)
    shop = copied(made, root)
    for table, name in (("locations", "location"), ("steps", "detail")):
        moved = f"UPDATE {table} SET {name} = replace({name}, ?, ?)"
        in_ledger(shop, moved, str(made.root), str(root))
    return shop


def change(shop: Project, *changes: tuple[str, str, str]) -> None:
    """Write the shop's files with some texts replaced: the file's name, old and new."""
    files = {**SHOP, "infold.yml": DECLARED + TARGET}
    for name, old, new in changes:
        assert old in files[name]
        files[name] = files[name].replace(old, new, 1)
    write(shop.root, files)


def applied(shop: Project) -> Mapping[str, str]:
    """The digests that the ledger has as applied."""
    return {name: entry.digest for name, entry in api.ledger_of(shop).applied().items()}


def as_json(shop: Project, *words: str) -> dict[str, object]:
    """What a command prints as JSON; it has to succeed."""
    code, printed = infold(shop, *words, "--json")
    assert code == 0, printed
    found = json.loads(printed)
    assert isinstance(found, dict)
    return found
