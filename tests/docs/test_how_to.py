"""The how-to guides work: their files are accepted and their commands succeed."""

from __future__ import annotations

import ast
import shlex
import subprocess
from configparser import ConfigParser
from datetime import datetime
from pathlib import Path, PurePosixPath
from shutil import which
from zoneinfo import ZoneInfo

import pytest
import yaml
from click.testing import CliRunner
from cronsim import CronSim
from tests.docs.pages import DOCS, code, steps_of, write_project

from infold.cli import cli

GUIDES = (
    *("upgrade", "remove-a-bot", "investigate-a-wrong-number", "recover", "add-a-source"),
    *("come-from-another-tool", "change-a-model", "audit-tables", "backfill", "test-models"),
    *("write-functions", "schedule-runs", "write-models-in-python", "erase-a-person"),
)
"""In an order in which they can be followed in one project: those that run all of it come first."""


def page_of(guide: str) -> Path:
    """The page of a guide."""
    return DOCS / "how-to" / f"{guide}.md"


def starter(folder: Path) -> Path:
    """The project that ``infold init`` writes."""
    assert CliRunner().invoke(cli, ["init", str(folder)]).exit_code == 0
    return folder


def do(line: str, folder: Path) -> None:
    """A line of a shell; infold itself in this process, so that Java starts once for all lines."""
    command, _, output = line.partition(" > ")
    words = shlex.split(command)
    if not words:
        return
    if words[0] == "infold":
        as_written = {"test": {"no_shuffle": True}}  # spark/test_unit_tests tries other orders
        done = CliRunner().invoke(cli, words[1:], catch_exceptions=False, default_map=as_written)
        assert done.exit_code == 0, f"{line}\n{done.output}"
        if output:
            (folder / output).write_text(done.stdout, encoding="utf-8")
    else:
        subprocess.run(["bash", "-euc", line], cwd=folder, check=True)


def check(folder: Path) -> None:
    """Assert that `check` accepts a project."""
    done = CliRunner().invoke(cli, ["-C", str(folder), "check"])
    assert done.exit_code == 0, done.output


def test_every_guide_is_tested() -> None:
    """Every guide is in the list of the test that follows the guides."""
    assert sorted(GUIDES) == sorted(path.stem for path in (DOCS / "how-to").glob("*.md"))


@pytest.mark.deep
@pytest.mark.parametrize("guide", GUIDES)
def test_check_accepts_the_files_of_a_guide(guide: str, tmp_path: Path) -> None:
    """The files of a guide pass `check` in the project of ``infold init``."""
    check(write_project(page_of(guide), starter(tmp_path / "shop")))


def test_schedules_are_valid() -> None:
    """The guide's line for cron, keys of a model and Airflow example can be parsed."""
    page = page_of("schedule-runs")
    (line,) = code(page, "cron")
    (keys,) = code(page, "yaml")
    incremental = yaml.safe_load(keys)["incremental"]

    now = datetime(2024, 3, 8, tzinfo=ZoneInfo(incremental["cron_tz"]))
    assert next(CronSim(" ".join(line.split()[:5]), now)).minute == 15
    assert next(CronSim(incremental["cron"], now)).hour == 6
    for example in code(page, "python"):
        ast.parse(example)


def test_units_of_systemd_are_those_of_one_service() -> None:
    """The guide's units can be parsed; the timer starts the service of its own name."""
    units = {}
    for text in code(page_of("schedule-runs"), "ini"):
        path, _, body = text.partition("\n")
        unit = ConfigParser(interpolation=None, strict=True)
        unit.optionxform = str  # type: ignore[assignment, method-assign] # as they are written
        unit.read_string(body)
        units[PurePosixPath(path.removeprefix("# ")).name] = unit

    assert set(units) == {"infold.service", "infold.timer"}
    words = units["infold.service"]["Service"]["ExecStart"].split()[1:]
    assert CliRunner().invoke(cli, [*words, "--help"]).exit_code == 0
    assert units["infold.timer"]["Timer"]["OnCalendar"] == "*:0/15"
    assert units["infold.service"]["Service"]["Type"] == "oneshot"


def test_bots_in_a_file_are_a_lookup(tmp_path: Path) -> None:
    """The guide's view of bots reads a lookup and comes before sessions."""
    folder = starter(tmp_path / "shop")
    (view,) = code(page_of("remove-a-bot"), "sql")
    (folder / "models/people.sql").write_text(view)
    bots = "  raw.bots: {path: bots.csv, columns: {user_id: string}}\n\ntargets:"
    for file, old, new in (
        ("models/sessions.sql", "FROM clicks", "FROM people"),
        ("infold.yml", "\ntargets:", bots),
    ):
        text = (folder / file).read_text()
        (folder / file).write_text(text.replace(old, new))

    check(folder)


@pytest.mark.skipif(
    which("openssl") is None or which("jq") is None,
    reason="the guide's tools are missing; inspecting/test_certificates checks without them",
)
def test_a_signed_certificate_can_be_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the guide's commands, which notice a changed one."""
    page = page_of("erase-a-person")
    section = page.read_text(encoding="utf-8").partition("### Signed\n")[2].partition("\n## ")[0]
    folder = write_project(page, starter(tmp_path / "shop"))
    monkeypatch.chdir(folder)
    config = yaml.safe_load((folder / "infold.yml").read_text())
    config |= yaml.safe_load(code(section, "yaml")[0])
    (folder / "infold.yml").write_text(yaml.safe_dump(config))
    lines = "".join(code(section, "bash")).splitlines()

    for line in lines:
        do(line, folder)

    signed = folder / "certificate.json"
    signed.write_text(signed.read_text().replace('"found": {}', '"found": {"a": 1}'))
    canonical, verify = lines[-3], lines[-1]
    do(canonical, folder)
    with pytest.raises(subprocess.CalledProcessError):
        do(verify, folder)


@pytest.mark.spark
def test_the_guides_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Followed in one project, each guide writes its files and runs its commands."""
    folder = starter(tmp_path / "shop")
    monkeypatch.chdir(folder)

    for page in (*map(page_of, GUIDES), DOCS / "operations.md"):
        for name, text in steps_of(page):
            if name:
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
            for line in () if name else text.splitlines():
                do(line, folder)
