"""What schedulers write and read: words, lines, graphs, partitions, and what an end means."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click import Context
from click.testing import CliRunner
from cronsim import CronSim
from hypothesis import example, given
from hypothesis import strategies as st
from tests.messages.every import MESSAGES, rendered
from tests.orchestration.recorded import GRAPH, error, step

from infold.cli import cli
from infold.cli.main import COMMANDS
from infold.core.interval import DAY, Granularity, datetime_of
from infold.messages.errors import InfoldError
from infold.orchestration.command import WITH_LOG, InfoldProject, RunOptions, log_line, summary
from infold.orchestration.graph import (
    GraphModel,
    ProjectGraph,
    Stretch,
    instant,
    overlap,
    partitions_of,
    window_words,
)
from infold.orchestration.outcome import (
    LASTING_FAILURES,
    PASSING_REFUSALS,
    Outcome,
    Verdict,
    models_with_work,
    parsed,
)
from infold.render.formatting import iso


def test_every_option_is_one_of_the_command() -> None:
    """Terms are a list or a text; an empty template is none; a run waits and asks nothing."""
    options = RunOptions(
        select="daily+, users", exclude=["clicks"], start="2024-03-01", end="", wait=None,
        max_rows=5, jobs="2", environment="dev", flags=["--fail-fast"],
    )  # fmt: skip
    words = "--select=daily+ --select=users --exclude=clicks --start=2024-03-01 --max-rows=5"

    assert RunOptions().words() == ("--wait=600",)
    assert options.words() == (*words.split(), "--jobs=2", "--env=dev", "--fail-fast")
    more = RunOptions(end="2024-03-02", wait=1.5).words()
    assert CliRunner().invoke(cli, ["run", *more, *options.words(), "--help"]).exit_code == 0


def test_commands_that_are_followed_by_their_log_can_write_one() -> None:
    """A task of any command is given no option that the command does not have."""
    for name in COMMANDS:
        command = cli.get_command(Context(cli), name)
        assert command is not None
        options = {option for param in command.params for option in param.opts}
        assert ("--log" in options) == (name in WITH_LOG), name


def test_the_command_line_of_a_project() -> None:
    """A program of another environment, or one with arguments; its words are never a shell's."""
    project = InfoldProject("/srv/my shop", "prod", ["docker", "exec", "infold"])

    assert project.line("run", "--wait=1") == (
        *("docker", "exec", "infold"),
        *("--project=/srv/my shop", "--target=prod", "run", "--wait=1"),
    )
    assert InfoldProject("shop").line("dag") == ("infold", "--project=shop", "dag")


def test_tables_read_through_views() -> None:
    """A view has no task and no rows: what reads it comes after the tables behind it."""
    graph = ProjectGraph.of(GRAPH)

    assert [table.name for table in graph.tables] == ["clicks", "daily", "users"]
    assert [source.name for source in graph.sources] == ["raw.clicks"]
    assert graph.reads("daily") == ("clicks",)
    assert graph.reads("clicks") == ("raw.clicks",)


def test_the_graph_of_a_file(tmp_path: Path) -> None:
    """What `infold dag --json` printed of the starter's project, read where infold is not."""
    runner, shop = CliRunner(), str(tmp_path / "shop")
    assert runner.invoke(cli, ["init", shop]).exit_code == 0
    printed = runner.invoke(cli, ["-C", shop, "dag", "--json"]).stdout
    (tmp_path / "graph.json").write_text(printed)
    project = InfoldProject("/nowhere", infold_command="/no", graph_file=tmp_path / "graph.json")

    graph = project.graph()

    assert [node.name for node in graph.nodes] == ["raw.clicks", "clicks", "sessions", "daily"]
    daily = graph.tables[-1]
    assert (daily.incremental, daily.granularity) == (True, "day")
    assert (daily.start, daily.columns) == ("2024-01-01T00:00:00Z", ("day", "sessions", "revenue"))
    assert daily.description == "One row per day on which somebody came."
    assert not graph.tables[0].incremental


@pytest.mark.parametrize("text", [None, "", "{}", '{"project": "shop", "nodes": [{}]}'])
def test_a_file_that_is_no_graph(text: str | None, tmp_path: Path) -> None:
    """The error names the file, and how it is written."""
    file = tmp_path / "graph.json"
    if text is not None:
        file.write_text(text)

    with pytest.raises(InfoldError) as found:
        InfoldProject("/nowhere", graph_file=file).graph()

    assert found.value.slug == "bad-graph-file"
    assert "infold dag --json > graph.json" in found.value.todo


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {"event": "step_began", "step": 2, "of": 3, "reasons": ["late, 2 files", "due, b"]},
            "[2/3] fold daily: late, 2 files; due, b",
        ),
        ({"event": "step_began", "step": 1, "of": None, "reasons": ["x"]}, "[1] fold daily: x"),
        (
            {"event": "step_done", "receipt": {"written": 12345, "cells_built": 2, "seconds": 1.5}},
            "fold daily: 12,345 written, 2 cells built, 1.5 s",
        ),
        (
            {"event": "step_failed", "error": {"slug": "drift", "what": "another column"}},
            "fold daily failed: drift: another column",
        ),
        ({"event": "note", "text": "a note"}, "a note"),
        ({"event": "run_ended", "state": "done"}, ""),
    ],
)
def test_lines_of_the_log(event: dict[str, object], line: str) -> None:
    """What a person wants to read of a run; a line that was cut short says nothing."""
    assert log_line(json.dumps({"model": "daily", "action": "fold", **event})) == line
    assert log_line('{"event": "no') == ""


def test_a_summary_has_no_states_of_models() -> None:
    """A scheduler keeps it in its database, with every task."""
    result = {"run": "r", "steps": [step("a")], "states": [{}], "failed": []}

    assert summary(result) == {"run": "r", "steps": [step("a")], "failed": []}


# -- what the end of a command means to a scheduler


DONE, NOTHING = Verdict.DONE, Verdict.NOTHING_TO_DO
AGAIN, NEVER = Verdict.TRY_AGAIN, Verdict.GIVE_UP


def failed(*errors: dict[str, Any]) -> dict[str, Any]:
    """The result of a run in which models failed."""
    return {"steps": [step("clicks")], "failed": [{"model": "daily", "error": e} for e in errors]}


@pytest.mark.parametrize(
    ("code", "result", "verdict"),
    [
        (0, {"steps": [step("daily")]}, DONE),
        (0, {"steps": []}, NOTHING),
        (0, {"equal": True}, DONE),  # verify has no steps
        (1, failed(error("step-failed", 1)), AGAIN),
        (1, failed(error("audit-failed", 1)), NEVER),
        (1, failed(error("protected", 3)), NEVER),
        (1, failed(error("refused-by-spark", 2)), NEVER),
        (1, failed(error("audit-failed", 1), error("engine-died", 1)), AGAIN),
        (1, {"error": error("ledger-unreachable", 1)}, AGAIN),
        (1, {"error": error("ledger-login-refused", 1)}, NEVER),
        (1, {"passed": False, "audits": []}, NEVER),
        (1, {}, AGAIN),  # it died without a word
        (2, {"error": error("unknown-key", 2)}, NEVER),
        (2, {"error": {"errors": [error("a", 2), error("b", 2)], "exit_code": 2}}, NEVER),
        (1, {"error": {"errors": [error("drift", 1), error("disk-full", 1)]}}, AGAIN),
        (2, {}, NEVER),  # a mistake in the command line
        (3, {"error": error("locked", 3)}, AGAIN),
        (3, {"error": error("over-budget", 3)}, NEVER),
        (3, {"equal": False, "models": [{"moved": False}, {"moved": True}]}, AGAIN),  # verify
        (4, {"equal": False, "models": []}, NEVER),
        (4, {"equal": False, "models": [{"moved": True}, {"moved": False}]}, NEVER),
        (5, {"equal": False}, NEVER),
        (143, {}, AGAIN),
        (-9, {}, AGAIN),
    ],
)
def test_verdicts(code: int, result: dict[str, Any], verdict: Verdict) -> None:
    """By exit code, and where that is not enough by the slug of each error."""
    assert Outcome(code, result).verdict is verdict


def test_the_slugs_are_those_of_messages_with_that_exit_code() -> None:
    """A slug that is renamed, or gets another exit code, does not stay in a list by itself."""
    codes: dict[str, set[int]] = {}
    for name in MESSAGES:
        codes.setdefault(rendered(name).slug, set()).add(int(rendered(name).exit_code))

    assert {slug for slug in PASSING_REFUSALS if 3 not in codes.get(slug, ())} == set()
    assert {slug for slug in LASTING_FAILURES if 1 not in codes.get(slug, ())} == set()


DRIFT = error("drift", 1, facts={"file": "a.json"}, todo="Declare it.")


@pytest.mark.parametrize(
    ("code", "result", "why"),
    [
        (1, failed(DRIFT, DRIFT), "exit code 1\ndrift: this\n  file: a.json\n  Declare it."),
        (2, {}, "exit code 2\nUsage: infold"),
        (-9, {}, "signal 9"),
        (143, {}, "signal 15"),
    ],
)
def test_why(code: int, result: dict[str, Any], why: str) -> None:
    """Each error once with what to do; else what was printed last, and which signal it was."""
    said = Outcome(code, result, "Usage: infold\n").why

    assert said.startswith(
        ("infold ended with " if code in (1, 2) else "infold was ended by ") + why
    )


def test_warnings() -> None:
    """A run that succeeded has left rows out: that is no failure, and is told."""
    receipt = {"set_aside": 2, "audits_failed": 0, "sessions_quarantined": 1}

    assert Outcome(0, {"steps": [], "receipt": receipt}).warnings == (
        "2 rows were set aside: they cannot be used as they are",
        "1 sessions went into quarantine",
    )
    assert Outcome(0, {"equal": True}).warnings == ()


def test_models_with_work_are_in_the_order_of_their_steps() -> None:
    """A model with several steps is there once. Nothing of other output is taken for a result."""
    assert models_with_work({"steps": [step("a"), step("b"), step("a")]}) == ["a", "b"]
    for text in ("", "no json", "[1]", '"text"'):
        assert parsed(text) == {}


# -- cells of tables as the partitions of a scheduler


def table(granularity: str | None, start: str | None, *, incremental: bool = True) -> GraphModel:
    """A table of a project."""
    return GraphModel(
        "daily", "table", incremental=incremental, granularity=granularity, start=start
    )


@given(granularity=st.sampled_from(list(Granularity)), at=st.integers(7 * DAY, 50_000 * DAY))
@example(granularity=Granularity.SUNDAY_WEEK, at=10 * DAY)  # a Sunday
@example(granularity=Granularity.QUARTER, at=100 * DAY)  # it begins in April
def test_partitions_are_the_cells(granularity: Granularity, at: int) -> None:
    """The first begins where the cell of the start does, and each ends where its cell does."""
    cell = granularity.floor(at)

    found = partitions_of(table(granularity.value, iso(at)))

    assert found is not None
    assert found.start == datetime_of(cell)
    assert next(CronSim(found.cron, found.start)) == datetime_of(granularity.next(cell))


def test_tables_without_partitions() -> None:
    """What no window limits, and what has no first cell."""
    start = "2024-01-01T00:00:00Z"
    for model in (table("day", start, incremental=False), table("day", None), table(None, start)):
        assert partitions_of(model) is None


def test_keys_of_hours_have_hours() -> None:
    """Those of longer cells are days."""
    hours, days = (partitions_of(table(name, "2024-01-01T00:00:00Z")) for name in ("hour", "month"))

    assert hours is not None
    assert days is not None
    assert hours.start.strftime(hours.key_format) == "2024-01-01-00:00"
    assert days.start.strftime(days.key_format) == "2024-01-01"


@pytest.mark.parametrize(
    ("built", "covered", "found"),
    [
        ([(None, None)], [("2024-03-08", "2024-03-10")], [("2024-03-08", "2024-03-10")]),
        ([("2024-03-09", None)], [("2024-03-08", "2024-03-10")], [("2024-03-09", "2024-03-10")]),
        ([("2024-03-08", "2024-03-09")], [("2024-03-09", "2024-03-10")], []),
        (
            [("2024-03-01", "2024-03-09")],
            [("2024-03-02", "2024-03-03"), ("2024-03-08", "2024-03-20")],
            [("2024-03-02", "2024-03-03"), ("2024-03-08", "2024-03-09")],
        ),
        ([], [("2024-03-08", "2024-03-10")], []),
    ],
)
def test_what_was_built_and_has_rows(
    built: list[Stretch], covered: list[Stretch], found: list[tuple[str, str]]
) -> None:
    """An open end is any time; cells without rows are not told of."""

    def of(days: list[Stretch]) -> list[Stretch]:
        return [[day and f"{day}T00:00:00Z" for day in stretch] for stretch in days]

    assert overlap(of(built), of(covered)) == [
        (instant(f"{start}T00:00:00Z"), instant(f"{end}T00:00:00Z")) for start, end in found
    ]


def test_a_window_is_in_utc() -> None:
    """Whatever the zone of the scheduler's times."""
    start = datetime.fromisoformat("2024-03-09T02:00:00+02:00")

    assert window_words(start, start + timedelta(days=1)) == (
        "2024-03-09T00:00:00+00:00",
        "2024-03-10T00:00:00+00:00",
    )
