"""Command lines, lines of a log, and the graph: what schedulers write and read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click import Context
from click.testing import CliRunner
from tests.orchestration.recorded import GRAPH, step

from infold.cli import cli
from infold.cli.main import COMMANDS
from infold.messages.errors import InfoldError
from infold.orchestration.command import WITH_LOG, InfoldProject, RunOptions, log_line, summary
from infold.orchestration.graph import ProjectGraph


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
