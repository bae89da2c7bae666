"""Projects in folders, for tests with Spark: files come and go, runs follow, rows are read."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tests.crash.scenario import living

from infold import api
from infold.core import interval
from infold.core.model import SET_ASIDE, table_name
from infold.core.plan import PlanOptions
from infold.core.project import Project
from infold.core.record import Receipt
from infold.core.report import RunFailed, RunResult
from infold.messages.errors import InfoldError

NOW = "2024-03-10"
_numbers = itertools.count()

SERIES = "timeseries: {{event_time_column: {0}, partition_column: {0}, granularity: {1}}}"
CUMULATIVE = "---\nmaterialization: cumulative_aggregate\n---\n"
VIEW = "---\nmaterialization: view\n---\n"
WHOLE = "---\nmaterialization: table\n---\n"


def new_name(prefix: str) -> str:
    """A project's name that no other has: they share a warehouse."""
    return f"{prefix}{next(_numbers)}"


def model(sql: str, incremental: str = "{}", column: str = "day", granularity: str = "day") -> str:
    """The file of a table by cells."""
    series = SERIES.format(column, granularity)
    return f"---\nmaterialization: table\n{series}\nincremental: {incremental}\n---\n{sql}\n"


def events(select: str, *keys: str, key: str = "id", time: str = "at") -> str:
    """The file of a table of events by day."""
    series = f"timeseries: {{event_time_column: {time}, granularity: day}}"
    head = "\n".join(("materialization: events", f"unique_key: [{key}]", *keys, series))
    return f"---\n{head}\n---\n{select}\n"


def sessions(keys: str, select: str, *more: str) -> str:
    """The file of a table of sessions."""
    head = "\n".join(("materialization: sessions", *more, f"sessions: {{{keys}}}"))
    return f"---\n{head}\n---\n{select}\n"


def built(result: RunResult) -> list[str]:
    """The models that a run built."""
    return [step.model for step, _ in result.steps]


class AllBut(list[tuple[str, str]]):
    """All write points but these: where a run is to die, in place of those ``met``."""

    def __contains__(self, point: object) -> bool:
        return not super().__contains__(point)


class SparkProject:
    """A project in a folder. Each call opens it again, as each command does."""

    now: str | None = None
    """The time of runs, if it is not the present."""
    target: str | None = None
    """The target of runs, if there are several."""

    def __init__(self, root: Path, config: str, *folders: str) -> None:
        self.root = root
        for folder in ("models", "landing", *folders):
            (root / folder).mkdir(parents=True, exist_ok=True)
        self.write("infold.yml", config)

    # -- files

    def write(self, path: str, text: str) -> Path:
        """A file of the project."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def configure(self, old: str, new: str) -> None:
        """Change something in infold.yml; nothing old: add to its end."""
        text = (self.root / "infold.yml").read_text(encoding="utf-8")
        assert old in text
        self.write("infold.yml", text.replace(old, new) if old else text + new)

    def models(self, **models: str) -> None:
        """Write models by name; one without a text goes."""
        for name, text in models.items():
            self.model(name, text)

    def model(self, name: str, text: str) -> None:
        """A model, or another definition of one."""
        if text:
            self.write(f"models/{name}.sql", text)
        else:
            (self.root / "models" / f"{name}.sql").unlink()

    def drop(self, name: str) -> None:
        """A file of the landing folder goes away."""
        (self.root / "landing" / name).unlink()

    # -- commands

    def project(self, *, declared: bool = False, downgrade: bool = False) -> Project:
        """By the applied definitions, or by those in the files."""
        return api.open_project(self.root, self.target, declared=declared, downgrade=downgrade)

    def go(
        self,
        asked: PlanOptions | None = None,
        *,
        now: str | None = None,
        select: Collection[str] = (),
        allow_removals: bool = True,
        downgrade: bool = False,
        **options: Any,
    ) -> RunResult:
        """One run; ``options`` are those of ``PlanOptions``."""
        at = now or self.now
        return api.run(
            self.project(downgrade=downgrade),
            asked=asked or PlanOptions(**options),
            select=tuple(select),
            as_of=None if at is None else interval.parse_instant_text(at),
            allow_removals=allow_removals,
        )

    def receipts(self, **how: Any) -> dict[str, Receipt]:
        """One run; what it did to each model."""
        found: dict[str, Receipt] = {}
        for step, receipt in self.go(**how).steps:
            found[step.model] = found.get(step.model, Receipt()) + receipt
        return found

    def actions(self, **how: Any) -> dict[str, list[str]]:
        """One run; the steps of each model."""
        found: dict[str, list[str]] = {}
        for step, _ in self.go(**how).steps:
            found.setdefault(step.model, []).append(str(step.action))
        return found

    def failures(self, **how: Any) -> dict[str, InfoldError]:
        """One run; what went wrong with which model."""
        try:
            self.go(**how)
        except RunFailed as error:
            return {one.model: one.error for one in error.result.failures}
        return {}

    def apply(self, *terms: str, **options: Any) -> RunResult:
        """`infold apply`."""
        applied = api.to_apply(self.project(declared=True), terms)
        return api.run(applied, select=terms, asked=PlanOptions(**options), command="apply")

    def die_at(self, name: str, point: str, asked: PlanOptions | None = None) -> None:
        """A run of one model after the other that dies at that write point of that model."""
        with living(met=AllBut([(name, point)])) as life:
            api.run(self.project(), asked=asked, progress=life, jobs=1, allow_removals=True)
        assert life.dead

    def verify(self, *, differing: Collection[str] = ()) -> None:
        """Compare with the definitions over everything; some tables have to differ."""
        found = [verdict for verdict in api.verify(self.project()).models if not verdict.equal]
        wrong = {verdict.model: (verdict.note, verdict.differing[:3]) for verdict in found}
        assert wrong.keys() == {*differing}, wrong

    # -- what there is, without the JVM

    def records(self, table: str, *columns: str) -> list[dict[str, Any]]:
        """The table's rows with the names of their columns, times as people write them."""
        lake = api.lake_of(self.project(downgrade=True))
        found = lake.rows(table_name(table), columns=list(columns) or None).to_pylist()
        return [{name: _shown(value) for name, value in row.items()} for row in found]

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """The table's rows in an order, times as people write them."""
        found = self.records(table, *columns)
        return sorted((tuple(map(record.get, columns or record)) for record in found), key=repr)

    def shown(self, table: str) -> list[dict[str, Any]]:
        """What `infold show` prints of a table."""
        found: list[dict[str, Any]] = api.show(self.project(), table).to_pylist()
        return found

    def aside(self, model: str = "") -> list[tuple[str, str]]:
        """File and reason of the rows set aside, by all models or one of them."""
        if api.lake_of(self.project()).metadata(SET_ASIDE) is None:
            return []
        return sorted(
            (row["file"].removeprefix("landing/"), row["reason"])
            for row in self.records(SET_ASIDE)
            if model in ("", row["model"])
        )

    def version(self, model: str) -> int:
        """The table's newest version."""
        return api.ledger_of(self.project()).newest_versions()[model].number

    def changes(self, since: int, model: str) -> list[tuple[str, int, int]]:
        """Cells that changed since a version, with rows added and removed."""
        return [
            (interval.show_instant(change.cell.start), change.added, change.removed)
            for change in api.ledger_of(self.project()).changes(model, since)
        ]

    def proven(self) -> bool:
        """Whether the tables, and the ledger's account of them, equal a rebuild from the files."""
        return all(verdict.equal for verdict in api.verify(self.project()).models)


def _shown(value: Any) -> Any:
    return interval.show_instant(interval.micros_of(value)) if hasattr(value, "tzinfo") else value
