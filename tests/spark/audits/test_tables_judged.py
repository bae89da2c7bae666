"""Audits of more than one row, of other tables, and of what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.audits.audited_project import MODELS, AuditedProject

from infold import api
from infold.core.audits import AuditResult, AuditState
from infold.core.interval import parse_instant_text
from infold.core.report import RunFailed
from infold.spark.audits import tables
from infold.spark.audits.table_pass import judge

pytestmark = pytest.mark.spark

BIG = "SELECT d.day FROM daily d JOIN clicks c ON d.day = cast(c.ts AS date) WHERE c.who = 'cid'"
TOO_MANY = "SELECT who, count(*) AS n FROM clicks GROUP BY who HAVING count(*) > 3"


class Shop(AuditedProject):
    """Clicks and their days."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for name in ("visits", "totals"):
            (root / "models" / f"{name}.sql").unlink()

    def failures(self) -> dict[str, str]:
        """The failed audits of a run, with what each found."""
        found: dict[str, str] = {}
        for one in self.fail().result.failures:
            assert one.error.slug == "audit-failed", one.error
            facts = [fact for fact in one.error.facts if fact[0] != "such as"]
            found |= {f"{one.model}.{name}": text.partition(" (")[0] for name, text in facts}
        return found


def test_rows_are_judged_with_those_that_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A key twice, a cell with too few rows, a day without any, an old table, a key that another table
    lacks, and queries: each is found by the step that brings it about, looking at stored rows; and
    by `infold audit` in what is stored, with the same words.
    """
    shop = Shop(tmp_path / "shop")
    of_clicks = (
        "unique: {columns: [who, ts]}",
        "row_count: {max: 2}",
        "no_gaps",
        "freshness: {max_age: 18 days}",
        "relationship: {column: who, to: clicks}",
    )
    shop.audit("clicks", *of_clicks)
    shop.audit("daily", "row_count: {max: 3, within: table}")
    shop.audit("people", "relationship: {column: who, to: clicks}", "unique: who")
    shop.audit("large", "accepted_range: {column: amount, max: 200}")
    shop.query("too_many", f"---\nmodel: clicks\nseverity: error\n---\n{TOO_MANY}\n")
    shop.land("1", "1,ann,2024-03-02T10:00:00,1.00", "2,bob,2024-03-02T11:00:00,1.00")
    shop.run()
    assert len(shop.found()) == 9
    assert {one.result.state for one in shop.found().values()} == {AuditState.PASSED}

    # A copy of ann's time under another id, and a third row of its day.
    shop.land("2", "3,ann,2024-03-02T10:00:00,2.00")
    assert shop.failures() == {
        "clicks.unique(who, ts)": "1 key in more than one row",
        "clicks.row_count": "1 cell with a wrong number of rows",
    }
    shop.land("2", "3,cid,2024-03-04T10:00:00,2.00", "4,ann,2024-03-05T10:00:00,2.00")
    assert shop.failures() == {"clicks.no_gaps": "1 cell without rows"}
    kept = api.show(shop.project(), "audit_failures").to_pylist()
    assert [row["row"] for row in kept] == ['{"cell": "2024-03-03"}']
    more = [f"{n + 10},ann,2024-03-0{n}T12:00:00,1.00" for n in (3, 4, 5)]
    shop.land("2", "3,cid,2024-03-04T10:00:00,2.00", *more)
    assert shop.failures() == {"clicks.too_many": "1 row"}
    shop.query("too_many", f"---\nmodel: clicks\nseverity: warn\n---\n{TOO_MANY}\n")
    assert shop.failures() == {"daily.row_count": "1 table with a wrong number of rows"}
    assert shop.found()["clicks.too_many"].result.what == "1 row"
    # A day is replaced: its stored row goes, so the day is in one row.
    shop.audit("daily", "row_count: {max: 4, within: table}", "unique: day")
    shop.land("1", "1,ann,2024-03-02T10:00:00,1.00", "2,bob,2024-03-02T11:00:00,1.50")
    shop.run()

    # What is stored: a stricter audit fails it, and no run builds anything because of that.
    shop.audit("clicks", "freshness: {max_age: 1 day}", *of_clicks[:3])
    shop.query("big", f"---\nmodel: daily\n---\n{BIG}\n")
    plan = api.plan(shop.project())
    assert any("clicks: its audits changed" in note for note in plan.notes)
    assert not shop.run().steps
    report = api.audit(shop.project(), as_of=parse_instant_text("2024-03-20"))
    wrong = {f"{one.model}.{one.audit}" for one in report.results if one.fails}
    assert wrong == {"clicks.freshness", "daily.big"}
    assert {one.model for one in report.results} == {"clicks", "daily", "people", "large"}
    [status] = [one for one in api.status(shop.project()) if one.model == "clicks"]
    assert [one.result.audit for one in status.audits if one.result.fails] == ["freshness"]

    # Tables are judged as they were at one moment: a run that takes somebody out of all of them
    # meanwhile leaves nobody of whom only one table has rows.
    shop.audit("clicks")
    shop.audit("daily")
    (shop.root / "audits" / "big.sql").unlink()
    gone = shop.land("9", "90,zoe,2024-03-02T13:00:00,1.00")
    shop.run()

    def judge_beside_a_run(*judged: Any) -> AuditResult:
        if gone.exists():
            gone.unlink()
            api.run(shop.project(), allow_removals=True)
        return judge(*judged)

    with monkeypatch.context() as patch:
        patch.setattr(tables, "judge", judge_beside_a_run)
        report = api.audit(shop.project(), select=["people"])
    assert {one.state for one in report.results} == {AuditState.PASSED}
    assert len(report.results) == 2
    assert not gone.exists()
    assert (shop.rows("clicks"), shop.rows("people")) == (6, 3)

    # What is left after a file has gone is judged, too.
    shop.audit("clicks", "row_count: {min: 5, within: table}")
    (shop.root / "landing" / "2.csv").unlink()
    with pytest.raises(RunFailed) as caught:
        api.run(shop.project(), allow_removals=True)
    assert caught.value.slug == "audit-failed"
    assert shop.rows("clicks") == 6


WRONG = {
    "accepted_values: {column: amount, values: [a]}": "cannot be cast",
    "accepted_range: {column: who, min: 3}": "who is string",
    "matches: {column: amount, pattern: a}": "amount is decimal(18,2)",
    "matches: {column: who, pattern: '['}": "",
    "expression: who + 1": "",
    "expression: nosuch(amount)": "",
}


def test_what_spark_finds_wrong_with_an_audit(tmp_path: Path) -> None:
    """Types, patterns and literals are found before any step, with file and line."""
    shop = Shop(tmp_path / "shop")
    for at, audit in enumerate(WRONG):
        text = MODELS["clicks"].replace("---\n", f"---\naudits:\n  - {audit}\n", 1)
        (shop.root / "models" / f"wrong{at}.sql").write_text(text)
    found = api.definition_errors(shop.project())
    assert found.keys() == {f"wrong{at}" for at, _ in enumerate(WRONG)}
    for at, why in enumerate(WRONG.values()):
        error = found[f"wrong{at}"]
        assert error.slug == "bad-audit", error
        assert str(error.at) == f"models/wrong{at}.sql:3"
        assert why in str(error)
