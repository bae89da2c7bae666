"""Files of tables that somebody deleted: seen by what looks at the tables, and said by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running.standing_tables import stand_up
from tests.running.test_forget import infold

from infold import api
from infold.core.project import Project
from infold.core.report import RunFailed
from infold.lake import missing_files
from infold.messages.errors import InfoldError
from infold.running.observe import remembered


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Three tables as a run left them; which files a snapshot needs is told by a list."""
    made = stand_up(tmp_path / "shop")
    book = api.ledger(made)
    book.acquire("r2")
    book.remember_locations(remembered(api.lake(made), book.heads()))
    book.close()

    def needed(location: str) -> tuple[str, ...]:
        rows = Path(location.removeprefix("file:")).parents[1] / "data" / "rows.parquet"
        return () if rows.exists() else (str(rows),)

    monkeypatch.setattr(missing_files, "missing", needed)
    return made


def rows_of(shop: Project, name: str) -> Path:
    """The one data file of a table."""
    return shop.warehouse / shop.name / name / "data" / "rows.parquet"


def test_a_run_does_not_say_that_nothing_is_to_do(shop: Project) -> None:
    """It names the table, the file, and what to do; exit code 3. Plan and status name it too."""
    rows_of(shop, "daily").unlink()

    with pytest.raises(RunFailed) as failed:
        api.run(shop, select=["daily"])
    assert failed.value.exit_code == 3
    assert api.history(shop)[0].state == "refused"
    with pytest.raises(InfoldError) as caught:
        api.observe(shop)
    [stood] = [entry.refused for entry in api.status(shop) if entry.refused is not None]
    for error in (caught.value, stood, api.plan(shop).refused["daily"]):
        assert error.slug == "damaged-table"
        assert error.facts == (("file", str(rows_of(shop, "daily"))), ("gone", "1 of its files"))
        assert "infold forget daily\n  infold run" in error.todo

    assert infold(shop, "forget", "daily", "--yes")[0] == 0
    api.observe(shop)


def test_other_files_beside_them_are_no_damage(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run that died left behind: looked at closely, once, and let be."""
    (rows_of(shop, "daily").parent / "left.parquet").write_bytes(b"rows")

    api.observe(shop)
    assert not api.run(shop, select=["daily"]).steps
    never_closely(monkeypatch)
    api.observe(shop)


def test_what_is_damaged_stays_so_for_the_runs_to_come(shop: Project) -> None:
    """What other tables have is remembered anew; what this one has is not."""
    rows_of(shop, "daily").unlink()
    (rows_of(shop, "sessions").parent / "left.parquet").write_bytes(b"rows")

    assert not api.run(shop, select=["sessions"]).steps
    with pytest.raises(RunFailed):
        api.run(shop, select=["daily"])


def test_nobody_looks_closely_while_the_names_are_the_same(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading manifests costs more than a run with nothing to do may."""
    never_closely(monkeypatch)
    api.observe(shop)


def never_closely(patch: pytest.MonkeyPatch) -> None:
    """Have it fail to look closely."""

    def never(location: str) -> tuple[str, ...]:
        raise AssertionError(location)

    patch.setattr(missing_files, "missing", never)
