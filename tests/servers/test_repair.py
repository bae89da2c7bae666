"""`infold repair` of a ledger on a server: after a failover, and where its schema is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running.commands import infold
from tests.running.standing_tables import NAMES, stand_up
from tests.running.test_repair import second_run
from tests.servers.postgresql import Postgresql

from infold import api
from infold.api.repairing import repair_ledger
from infold.core.repair import Repair

pytestmark = pytest.mark.servers


def test_a_failover_and_a_lost_schema(
    postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables go back to what the new primary knows; without a ledger, all are built again."""
    monkeypatch.setenv("LEDGER_OF_SHOP", postgresql.url())
    schema = postgresql.schema()
    target = f"  prod: {{ledger: '${{env:LEDGER_OF_SHOP}}', ledger_schema: {schema}}}\n"
    shop = stand_up(tmp_path / "shop", target, "prod")
    assert infold(shop, "ledger", "export", str(tmp_path / "before"))[0] == 0
    second_run(shop)
    postgresql.run(f"DROP SCHEMA {schema} CASCADE")
    assert infold(shop, "ledger", "import", str(tmp_path / "before"))[0] == 0
    assert infold(shop, "plan")[1].startswith("ledger-behind")

    done = repair_ledger(shop)

    assert [one.table for one in done.of(Repair.SET_BACK)] == ["clicks"]
    assert "there is nothing to repair" in infold(shop, "repair")[1]
    assert api.observe(shop).models["clicks"].version == 1

    postgresql.run(f"DROP SCHEMA {schema} CASCADE")
    done = repair_ledger(shop)

    assert [one.table for one in done.of(Repair.BUILD)] == [*NAMES]
    assert "there is nothing to repair" in infold(shop, "repair")[1]
