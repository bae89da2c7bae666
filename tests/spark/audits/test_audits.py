"""Audits judge what a step is about to write, before its commit, and what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.audits.audited_project import MODELS, AuditedProject

from infold import api
from infold.core.audits import AuditResult, AuditState
from infold.core.interval import parse_instant_text
from infold.spark.audits import step_audits
from infold.spark.audits.step_audits import judge

pytestmark = pytest.mark.spark


GOOD = ("1,ann,2024-03-01T10:00:00,1.00", "2,bob,2024-03-01T11:00:00,2.00")
READERS = ("visits", "daily", "people", "totals")
LATE = ("3,ann,2024-03-02T10:00:00,-5.00", "4,cid,2024-03-02T10:10:00,1.00")


def test_an_audit_of_each_kind_of_model(tmp_path: Path) -> None:
    """
    In each kind a first build and a later step fail before they commit, with the rows that fail;
    other models go on, what reads a failed one waits, and all of it is built once the file is
    corrected or the audit is one of severity warn.
    """
    shop = AuditedProject(tmp_path / "shop")
    for model in READERS:
        shop.audit(model, "expression: amount > 1000")
    shop.land("1", *GOOD)

    assert shop.failed() == {*READERS}
    assert [shop.count(one) for one in ("clicks", *READERS)] == [2, 0, 0, 0, 0]
    judged = shop.found()["daily.expression(amount > 1000)"]
    assert (judged.result.state, judged.result.bad) == (AuditState.FAILED, 1)
    assert judged.result.rows == ('{"day":"2024-03-01","n":2,"amount":3.00}',)

    positive = "expression: amount > 0"
    for model in ("clicks", *READERS):
        shop.audit(model, "not_null: [amount]", positive)  # the second fails below
    shop.go()
    assert shop.count("daily") == 1
    assert {one.result.state for one in shop.found().values()} == {AuditState.PASSED}

    # Later steps: an append, then merges and replaced cells.
    shop.land("2", *LATE)
    [(failed, error)] = shop.failures().items()
    assert failed == "clicks"
    assert dict(error.facts)["expression(amount > 0)"].startswith("1 of 2 rows (models/clicks")
    assert shop.count("clicks") == 2
    shop.audit("clicks")
    assert shop.failed() == {*READERS}
    assert [shop.count(one) for one in ("clicks", "visits", "daily")] == [4, 2, 1]
    shop.land("2", LATE[1])
    result = shop.go()
    assert [shop.count(one) for one in ("clicks", "visits", "daily")] == [3, 3, 2]
    assert result.receipt.audits == 8
    assert {one.result.state for one in shop.found().values()} == {AuditState.PASSED}

    # A corrected file: a merge in each table. Of severity warn, rows are written and counted,
    # but for one without the value.
    for model in ("clicks", *READERS):
        shop.audit(model, f"{positive}\n    severity: warn")
    shop.land("1", GOOD[0].replace("1.00", "-9.00"), GOOD[1].replace("2.00", ""))
    result = shop.go()
    assert result.receipt.audits_failed == 5
    assert sorted(one.result.bad for one in shop.found().values()) == [1] * 5
    assert any("severity warn failed" in note for note in result.notes)
    kept = shop.shown("audit_failures")
    assert {row["model"] for row in kept} == set(MODELS) - {"large"}


FEW = "expression: n < 3"
"""Of the daily table: a day with three clicks is wrong."""


def days(*numbers: int, amount: str = "1.00", start: int = 0) -> list[str]:
    """A click on each of some days of March."""
    return [
        f"{start + at},ann,2024-03-{day:02}T10:{at:02}:00,{amount}"
        for at, day in enumerate(numbers)
    ]


def test_tables_that_are_published_together(tmp_path: Path) -> None:
    """
    One audit that fails keeps every table as readers know it, and `run` publishes all of them once
    its rows pass; a run that dies before the ledger knows of the commit changes nothing.
    """
    shop = AuditedProject(tmp_path / "shop", "visits", "people")
    shop.configure("", "targets:\n  dev: {publish: together}\n")
    shop.audit("daily", FEW)
    shop.land("1", *days(1, 2))
    shop.go()
    shop.land("2", *days(1, 1, start=10))

    def shown() -> tuple[int, int]:
        return tuple(sum(row["n"] for row in shop.shown(name)) for name in ("daily", "totals"))

    assert shop.failed() == {"daily"}
    assert shown() == (2, 2)
    shop.land("2", *days(1, start=10))
    # The run dies where the rows have passed and are there, and the ledger does not know it.
    shop.die_at("daily", "table daily: after commit")
    assert shown() == (2, 2)
    shop.go()
    assert shown() == (3, 3)


def test_batches_at_the_same_time(tmp_path: Path) -> None:
    """
    Of batches that are computed side by side those that pass are there, and those that fail are
    pending: the next run builds these alone.
    """
    shop = AuditedProject(tmp_path / "shop", "visits", "people", "totals")
    text = MODELS["daily"].replace(
        "incremental: {}", "incremental: {batch_size: 1, batch_concurrency: 2}"
    )
    file = shop.root / "models" / "daily.sql"
    file.write_text(text.replace("---\n", f"---\naudits:\n  - {FEW}\n", 1))
    shop.land("1", *days(1, 2, 3, 4, 4, 4, 5, 6))
    assert shop.failed() == {"daily"}
    written = {str(row["day"]) for row in shop.shown("daily")}
    assert "2024-03-04" not in written
    assert {"2024-03-01", "2024-03-02"} <= written
    [judged] = shop.found().values()
    assert judged.result.rows == ('{"day":"2024-03-04","n":3,"amount":3.00}',)

    file.write_text(text.replace("---\n", "---\naudits:\n  - expression: n < 4\n", 1))
    result = shop.go()
    assert 0 < sum(step.model == "daily" for step, _ in result.steps) <= 6 - len(written)
    found = shop.shown("daily")
    assert sorted((row["day"].day, row["n"]) for row in found) == [
        (1, 1), (2, 1), (3, 1), (4, 3), (5, 1), (6, 1),
    ]  # fmt: skip


BIG = "SELECT d.day FROM daily d JOIN clicks c ON d.day = cast(c.ts AS date) WHERE c.who = 'cid'"
MANY = ("2T10:00:00", "4T12:00:00", "5T12:00:00")
TOO_MANY = "SELECT who, count(*) AS n FROM clicks GROUP BY who HAVING count(*) > 3"


class Judged(AuditedProject):
    """Clicks, their days and people."""

    def wrong(self) -> dict[str, str]:
        """The failed audits of a run, with what each found."""
        found: dict[str, str] = {}
        for model, error in self.failures().items():
            assert error.slug == "audit-failed", error
            facts = [fact for fact in error.facts if fact[0] != "such as"]
            found |= {f"{model}.{name}": text.partition(" (")[0] for name, text in facts}
        return found


def test_rows_are_judged_with_those_that_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A key twice, a cell with too few rows, a day without any, an old table, a key that another table
    lacks, and queries: each is found by the step that brings it about, looking at stored rows; and
    by `infold audit` in what is stored, with the same words.
    """
    shop = Judged(tmp_path / "shop", "visits", "totals")
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
    shop.go()
    assert len(shop.found()) == 9
    assert {one.result.state for one in shop.found().values()} == {AuditState.PASSED}

    # A copy of ann's time under another id, a third row of its day, a day without any, many rows.
    shop.land("2", *(f"{n},ann,2024-03-0{day},2.00" for n, day in enumerate(MANY, 3)))
    assert shop.wrong() == {
        "clicks.unique(who, ts)": "1 key in more than one row",
        "clicks.row_count": "1 cell with a wrong number of rows",
        "clicks.no_gaps": "1 cell without rows",
        "clicks.too_many": "1 row",
    }
    assert '{"cell": "2024-03-03"}' in [row["row"] for row in shop.shown("audit_failures")]
    more = [f"{n + 10},ann,2024-03-0{n}T12:00:00,1.00" for n in (3, 4, 5)]
    shop.land("2", "3,cid,2024-03-04T10:00:00,2.00", *more)
    shop.query("too_many", f"---\nmodel: clicks\nseverity: warn\n---\n{TOO_MANY}\n")
    assert shop.wrong() == {"daily.row_count": "1 table with a wrong number of rows"}
    assert shop.found()["clicks.too_many"].result.what == "1 row"
    # A day is replaced: its stored row goes, so the day is in one row.
    shop.audit("daily", "row_count: {max: 4, within: table}", "unique: day")
    shop.land("1", "1,ann,2024-03-02T10:00:00,1.00", "2,bob,2024-03-02T11:00:00,1.50")
    shop.go()

    # What is stored: a stricter audit fails it, and no run builds anything because of that.
    shop.audit("clicks", "freshness: {max_age: 1 day}", *of_clicks[:3])
    shop.query("big", f"---\nmodel: daily\n---\n{BIG}\n")
    plan = api.plan(shop.project())
    assert any("clicks: its audits changed" in note for note in plan.notes)
    assert not shop.go().steps
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
    shop.go()

    def judge_beside_a_run(*judged: Any) -> AuditResult:
        if gone.exists():
            gone.unlink()
            shop.go()
        return judge(*judged)

    with monkeypatch.context() as patch:
        patch.setattr(step_audits, "judge", judge_beside_a_run)
        report = api.audit(shop.project(), select=["people"])
    assert {one.state for one in report.results} == {AuditState.PASSED}
    assert len(report.results) == 2
    assert not gone.exists()
    assert (shop.count("clicks"), shop.count("people")) == (6, 3)

    # What is left after a file has gone is judged, too.
    shop.audit("clicks", "row_count: {min: 5, within: table}")
    shop.drop("2.csv")
    assert shop.failed() == {"clicks"}
    assert shop.count("clicks") == 6


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
    shop = Judged(tmp_path / "shop", "visits", "totals")
    for at, audit in enumerate(WRONG):
        text = MODELS["clicks"].replace("---\n", f"---\naudits:\n  - {audit}\n", 1)
        shop.model(f"wrong{at}", text)
    found = api.definition_errors(shop.project())
    assert found.keys() == {f"wrong{at}" for at, _ in enumerate(WRONG)}
    for at, why in enumerate(WRONG.values()):
        error = found[f"wrong{at}"]
        assert error.slug == "bad-audit", error
        assert str(error.at) == f"models/wrong{at}.sql:3"
        assert why in str(error)
