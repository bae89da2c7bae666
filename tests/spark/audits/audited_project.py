"""A project with an audited model of each kind, over files of clicks."""

from __future__ import annotations

from pathlib import Path

from tests.spark.project import CUMULATIVE, VIEW, WHOLE, SparkProject, events, model, sessions

from infold import api
from infold.core.audits import JudgedAudit
from infold.inspecting.audits import newest_audits

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/*.csv
    event_time_column: ts
    columns: {id: string, who: string, ts: timestamp, amount: "decimal(18,2)"}
"""
SUMS = "count(*) AS n, sum(amount) AS amount FROM clicks"
MODELS = {
    "clicks": events("SELECT id, who, ts, amount FROM raw.clicks", time="ts"),
    "visits": sessions("user: who, gap: 30 minutes", f"SELECT {SUMS.replace('n,', 'events,')}"),
    "daily": model(f"SELECT cast(ts AS date) AS day, {SUMS} GROUP BY 1").replace(
        "event_time_column: day", "event_time_column: ts"
    ),
    "people": f"{CUMULATIVE}SELECT who, {SUMS} GROUP BY who\n",
    "totals": f"{WHOLE}SELECT {SUMS}\n",
    "large": f"{VIEW}SELECT * FROM clicks WHERE amount > 100\n",
}


class AuditedProject(SparkProject):
    """Some of the models, each with audits."""

    now = "2024-03-20"

    def __init__(self, root: Path, *without: str) -> None:
        super().__init__(root, PROJECT, "audits")
        for name in MODELS.keys() - {*without}:
            self.audit(name)

    def audit(self, model: str, *audits: str) -> None:
        """Declare the audits of a model, in place of those before."""
        lines = "".join(f"  - {one}\n" for one in audits)
        head = f"---\naudits:\n{lines}" if lines else "---\n"
        self.model(model, self.text(model).replace("---\n", head, 1))

    def text(self, model: str) -> str:
        """A model without audits."""
        return MODELS[model]

    def query(self, name: str, text: str) -> None:
        """Write a file of audits/."""
        self.write(f"audits/{name}.sql", text)

    def land(self, name: str, *rows: str) -> Path:
        """A file of clicks: ``id,who,ts,amount`` each."""
        return self.write(f"landing/{name}.csv", "\n".join(["id,who,ts,amount", *rows]) + "\n")

    def failed(self) -> set[str]:
        """The models of a run that has to fail, each by an audit."""
        failures = self.failures()
        assert {one.slug for one in failures.values()} == {"audit-failed"}
        return {*failures}

    def count(self, table: str) -> int:
        """How many rows a table has; 0 where there is none."""
        head = api.ledger_of(self.project()).newest_versions().get(table)
        return head.rows if head else 0

    def found(self) -> dict[str, JudgedAudit]:
        """What audits of runs found, by ``model.audit``."""
        return {
            f"{one.result.model}.{one.result.audit}": one
            for one in newest_audits(self.project(), api.ledger_of(self.project()))
            if not one.result.stored
        }
