"""What is left of an erased person is found wherever it is planted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.declare.shop import write

from infold import api
from infold.core.audits import AuditResult, AuditState, Severity
from infold.core.erasure import LandingFile
from infold.core.project import Project
from infold.core.record import Receipt
from infold.core.sessions import ManualEntry
from infold.inspecting import erasure_proof

CONFIG = """\
name: shop
sources:
  raw.clicks:
    path: landing/*.json
    columns: {who: string, device: bigint}
erasures:
  person: {raw.clicks: who}
  device: {raw.clicks: device}
targets:
  dev: {erasure_secret: "${env:ERASED_BY}"}
"""
MODEL = """\
---
materialization: table
---
SELECT who, device FROM raw.clicks
"""
ROWS: dict[str, tuple[str, Any]] = {
    "text": ("note", pa.array(["mallory", None, "bob"])),
    "dictionary": ("note", pa.array(["bob", "mallory"]).dictionary_encode()),
    "struct": ("of", pa.array([{"a": {"b": "mallory"}}, None])),
    "list": ("of", pa.array([["bob"], ["eve", "mallory"], None])),
    "map": ("of", pa.array([[("k", ["mallory"])]], pa.map_(pa.string(), pa.list_(pa.string())))),
    "key of a map": ("of", pa.array([[("mallory", 1)]], pa.map_(pa.string(), pa.int64()))),
    "number": ("device", pa.array([5, 4711])),
    "decimal": ("device", pa.array([4711], pa.decimal128(20))),
}
"""Columns that have an erased key."""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project in which a person and a device were asked to be erased."""
    monkeypatch.setenv("ERASED_BY", "one that nobody guesses")
    write(tmp_path, {"infold.yml": CONFIG, "models/clicks.sql": MODEL})
    project = api.open_project(tmp_path)
    api.erase(project, "person", ["mallory"], request="text")
    api.erase(project, "device", ["4711"], request="number")
    return project


def table(shop: Project) -> Path:
    """The folder of a table."""
    folder = shop.root / "warehouse" / "shop" / "clicks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def found(shop: Project, *values: str) -> list[str]:
    """Where something is left, by places in the project."""
    proof = api.prove_erased(shop, values)
    return [place.replace(f"{shop.root}/", "") for place, _ in proof.found]


@pytest.mark.parametrize("name", ROWS)
def test_values_in_rows(shop: Project, name: str) -> None:
    """Found by their hashes alone, at any depth, also in a file that no snapshot has."""
    column, values = ROWS[name]
    pq.write_table(pa.table({column: values}), table(shop) / "orphan.parquet")
    of = "number" if column == "device" else "text"
    assert found(shop) == [f"warehouse/shop/clicks/orphan.parquet {column}, request {of}"]


def test_what_is_none(shop: Project) -> None:
    """Others' keys, other numbers, requests; texts that have a key in them are found by that."""
    rows = {"note": ["Mallory", "mallory@x.org", "mallory "], "n": [4711, 1, 2]}
    rows |= {"code": ["4711 ", "04711", ""]}  # texts that are other keys, and the same number
    pq.write_table(pa.table(rows), table(shop) / "rows.parquet")
    kept = shop.root / "warehouse" / "shop" / "infold__erasures"
    kept.mkdir()
    pq.write_table(pa.table({"reason": ["mallory"]}), kept / "requests.parquet")
    assert found(shop) == []
    inside = ["warehouse/shop/clicks/rows.parquet note"]
    assert found(shop, "mallory") == inside
    assert found(shop, "mall") == []


def test_bytes_of_other_files(shop: Project) -> None:
    """Metadata with bounds, logs, and what else infold wrote: by a key that is known."""
    folder = table(shop)
    schema = {"type": "record", "name": "r", "fields": [{"name": "bound", "type": "bytes"}]}
    for codec in ("null", "deflate"):
        with (folder / f"{codec}.avro").open("wb") as out:
            sync = b"Z\xff" * 8  # what follows looks like a letter of the key
            fastavro.writer(out, schema, [{"bound": b"mallory"}], codec=codec, sync_marker=sync)
    (folder / "0.json").write_text('{"stats": "{\\"maxValues\\": {\\"who\\": \\"mallory\\"}}"}')
    (shop.root / ".infold" / "last.log").write_text("GET /?email=mallory@x.org")
    (shop.root / ".infold" / "other.log").write_text("mallorys")
    (shop.root / ".infold" / "engine.sock").symlink_to("nowhere")
    assert found(shop) == []
    places = ("0.json", "deflate.avro", "null.avro")
    expected = [".infold/last.log", *(f"warehouse/shop/clicks/{place}" for place in places)]
    assert found(shop, "mallory") == expected


def test_a_key_whose_length_is_a_letter(shop: Project) -> None:
    """Avro has the length of a text before it: of 40 characters that is a P."""
    key = "m" * 40
    schema = {"type": "record", "name": "r", "fields": [{"name": "bound", "type": "bytes"}]}
    with (table(shop) / "m.avro").open("wb") as out:
        fastavro.writer(out, schema, [{"bound": key.encode()}], codec="deflate")
    assert found(shop, key) == ["warehouse/shop/clicks/m.avro"]


def test_rows_of_the_ledger(shop: Project) -> None:
    """A manual entry about the sessions of a person has their name."""
    api.ledger_of(shop).add_entries("visits", [ManualEntry(0, "mallory", in_quarantine=True)])
    assert found(shop) == ["ledger: manual_entries, request text"]


def test_rows_that_audits_show(shop: Project) -> None:
    """They are JSON in the ledger; a purge takes them out, and why something failed."""
    ledger = api.ledger_of(shop)
    row = '{"of":{"who":"mallory"},"n":4711}'
    wrong = AuditResult("clicks", "a", Severity.WARN, AuditState.FAILED, bad=1, rows=(row,))
    ledger.record_audits("clicks", [wrong])
    ledger.acquire("r")
    ledger.begin_run("r", "run", 0, {})
    ledger.finish_run("r", "failed", Receipt(), "mallory has no URL")
    assert found(shop) == ["ledger: audits, request text"]
    number = replace(wrong, rows=('{"device":4711}',))
    ledger.record_audits("clicks", [number])
    assert found(shop) == ["ledger: audits, request number"]
    ledger.forget_texts()
    ledger.release()
    ledger.database.clean()  # as a purge ends
    assert found(shop, "mallory") == []
    [judged] = ledger.audits()
    assert judged.result == replace(wrong, rows=())


def test_unit_tests(shop: Project) -> None:
    """Tests made of real rows are named, by keys that are text; numbers are everywhere."""
    (shop.root / "tests").mkdir()
    lines = ["# A test", "mallory", "| who | n |", "|---|---|", "| mallory | 1 |", "|x|4711|"]
    (shop.root / "tests" / "clicks.md").write_text("\n".join(lines))
    assert api.prove_erased(shop).landing[-1] == LandingFile("unit tests", "tests/clicks.md", 1)


def test_requests_with_conditions(shop: Project) -> None:
    """Rows may be there rightly, so nothing is looked for, and that is said."""
    api.erase(shop, "person", ["trudy"], source="raw.clicks", request="some")
    pq.write_table(pa.table({"note": ["trudy"]}), table(shop) / "rows.parquet")
    proof = api.prove_erased(shop)
    assert proof.found == ()
    assert [one.request.id for one in proof.conditional] == ["some"]


def test_blocks_that_are_not_compressed() -> None:
    """Bytes that are none of Avro's compressed blocks give nothing, and no error."""
    assert [*erasure_proof.inflated(b"Obj\x01" + bytes(range(256)))] == []


def test_files_of_sources(shop: Project) -> None:
    """Those with rows of erased persons are listed, and are nothing that infold has left."""
    folder = shop.root / "landing"
    folder.mkdir()
    (folder / "a.json").write_text('{"who": "mallory"}\n{"device": 4711}\n{"who": "bob"}')
    (folder / "b.json").write_text('{"who": "bob"}')
    proof = api.prove_erased(shop)
    assert proof.found == ()
    assert proof.landing == (LandingFile("raw.clicks", "landing/a.json", 2),)
    assert dict(proof.looked)["file of a source"] == 2


def test_extracted_files(shop: Project) -> None:
    """What was extracted of a database is infold's own."""
    config = (shop.root / "infold.yml").read_text()
    users = "  raw.users: {url: 'sqlite:///u.db', table: users, columns: {who: string}}\nerasures:"
    (shop.root / "infold.yml").write_text(config.replace("erasures:", users))
    project = api.open_project(shop.root)
    folder = shop.root / "warehouse.extracted" / "raw.users"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"who": ["mallory"]}), folder / "all.parquet")
    assert found(project) == ["warehouse.extracted/raw.users/all.parquet who, request text"]
