"""The manifest tables follow from the ledger and tables, and every command can show them."""

from __future__ import annotations

import json
from hashlib import md5
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet
from tests.running.commands import said
from tests.running.standing_tables import commit, day, stand_up

from infold import api
from infold.cli import cli
from infold.core.interval import Ranges, datetime_of
from infold.core.project import Project
from infold.core.record import Outcome, QuarantinedSession
from infold.core.trace import Cause, CellChange, Pending, Trace
from infold.inspecting.manifest import manifest_table_of
from infold.lake.iceberg.tables import IcebergLake

FIRST, SECOND = (datetime_of(day(i).start + (i + 1) * 1_000) for i in (0, 1))
"""The newest event of each of the two days that were built."""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Three tables, each built once; the sessions table's rows stand in for Iceberg's."""
    project = stand_up(tmp_path / "shop")
    rows = {
        "session_id": ["s1", "s2"],
        "user_id": ["ann", None],
        "session_start": [datetime_of(day(0).start), datetime_of(day(1).start)],
        "session_end": [FIRST, SECOND],
    }

    def stored(_: IcebergLake, table: str, *, columns: list[str], **__: Any) -> pa.Table:
        assert table == "sessions"
        return pa.table({name: rows[name] for name in columns})

    monkeypatch.setattr(IcebergLake, "rows", stored)
    return project


def success(project: Project) -> dict[str, Any]:
    """The incremental manifest, by model."""
    rows = api.manifest(project, "incremental_manifest").to_pylist()
    return {row["model"]: row["last_success"] for row in rows}


def change(number: int, rows: int, last: int) -> CellChange:
    """Rows added to a day, the newest of them ``last`` into it."""
    return CellChange(day(number), rows, 0, 0, rows, 0, rows, day(number).start + last)


def test_the_newest_event_that_a_model_has_processed(shop: Project) -> None:
    """
    Whatever rows it keeps, inputs before readers; without the newest rows it is earlier, unbuilt
    there is none. Cells that a limit left pending are not processed, so the time is before them.
    """
    assert list(success(shop).items()) == [
        ("clicks", SECOND),
        ("sessions", SECOND),
        ("daily", SECOND),
    ]
    trace = Trace("clicks", shop["clicks"].fingerprint, {})
    commit(shop, Outcome("clicks", 2, trace, (change(2, 5, 9_000),), snapshot=104))
    pending = (Pending(Cause.MISSING, Ranges((day(1),))),)
    trace = Trace("daily", shop["daily"].fingerprint, {"sessions": 1}, pending)
    commit(shop, Outcome("daily", 2, trace, committed=False), "r3")

    newest = datetime_of(day(2).start + 9_000)
    assert success(shop) == {"clicks": newest, "sessions": SECOND, "daily": FIRST}
    api.forget(shop, ["daily"])
    assert set(success(shop)) == {"clicks", "sessions"}


class TestCommands:
    """Manifest tables are shown by name, with the options of any table, without Spark."""

    def test_on_the_screen(self, shop: Project) -> None:
        """With or without its schema, limited like any table; in no other schema."""
        for name in ("incremental_manifest", "infold.incremental_manifest"):
            assert manifest_table_of(name) is not None
        assert manifest_table_of("shop.incremental_manifest") is None
        text = said(shop, "show", "infold.incremental_manifest", "--limit", "2")

        assert text == (
            "model     last_success\n"
            "--------  --------------------------\n"
            f"clicks    {str(SECOND).removesuffix('+00:00')}\n"
            f"sessions  {str(SECOND).removesuffix('+00:00')}\n"
            "\n"
            "2 rows shown, 1 more (--limit 0 for all).\n"
        )

    def test_rows_of_some_models(self, shop: Project) -> None:
        """By terms and --where, as JSON and CSV; a date is in UTC, bad filters are refused."""
        words: tuple[str, ...] = ("show", "incremental_manifest")
        by_row = said(shop, *words, "--where", "model = 'daily'", "--format", "csv")
        refused = ["-C", str(shop.root), "show", "daily", "--select", "daily"]

        assert json.loads(said(shop, *words, "--select", "daily", "--json", "-"))["model"] == (
            "daily"
        )
        assert by_row.startswith("model,last_success\ndaily,")
        assert by_row.count("\n") == 2
        assert CliRunner().invoke(cli, refused).exit_code == 2
        words = ("show", "sessions_lifecycle_manifest", "--format", "csv", "--where")
        assert said(shop, *words, "start_tstamp >= '2024-03-02'").count("\n") == 2
        done = CliRunner().invoke(cli, ["-C", str(shop.root), *words, "nobody = 1"])
        assert (done.exit_code, "bad-filter" in done.output) == (2, True)

    def test_the_sessions_lifecycle(self, shop: Project) -> None:
        """A row for each session with the seed's columns; before the first run it is empty."""
        names = ("session_identifier", "user_identifier", "start_tstamp", "end_tstamp")
        found = api.manifest(shop, "sessions_lifecycle_manifest")

        assert [tuple(row.items()) for row in found.to_pylist()] == [
            tuple(zip(names, ("s1", "ann", datetime_of(day(0).start), FIRST), strict=True)),
            tuple(zip(names, ("s2", None, datetime_of(day(1).start), SECOND), strict=True)),
        ]
        api.teardown(shop)
        assert api.manifest(shop, "incremental_manifest").num_rows == 0
        assert api.manifest(shop, "sessions_lifecycle_manifest").column_names == [*names]

    def test_quarantined_sessions(self, shop: Project) -> None:
        """With user, reason, span, events and the id they would have in the table."""
        start, end = day(0).start, day(1).start
        held = (QuarantinedSession("ann", start, end, 12),)
        trace = Trace("sessions", "f", {"clicks": 1})
        commit(shop, Outcome("sessions", 2, trace, committed=False, quarantined=held))
        (row,) = api.manifest(shop, "quarantined_sessions").to_pylist()

        assert row == {
            "session_identifier": md5(f"ann|{start}".encode()).hexdigest(),
            "user_identifier": "ann",
            "reason": "",
            "start_tstamp": datetime_of(start),
            "end_tstamp": datetime_of(end),
            "events": 12,
        }
        many = ("show", "quarantined_sessions", "--where", "events > 12", "--format", "csv")
        assert said(shop, *many).count("\n") == 1

    def test_files_for_other_engines(self, shop: Project, tmp_path: Path) -> None:
        """Exported manifests are a folder with one file each, which the next export replaces."""
        out = tmp_path / "out"
        for _ in (1, 2):
            text = said(shop, "manifest", str(out))

        assert text == (
            f"{out / 'incremental_manifest'}: 3 rows\n"
            f"{out / 'sessions_lifecycle_manifest'}: 2 rows\n"
            f"{out / 'quarantined_sessions'}: 0 rows\n"
        )
        assert sorted(str(path.relative_to(out)) for path in out.rglob("*.parquet")) == [
            "incremental_manifest/rows.parquet",
            "quarantined_sessions/rows.parquet",
            "sessions_lifecycle_manifest/rows.parquet",
        ]
        found = parquet.read_table(out / "incremental_manifest" / "rows.parquet")
        assert found.schema.names == ["model", "last_success"]
        assert str(found.schema.field("last_success").type) == "timestamp[us, tz=UTC]"
