"""A project with an audited model of each kind, over files of clicks."""

from __future__ import annotations

from pathlib import Path

from infold import api
from infold.core.audits import JudgedAudit
from infold.core.interval import parse_instant_text
from infold.core.project import Project
from infold.core.report import RunFailed, RunResult
from infold.inspecting.audits import audits_found

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/*.csv
    event_time_column: ts
    columns: {id: string, who: string, ts: timestamp, amount: "decimal(18,2)"}
"""

MODELS = {
    "clicks": """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: ts}
---
SELECT id, who, ts, amount FROM raw.clicks
""",
    "visits": """---
materialization: sessions
sessions: {user: who, gap: 30 minutes}
---
SELECT count(*) AS events, sum(amount) AS amount FROM clicks
""",
    "daily": """---
materialization: table
timeseries: {event_time_column: ts, partition_column: day, granularity: day}
incremental: {}
---
SELECT cast(ts AS date) AS day, count(*) AS n, sum(amount) AS amount FROM clicks GROUP BY 1
""",
    "people": """---
materialization: cumulative_aggregate
---
SELECT who, count(*) AS n, sum(amount) AS amount FROM clicks GROUP BY who
""",
    "totals": """---
materialization: table
---
SELECT count(*) AS n, sum(amount) AS amount FROM clicks
""",
    "large": """---
materialization: view
---
SELECT * FROM clicks WHERE amount > 100
""",
}

CLOCK = "2024-03-20"


class AuditedProject:
    """A project in a folder, run in this process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("models", "landing", "audits"):
            (root / folder).mkdir(parents=True)
        (root / "infold.yml").write_text(PROJECT)
        for name in MODELS:
            self.audit(name)

    def audit(self, model: str, *audits: str) -> None:
        """Declare the audits of a model, in place of those before."""
        lines = "".join(f"  - {one}\n" for one in audits)
        text = MODELS[model]
        if lines:
            text = text.replace("---\n", f"---\naudits:\n{lines}", 1)
        (self.root / "models" / f"{model}.sql").write_text(text)

    def query(self, name: str, text: str) -> None:
        """Write a file of audits/."""
        (self.root / "audits" / f"{name}.sql").write_text(text)

    def land(self, name: str, *rows: str) -> Path:
        """A file of clicks: ``id,who,ts,amount`` each."""
        path = self.root / "landing" / f"{name}.csv"
        path.write_text("\n".join(["id,who,ts,amount", *rows]) + "\n")
        return path

    def project(self) -> Project:
        """The project, read again as each command does."""
        return api.open_project(self.root)

    def run(self) -> RunResult:
        """A run that has to end well."""
        return api.run(self.project(), as_of=parse_instant_text(CLOCK))

    def fail(self) -> RunFailed:
        """A run that has to fail."""
        try:
            self.run()
        except RunFailed as error:
            return error
        raise AssertionError("the run did not fail")

    def verify(self) -> None:
        """Compare with the definitions over what is committed."""
        found = api.verify(self.project())
        wrong = [(v.model, v.note, v.differing[:3]) for v in found.models if not v.equal]
        assert not wrong, wrong

    def rows(self, table: str) -> int:
        """How many rows a table has; 0 where there is none."""
        head = api.ledger(self.project()).newest_versions().get(table)
        return head.rows if head else 0

    def found(self, *, stored: bool = False) -> dict[str, JudgedAudit]:
        """What audits found, by ``model.audit``."""
        return {
            f"{one.result.model}.{one.result.audit}": one
            for one in audits_found(self.project(), api.ledger(self.project()))
            if one.result.stored is stored
        }
