"""Audits judge what a step is about to write, before its commit, in every kind of model."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.audits.audited_project import MODELS, AuditedProject

from infold import api
from infold.core.audits import AuditState

pytestmark = pytest.mark.spark

GOOD = ("1,ann,2024-03-01T10:00:00,1.00", "2,bob,2024-03-01T11:00:00,2.00")
LATE = ("3,ann,2024-03-02T10:00:00,-5.00", "4,cid,2024-03-02T10:10:00,1.00")


def test_an_audit_of_each_kind_of_model(tmp_path: Path) -> None:
    """
    In each kind a first build and a later step fail before they commit, with the rows that fail;
    other models go on, what reads a failed one waits, and all of it is built once the file is
    corrected or the audit is one of severity warn.
    """
    shop = AuditedProject(tmp_path / "shop")
    never = "expression: amount > 1000"
    for model in ("visits", "daily", "people", "totals"):
        shop.audit(model, never)
    shop.land("1", *GOOD)

    failure = shop.fail()

    assert {one.model for one in failure.result.failures} == {"visits", "daily", "people", "totals"}
    assert all(one.error.slug == "audit-failed" for one in failure.result.failures)
    assert [shop.rows(one) for one in ("clicks", "visits", "daily", "people", "totals")] == [
        2, 0, 0, 0, 0,
    ]  # fmt: skip
    judged = shop.found()["daily.expression(amount > 1000)"]
    assert (judged.result.state, judged.result.bad) == (AuditState.FAILED, 1)
    assert judged.result.rows == ('{"day":"2024-03-01","n":2,"amount":3.00}',)

    positive = "expression: amount > 0"
    for model in ("clicks", "visits", "daily", "people", "totals"):
        shop.audit(model, "not_null: [amount]", positive)  # the second fails below
    shop.run()
    assert shop.rows("daily") == 1
    assert {one.result.state for one in shop.found().values()} == {AuditState.PASSED}

    # Later steps: an append, then merges and replaced cells.
    shop.land("2", *LATE)
    failure = shop.fail()
    [one] = failure.result.failures
    assert one.model == "clicks"
    assert dict(one.error.facts)["expression(amount > 0)"].startswith("1 of 2 rows (models/clicks")
    assert shop.rows("clicks") == 2
    shop.audit("clicks")
    failure = shop.fail()
    assert {one.model for one in failure.result.failures} == {"visits", "daily", "people", "totals"}
    assert (shop.rows("clicks"), shop.rows("visits"), shop.rows("daily")) == (4, 2, 1)
    shop.land("2", LATE[1])
    result = shop.run()
    assert (shop.rows("clicks"), shop.rows("visits"), shop.rows("daily")) == (3, 3, 2)
    assert result.receipt.audits == 8
    assert {one.result.state for one in shop.found().values()} == {AuditState.PASSED}

    # A corrected file: a merge in each table. Of severity warn, rows are written and counted,
    # but for one without the value.
    for model in ("clicks", "visits", "daily", "people", "totals"):
        shop.audit(model, f"{positive}\n    severity: warn")
    shop.land("1", GOOD[0].replace("1.00", "-9.00"), GOOD[1].replace("2.00", ""))
    result = shop.run()
    assert result.receipt.audits_failed == 5
    assert sorted(one.result.bad for one in shop.found().values()) == [1] * 5
    assert any("severity warn failed" in note for note in result.notes)
    kept = api.show(shop.project(), "audit_failures").to_pylist()
    assert {row["model"] for row in kept} == set(MODELS) - {"large"}
    shop.verify()
