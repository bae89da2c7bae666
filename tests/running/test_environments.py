"""Environments without Spark: what production knows of them, and how they are dropped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.declare.shop import SHOP, write
from tests.running.commands import said
from tests.running.production import change, production
from tests.running.standing_tables import (
    DECLARED,
    NAMES,
    commit,
    day,
    folders,
    leased,
    put,
    stand_up,
)

from infold import api
from infold.api import environments
from infold.api.environments import expire_environments, list_environments
from infold.core.environment import PRODUCTION, Environment
from infold.core.interval import DAY, Ranges
from infold.core.plan import Action, Step
from infold.core.project import Project
from infold.core.record import Outcome, Receipt
from infold.core.report import How, Lateness, ModelState, RunResult, State, together
from infold.core.trace import CellChange, CellState, Trace
from infold.declare.definitions import definitions_of
from infold.inspecting import lateness as measured
from infold.inspecting.environments import Variant, same_contents, variant
from infold.running.keep_definitions import keep_definitions

OTHER = SHOP["models/daily.sql"].replace("count(*) AS", "count(*) + 1 AS")


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """Three tables of production, each built once, by definitions that the ledger keeps."""
    made = stand_up(tmp_path / "shop")
    with leased(made, "r0") as book:
        keep_definitions(made, book, definitions_of(made))
    return made


def variant_of(shop: Project, name: str = "dev") -> Variant:
    """The environment as the files make it."""
    declared = api.open_project(shop.root, shop.target.name, declared=True)
    return variant(name, declared, api.ledger_of(shop), api.lake_of(shop))


def built(shop: Project, name: str = "dev", expires_at: int | None = None, run: str = "r2") -> str:
    """An environment with a table of its own of daily; the table's key."""
    text = (shop.root / "models" / "daily.sql").read_text(encoding="utf-8")
    (shop.root / "models" / "daily.sql").write_text(OTHER, encoding="utf-8")
    found = variant_of(shop, name)
    (shop.root / "models" / "daily.sql").write_text(text, encoding="utf-8")
    [table] = found.tables
    made = Environment(name, "ann@host", api.now() - DAY, expires_at, api.now(), None, (table,))
    step, trace = f"{run}-{table.key}", Trace(table.key, found.project[table.key].fingerprint)
    changes = (CellChange(day(0), 3, 0, 0, 3, 0, 9),)
    with leased(shop, run) as book:
        book.begin_run(run, f"run --env {name}", 0, {})
        book.put_environment(made)
        book.begin_step(run, step, 1, table.key, "build", {})
        book.finish_step(step, Outcome(table.key, 1, trace, changes, whole=True, snapshot=501))
        book.finish_run(run, "done", Receipt())
    put(shop, table.key, step, 501)
    return table.key


def known(shop: Project) -> tuple[object, ...]:
    """What the ledger knows of production's tables, and their folders."""
    book = api.ledger_of(shop)
    heads = {name: one for name, one in book.newest_versions().items() if name in NAMES}
    traces = {name: one for name, one in book.traces().items() if name in NAMES}
    return heads, traces, [book.cells(name) for name in NAMES], folders(shop) & set(NAMES)


def test_production_does_not_know_its_tables(shop: Project) -> None:
    """
    No table of an environment is production's: `forget` finds none, and `teardown` drops all.
    Without a terminal and --yes nothing is dropped; with it, nothing of production is.
    """
    before, key = known(shop), built(shop)
    said(shop, "env", "drop", "dev", code=3)
    assert folders(shop) == {*NAMES, key}
    printed = said(shop, "env", "drop", "dev", "--yes")
    assert printed == "Dropped the environment dev, with 1 table of its own: daily.\n"
    assert (folders(shop), known(shop)) == (set(NAMES), before)
    assert api.ledger_of(shop).environments() == {}
    assert key not in api.ledger_of(shop).newest_versions()

    key = built(shop, run="r4")
    assert api.forgettable(shop, None)[0] == NAMES
    assert api.forgettable(shop, [key]) == ((), (key,))
    assert api.teardown(shop).models == NAMES
    assert folders(shop) == set()


def test_it_is_listed(shop: Project) -> None:
    """The list has the owner, the tables with their rows, and the size; as JSON too."""
    key = built(shop, expires_at=api.now() + 3 * DAY + DAY // 2)

    line = said(shop, "env", "list").splitlines()[1]
    for word in ("dev", "ann@host", "1 day", "not finished", "in 4 days", "daily", "3"):
        assert word in line
    [one] = json.loads(said(shop, "env", "list", "--json"))["environments"]
    assert one["tables"] == [{"model": "daily", "table": key, "rows": 3}]
    assert one["bytes"] == sum(
        file.stat().st_size for file in (shop.warehouse / "shop" / key).rglob("*.*")
    )


def test_lateness_of_what_an_environment_has(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own table of events is measured by its key and shown by its name; else production's."""
    asked: list[tuple[str, str]] = []

    def noted(project: Project, _: object, __: object, name: str, ___: object) -> Lateness:
        asked.append((project.environment, name))
        return Lateness(name, "raw.clicks", How.NOTHING)

    monkeypatch.setattr(measured, "lateness_of", noted)
    shared = variant_of(shop)
    with (shop.root / "models" / "clicks.sql").open("a", encoding="utf-8") as model:
        model.write("AND 1 = 2")
    own = variant_of(shop)
    for found in (shared, own):
        monkeypatch.setattr(environments, "stored", lambda *_, found=found: found)

        [one] = json.loads(said(shop, "lateness", "--env", "dev", "--json"))["models"]
        assert one["model"] == "clicks"
    assert asked == [(PRODUCTION, "clicks"), ("dev", own.own["clicks"])]


def test_without_any(shop: Project) -> None:
    """Where there is none, lists and drops say so, and what is no name is refused."""
    assert "has no environment" in said(shop, "env", "list")
    assert said(shop, "env", "expire") == "No environment has expired.\n"
    for words in (["env", "drop", "dev", "--yes"], ["show", "daily", "--env", "dev"]):
        assert '"unknown-environment"' in said(shop, *words, "--json", code=2)
    for name in ("../x", "", "1a", "-a", "a b", "a" * 41, "prod/dev"):
        assert '"bad-environment-name"' in said(shop, "plan", f"--env={name}", "--json", code=2)


def test_what_is_over_is_dropped(shop: Project) -> None:
    """Only environments with a time to live that is over are dropped."""
    key = built(shop, expires_at=api.now() - 1)
    with leased(shop, "r3") as book:
        book.put_environment(Environment("other", "bob@host", 1))
        book.put_environment(Environment("later", "bob@host", 1, api.now() + DAY))

    assert expire_environments(shop) == ("dev",)
    assert key not in folders(shop)
    assert [one.environment.name for one in list_environments(shop)] == ["later", "other"]
    assert expire_environments(shop) == ()


def test_a_run_of_production_drops_what_is_over(tmp_path: Path) -> None:
    """
    It says so, and leaves any other; tables of environments are none of removed models. What is
    done in an environment leaves a saved plan of production what it was.
    """
    shop = production(tmp_path / "shop")
    said(shop, "apply", "--yes")
    change(shop, ("models/daily.sql", "FROM sessions", "FROM sessions WHERE true"))
    plan = tmp_path / "plan.json"
    said(shop, "plan", "--save", str(plan))
    before = json.loads(plan.read_text(encoding="utf-8"))
    key = built(shop)
    said(shop, "plan", "--save", str(plan))
    after = json.loads(plan.read_text(encoding="utf-8"))
    assert before["versions"] == after["versions"]
    assert before.keys() == after.keys()
    change(shop)

    printed = said(shop, "run")
    assert ("dev" in printed, "no longer" in printed) == (False, False)
    assert key in folders(shop)
    with leased(shop, "r3") as book:
        book.put_environment(replace(book.environments()["dev"], expires_at=1))
    over = "the environment dev of ann@host had expired, and was dropped"
    assert over in said(shop, "run")
    assert key not in folders(shop)


def test_keys_that_are_taken(shop: Project) -> None:
    """A key is longer where the shorter one is another environment's, a model's or a folder's."""
    key = built(shop, "other")
    write(shop.root, {**SHOP, "infold.yml": DECLARED, "models/daily.sql": OTHER})

    own = variant_of(shop).own["daily"]
    assert own.startswith(key)
    assert len(own) == len(key) + 8
    (shop.warehouse / "shop" / own.upper()).mkdir()
    longer = variant_of(shop).own["daily"]
    assert len(longer) == len(key) + 16
    assert variant_of(shop, "other").own["daily"] == key


def test_a_plan_of_one(shop: Project) -> None:
    """A plan names what differs from production and what follows; it writes nothing."""
    nothing = "Nothing to do: nothing that was asked for differs from production"
    assert nothing in said(shop, "plan", "--env", "dev")
    write(shop.root, {**SHOP, "infold.yml": DECLARED, "models/daily.sql": OTHER})

    printed = said(shop, "plan", "--env", "dev")
    for line in (
        "environment dev",
        "Definitions: 1 model differs from production",
        "daily  breaking",
        "`infold run --env dev` carries this out.",
        "production's tables are used of: clicks, sessions",
    ):
        assert line in printed
    found = json.loads(said(shop, "plan", "--env", "dev", "--json"))
    assert found["environment"] == "dev"
    assert [step["model"] for step in found["steps"]] == ["daily"]
    assert not found["left"]
    assert api.ledger_of(shop).environments() == {}
    for words in (["--save", "x"], ["--allow-downgrade"], ["--forward-only", "daily"]):
        said(shop, "plan", "--env", "dev", *words, code=2)
    write(shop.root, {"models/daily.sql": SHOP["models/daily.sql"]})
    assert nothing in said(shop, "run", "--env", "dev")


def test_a_table_of_an_unknown_definition_is_not_shared(shop: Project) -> None:
    """Where nobody knows what production's table is of, the environment builds its own."""
    assert variant_of(shop).own == {}
    unknown = Trace("sessions", "another", {"clicks": 1})
    commit(shop, Outcome("sessions", 1, unknown, committed=False))

    assert list(variant_of(shop).own) == ["sessions", "daily"]


@pytest.mark.parametrize(
    ("cells", "columns", "same"),
    [
        ({0: (3, 7), 1: (3, 8)}, {"day": "date32", "n": "int64"}, True),
        ({0: (3, 7), 1: (3, 9)}, {"day": "date32", "n": "int64"}, False),
        ({0: (3, 7), 1: (4, 8)}, {"day": "date32", "n": "int64"}, False),
        ({0: (3, 7)}, {"day": "date32", "n": "int64"}, False),
        ({0: (3, 7), 1: (3, 8)}, {"n": "int64", "day": "date32"}, False),
        ({0: (3, 7), 1: (3, 8)}, {"day": "date32", "n": "int32"}, False),
    ],
)
def test_tables_of_equal_content(
    cells: dict[int, tuple[int, int]], columns: dict[str, str], same: bool
) -> None:
    """Two tables are the same only by all cells, and by columns of one order and type."""
    production = ({0: (3, 7), 1: (3, 8)}, {"day": "date32", "n": "int64"})
    both = {"daily": production, "daily__1": (cells, columns)}

    class Stored:
        """Tables by name, as ledger and lake."""

        def cells(self, table: str) -> list[CellState]:
            """The cells of a table."""
            return [CellState(day(at), *found) for at, found in both[table][0].items()]

        def rows(self, table: str, limit: int) -> pa.Table:
            """No rows."""
            kinds = {"date32": pa.date32(), "int64": pa.int64(), "int32": pa.int32()}
            schema = pa.schema([(name, kinds[kind]) for name, kind in both[table][1].items()])
            return schema.empty_table()[:limit]

    stored: Any = Stored()
    assert same_contents(stored, stored, "daily", "daily__1") is same


def test_levels_are_one_run() -> None:
    """A model's state is that before its first run; a late refusal is a failure."""
    step = Step("daily", Action.BUILD, Ranges(), ())
    daily, weekly = (ModelState(name, State.NEW_MODEL) for name in ("daily", "weekly"))
    again = replace(daily, state=State.STANDARD_RUN)
    read = Receipt(read=3)
    first = RunResult("1", "done", steps=((step, read),), receipt=read, model_states=(daily,))
    last = RunResult("2", "refused", model_states=(weekly, again))

    both = together([first, last])

    assert (both.state, both.receipt.read, both.model_states) == ("failed", 3, (daily, weekly))
    assert together([last]).state == "refused"
