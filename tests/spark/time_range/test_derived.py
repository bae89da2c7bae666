"""A changed definition that follows from stored rows reads none of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.crash.scenario import living
from tests.spark.time_range.daily_project import DailyProject, model, window

from infold import api
from infold.core.plan import HELD_BACK, Action
from infold.core.report import RunFailed, RunResult
from infold.planning.derivations import FOLLOWS
from infold.spark.time_range import recompute

pytestmark = pytest.mark.spark

TIMES = tuple(f"2024-03-0{n}T1{n}:00:00Z" for n in range(1, 6))
ROWS = "SELECT cast(ts AS date) AS day, id, who, amount FROM raw.clicks"
SUMS = """SELECT cast(ts AS date) AS day, count(*) AS n, sum(amount) AS amount
FROM raw.clicks GROUP BY 1"""


@pytest.fixture
def shop(tmp_path: Path) -> DailyProject:
    """Five days of rows, and of sums."""
    made = DailyProject(tmp_path / "shop")
    made.land(*TIMES)
    made.land("2024-03-01T11:00:00Z", who="bob")
    made.models(visits=model(ROWS), sums=model(SUMS))
    made.run()
    return made


def actions(result: RunResult) -> list[tuple[str, str]]:
    """What was done to which model; a step that derives reads nothing."""
    assert all(receipt.read == 0 for step, receipt in result.steps if step.action is Action.DERIVE)
    return [(step.model, str(step.action)) for step, _ in result.steps]


def test_columns_and_conditions(shop: DailyProject) -> None:
    """A dropped and a computed column, another order, a condition: together one step."""
    text = "SELECT upper(who) AS big, id * 2 AS twice, cast(ts AS date) AS day FROM raw.clicks"
    shop.models(
        visits=model(f"{text} WHERE who = 'ann'"), sums=model(f"{SUMS} HAVING count(*) > 1")
    )

    result = shop.run()

    assert {*actions(result)} == {("visits", "derive"), ("sums", "derive")}
    assert all(step.reasons[0].detail == FOLLOWS for step, _ in result.steps)
    assert len(shop.rows("visits")) == 5
    assert len(shop.rows("sums")) == 1
    assert not api.run(shop.project()).steps


def test_late_rows_right_after(shop: DailyProject) -> None:
    """What arrived meanwhile is built by the new definition in the same run, for readers too."""
    shop.models(of_visits=model("SELECT day, count(*) AS n FROM visits GROUP BY day"))
    shop.run()
    shop.models(visits=model("SELECT cast(ts AS date) AS day, id FROM raw.clicks WHERE id <> 2"))
    shop.land("2024-03-02T20:00:00Z", "2024-03-09T20:00:00Z")

    done = actions(shop.run())

    assert [done.count(one) for one in (("visits", "derive"), ("visits", "recompute"))] == [1, 1]
    assert done.index(("visits", "derive")) < done.index(("visits", "recompute"))
    assert ("visits", "build") not in done
    assert [row[1] for row in shop.rows("of_visits")] == [2, 1, 1, 1, 1, 1]


def test_what_a_window_left_out_stays_left_out(shop: DailyProject) -> None:
    """Pending cells stay pending, and are built by the new definition afterwards."""
    shop.land("2024-03-02T20:00:00Z", "2024-03-04T20:00:00Z")
    api.run(shop.project(), window=window("2024-03-04", "2024-03-05"))
    shop.models(visits=model("SELECT cast(ts AS date) AS day, id FROM raw.clicks"))
    part = api.run(shop.project(), window=window("2024-03-04", "2024-03-05"))
    assert {left.why for left in part.plans[-1].skipped if left.model == "visits"} == {HELD_BACK}

    derived, then = (step for step, _ in shop.run().steps if step.model == "visits")

    assert (derived.action, then.action) == (Action.DERIVE, Action.RECOMPUTE)
    assert derived.trace is not None
    assert derived.trace.pending_ranges == then.cells
    assert len(shop.rows("visits")) == 8


def test_start(shop: DailyProject) -> None:
    """A later start takes rows out, an earlier one builds the new cells alone."""
    for start, done, days in (
        ("2024-03-03", ["derive"], 3),
        ("2024-03-02", ["derive", "recompute"], 4),
        ("2024-03-04T11:00:00Z", ["derive"], 1),
        ("2024-03-04", ["derive", "recompute"], 2),
    ):
        where = model(ROWS, f"{{start: '{start}'}}")
        shop.models(visits=where, sums=model(SUMS))
        versions = len(api.ledger(shop.project()).versions("visits", 0))
        result = shop.run()
        assert [action for _, action in actions(result)] == done, start
        assert len(shop.rows("visits")) == days
        # A start that only moves earlier changes no row: the ledger alone records it.
        made = len(api.ledger(shop.project()).versions("visits", 0)) - versions
        assert made == len(done) if len(done) == 1 else 1
        assert all(receipt.read <= 2 for _, receipt in result.steps)


OF_TYPES = "SELECT cast(ts AS date) AS day, {0} FROM raw.clicks"


@pytest.mark.parametrize(
    ("before", "after", "action"),
    [
        ("cast(id AS smallint) AS s", "cast(id AS smallint) AS s, -s AS neg", "derive"),
        ("cast(id AS smallint) AS s", "hex(cast(id AS smallint)) AS h", "build"),
        ("cast(id AS bigint) AS s", "hex(cast(id AS bigint)) AS h", "derive"),
        ("array(cast(id AS tinyint)) AS s", "array(cast(id AS tinyint)) AS z", "derive"),
        ("struct(id, array(1)) AS s", "struct(id, array(1)) AS z", "derive"),
    ],
)  # fmt: skip
def test_types(shop: DailyProject, before: str, after: str, action: str) -> None:
    """Columns have the types of the query; where the stored type is another, they are built."""
    shop.models(visits=model(OF_TYPES.format(before)))
    shop.run()
    shop.models(visits=model(OF_TYPES.format(after)))

    assert ("visits", action) in actions(shop.run())


def test_groups_of_floating_point_numbers(shop: DailyProject) -> None:
    """A condition on such a group is none on its rows: 0.0 and -0.0 are one group."""
    grouped = """SELECT cast(ts AS date) AS day, float(amount - amount) AS f, count(*) AS n
        FROM raw.clicks {0} GROUP BY 1, 2"""
    shop.models(visits=model(grouped.format("")))
    shop.run()
    shop.models(visits=model(grouped.format("WHERE float(amount - amount) >= 0")))

    assert actions(shop.run()) == [("visits", "build")]


ODD = "double(CASE id WHEN 1 THEN 'NaN' WHEN 2 THEN '-0.0' ELSE '-1.5' END)"


@pytest.mark.parametrize(("condition", "ids"), [("> 1", [1]), ("= 0", [2]), (">= 0", [1, 2])])
def test_conditions_on_floating_point_numbers(
    shop: DailyProject, condition: str, ids: list[int]
) -> None:
    """Spark decides about NaN and -0.0, and not the statistics of files."""
    shop.models(visits=model(f"SELECT cast(ts AS date) AS day, id, {ODD} AS odd FROM raw.clicks"))
    shop.run()
    kept = f"SELECT cast(ts AS date) AS day, id FROM raw.clicks WHERE {ODD} {condition}"
    shop.models(visits=model(kept))

    assert actions(shop.run()) == [("visits", "derive")]
    assert [row[1] for row in shop.rows("visits")] == ids


def test_an_input_that_has_other_types_now(shop: DailyProject) -> None:
    """Where an input is built again with other types, what was derived from the old ones is not."""
    shop.models(reader=model("SELECT day, id, who FROM visits"))
    shop.run()
    shop.models(visits=model(ROWS.replace("id,", "cast(id AS bigint) AS id,")))
    shop.models(reader=model("SELECT day, id FROM visits"))

    assert actions(shop.run()) == [("visits", "derive"), ("reader", "build")]


def test_an_input_with_equal_hashes_of_another_type(shop: DailyProject) -> None:
    """A decimal with more digits hashes alike, so no content tells its readers; its type does."""
    shop.models(visits=model(ROWS.replace("amount", "cast(amount AS decimal(9,2)) AS amount")))
    shop.models(reader=model("SELECT day, id, amount FROM visits"))
    shop.models(other=model("SELECT day, id, who FROM visits"))
    shop.run()
    shop.models(visits=model(ROWS.replace("amount", "cast(amount AS decimal(12,2)) AS amount")))

    assert actions(shop.run()) == [("visits", "derive"), ("reader", "build")]
    assert not shop.run().steps


def test_a_definition_and_that_of_its_input(shop: DailyProject) -> None:
    """Both are derived, the reader first: then it is known what its rows are made of."""
    shop.models(reader=model("SELECT day, id, who, amount FROM visits"))
    shop.run()
    shop.models(
        visits=model(ROWS.replace(", amount", "")), reader=model("SELECT day, who FROM visits")
    )

    assert actions(shop.run())[:2] == [("reader", "derive"), ("visits", "derive")]


def test_partitions_stay(shop: DailyProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table lies on disk as before."""
    monkeypatch.setattr(recompute, "_ROWS_FOR_PARTITIONS", 1)
    shop.models(visits=model(ROWS.replace("amount", "1 AS x")))
    shop.models(other=model(ROWS))
    shop.run()
    monkeypatch.undo()
    shop.models(other=model("SELECT cast(ts AS date) AS day, id FROM raw.clicks WHERE id > 1"))

    assert actions(shop.run()) == [("other", "derive")]
    layout = api.lake(shop.project()).layout("other")
    assert layout is not None
    assert layout.column == "day"
    assert layout.partition is not None


def test_a_protected_target_refuses(shop: DailyProject) -> None:
    """There it is refused like a rebuild, unless that run was allowed to."""
    config = shop.root / "infold.yml"
    prod = "default_target: prod\ntargets:\n  prod: {protected: true, apply: auto}\n"
    config.write_text(config.read_text(encoding="utf-8") + prod, encoding="utf-8")
    shop.models(visits=model(f"{ROWS} WHERE id <> 3"))

    with pytest.raises(RunFailed, match="protected") as refused:
        api.run(shop.project())

    assert refused.value.exit_code == 3
    assert actions(api.run(shop.project(), allow_refresh=True)) == [("visits", "derive")]


def test_a_folded_reader(shop: DailyProject) -> None:
    """A reader that folds changes gets those of the derived table."""
    total = "---\nmaterialization: cumulative_aggregate\n---\nSELECT who, count(*) AS n FROM visits"
    shop.models(total=f"{total} GROUP BY who\n")
    shop.run()
    shop.models(visits=model(f"{ROWS} WHERE id <> 3"))

    assert ("visits", "derive") in actions(shop.run())
    assert shop.rows("total") == [("ann", 4), ("bob", 1)]


def content(shop: DailyProject) -> Mapping[str, list[tuple[Any, ...]]]:
    """The rows of both tables."""
    return {"visits": shop.rows("visits"), "reader": shop.rows("reader")}


def test_a_run_that_dies_anywhere(shop: DailyProject) -> None:
    """Wherever a run dies, the table is as before or as after, and it is derived only once."""
    shop.models(reader=model("SELECT day, count(*) AS n FROM visits GROUP BY day"))
    shop.run()
    shop.models(visits=model("SELECT cast(ts AS date) AS day, id FROM raw.clicks WHERE id <> 2"))
    old, met, shapes = content(shop), list[tuple[str, str]](), set[tuple[int, int]]()
    while True:
        with living(met=met) as life:
            api.run(shop.project(), progress=life, jobs=1)
        now = content(shop)
        shapes.add((len(now["visits"][0]), len(now["visits"])))
        assert now["visits"] == old["visits"] or len(now["visits"]) == 5
        if not life.dead:
            break
        met.append(life.passed[-1])
        assert len(met) < 60
    shop.verify()
    assert shapes == {(4, 6), (2, 5)}
    for point in ("table visits: before commit", "table visits: after commit"):
        assert ("visits", point) in met
    for write in ("begin_step", "prepare_step"):
        assert ("visits", f"ledger {write}: before commit") in met
        assert ("visits", f"ledger {write}: after commit") in met
    assert ("", "ledger finish_step: before commit") in met  # by the run after it
    runs = api.ledger(shop.project()).runs(100)
    done = [
        s.action for run in runs for s in run.steps if s.model == "visits" and s.state == "done"
    ]
    assert done.count("derive") == 1
    assert done.count("build") == 1  # the first
