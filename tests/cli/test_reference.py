"""The reference of commands, completion in shells, and what is shown again when files change."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete
from tests.cli import sample
from tests.cli.conftest import FakeApi, Infold
from tests.declare.shop import CLICKS, DAILY, INFOLD, write
from tests.render.test_formatting import LATE

from infold import api
from infold.cli import run as watching
from infold.cli.completion import SHELLS
from infold.cli.main import COMMANDS, cli
from infold.cli.run import LATEST, SOONEST, pause
from infold.core import target
from infold.core.environment import Environment
from infold.core.interval import Ranges
from infold.core.model import Materialization, Override
from infold.core.plan import Plan
from infold.core.report import Forgotten, LedgerCopy, RunFailed
from infold.declare import folder, models, project, seeds, sources, targets
from infold.declare import models as declared_sessions
from infold.declare.load import load
from infold.render import json_shapes
from infold.render.lateness import lateness_json
from infold.render.pictures.graph import graph_json, graph_of
from infold.render.repair import ledger_copy_json
from infold.render.session_history import session_history_shape

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sorted(FOLDER.glob("*.md"))}
CONTEXT = click.Context(cli, **cli.context_settings)


def section(title: str) -> str:
    """The text below a heading of some page, up to the next one of its depth or above."""
    depth = title.index(" ")
    (page,) = [text for text in PAGES.values() if f"\n{title}" in text]
    start = page.index(f"\n{title}") + 1
    after = re.compile(rf"^#{{1,{depth}}} ", re.MULTILINE).search(page, start + len(title))
    return page[start : after.start() if after else None]


def keys(title: str) -> set[str]:
    """The names in the first column of a section's table."""
    rows = re.findall(r"^\| (`[^|]*) \|", section(title), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def command(name: str) -> click.Command:
    """A command of the program."""
    found = cli.get_command(CONTEXT, name)
    assert found is not None
    return found


def beneath(name: str) -> list[click.Command]:
    """The commands of a group of commands."""
    found = command(name)
    return list(found.commands.values()) if isinstance(found, click.Group) else []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_described_and_none_besides(name: str) -> None:
    """The options in a command's section of the reference are exactly the options it has."""
    text = section(f"## infold {name}")
    params = [param for each in (command(name), *beneath(name)) for param in each.params]
    shown = [one for one in params if isinstance(one, click.Option) and not one.hidden]
    options = {opt for param in shown for opt in param.opts}
    described = re.findall(r"^\| (`-[^|]*) \|", text, re.MULTILINE)

    assert {opt for row in described for opt in re.findall(r"`(-[^` ]+)", row)} == options


def test_every_global_option_is_described() -> None:
    """The reference describes every option that comes before the command."""
    options = {opt for param in cli.get_params(CONTEXT) for opt in param.opts}
    intro = PAGES["commands"].partition("\n## ")[0]

    assert set(re.findall(r"`(-[^` ]+)", intro.partition("Results go")[0])) == options


@pytest.mark.parametrize("name", COMMANDS)
def test_arguments_are_in_the_heading(name: str) -> None:
    """The heading of a command's section shows its arguments, as in `infold explain MODEL
    [CELL]`; commands of a group have headings too, as `### infold quarantine add MODEL
    [SESSION]...`.
    """
    words = []
    for param in command(name).params:
        if not opts_of(param):
            word = param.make_metavar(CONTEXT).strip("[]").upper()
            words.append(word if param.required else f"[{word}]")
    text = section(f"## infold {name}")

    assert text.splitlines()[0] == " ".join(["## infold", name, *words])
    for each in beneath(name):
        words = [param.make_metavar(CONTEXT) for param in each.params if not opts_of(param)]
        assert f"\n{' '.join(['### infold', name, str(each.name), *words])}\n" in text


def opts_of(param: click.Parameter) -> list[str]:
    """The names of an option; an argument has none."""
    return param.opts if isinstance(param, click.Option) else []


@pytest.mark.parametrize(
    ("title", "known"),
    [
        ("### Project keys", project.KEYS),
        ("### Source keys", sources.KEYS),
        ("### Seed keys", seeds.KEYS),
        ("### Target keys", targets.KEYS),
        ("### Model keys", (*models.KEYS, "forward_only")),  # of tables it is in incremental
        ("### timeseries", models.TIMESERIES),
        ("### incremental", models.INCREMENTAL),
        ("### safety_overrides", tuple(Override)),
        ("### bounds", models.BOUND),
        ("### sessions", declared_sessions.SESSION_KEYS),
        ("### scd_type_2", models.VERSION_KEYS),
        ("### cuts", declared_sessions.CUTS),
        ("### campaign", declared_sessions.CAMPAIGN),
    ],
)
def test_every_key_is_described_and_none_besides(title: str, known: tuple[str, ...]) -> None:
    """The reference lists exactly the keys that the readers of files accept."""
    assert keys(title) == set(known)


def test_every_fixed_setting_is_listed_with_its_value() -> None:
    """With its value; and every prefix that is left to Spark."""
    text = PAGES["spark-settings"]
    rows = dict(re.findall(r"^\| `(spark[^`*]*)` \| `([^`]+)` \|", text, re.MULTILINE))

    assert rows == dict(target.FIXED)
    assert [start for start in target.REFUSED if f"`{start}*`" not in text] == []


def test_every_materialization_has_its_keys() -> None:
    """The second column of the models' keys names the materializations that accept the key."""
    for name, where in re.findall(
        r"^\| `(\w+)` \| ([^|]+) \|", section("### Model keys"), re.MULTILINE
    ):
        meant = {kind.value for kind, found in models._MEANT_FOR.items() if name in found}
        listed = set(re.findall(r"\w+", where))

        assert listed == ({"all"} if meant == {kind.value for kind in Materialization} else meant)


SHAPES = {
    "plan": json_shapes.plan(sample.plan()),
    "run": json_shapes.run(sample.failed()),
    "status": json_shapes.status(sample.project(), sample.status(), {"clicks": Ranges()}),
    "history": json_shapes.history(sample.history()),
    "explain": json_shapes.explanation(sample.explanation(sample.day(6))),
    "lateness": lateness_json(sample.project(), [LATE]),
    "dag": graph_json(sample.project(), graph_of(sample.project(), {"daily"})),
    "explain session": session_history_shape(sample.histories(quarantined=True)),
    "forget": json_shapes.forgotten(Forgotten(("daily",), ("dialy",))),
    "ledger copy": ledger_copy_json(LedgerCopy("a", "b", {"clicks": 1})),
    "verify": json_shapes.verification(sample.verification(equal=False)),
}
FREE = {
    *("clicks", "sessions", "countries", "users"),  # models, as keys of inputs and of facts
    *("committed", "condition"),  # facts
    *("null key", "unparsable"),  # reasons
    *("user_id", "events", "revenue", "url"),  # columns of a sampled row
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_name_of_a_json_shape_is_described(name: str) -> None:
    """In its command's section, or in one that the section points to."""
    text = PAGES["json"]
    own = section(f"## {name} --json")
    top = SHAPES[name]
    json.dumps(top, default=str)

    assert [key for key in top if f"`{key}`" not in own] == []
    assert {key for key in _names(top) if f"`{key}`" not in text} <= FREE


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        for entry in value.values():
            yield from _names(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _names(entry)


def test_the_environment_is_described() -> None:
    """The reference lists exactly the environment variables that the code reads."""
    found = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"INFOLD_[A-Z_]+", path.read_text(encoding="utf-8"))
    }

    assert keys("## Environment") == found | {"JAVA_HOME"}


NO_NAMES = {
    *("init", "demo", "apply", "rollback", "manifest", "ui", "teardown", "repair"),
    *("ledger", "engine", "check", "schema", "completion", "doctor", "verify"),
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project with tags and two targets."""
    root = write(tmp_path / "shop")
    (root / "models" / "clicks.sql").write_text(
        CLICKS.replace("---\n", "---\ntags: [raw, old]\n", 1)
    )
    (root / "infold.yml").write_text(
        INFOLD + "  prod: {warehouse: other, ledger: 'sqlite:///p.db'}\n"
    )
    return root


def completed(root: Path, *words: str) -> list[str]:
    """What is offered for the last of the words."""
    shell = ShellComplete(cli, {}, "infold", "_INFOLD_COMPLETE")
    *before, last = words
    return [one.value for one in shell.get_completions(["-C", str(root), *before], last)]


CASES = [
    (("run", ""), ["clicks", "daily", "sessions", "tag:"]),
    (("run", "--select", "d"), ["daily"]),
    (("run", "-s", "+d"), ["+daily"]),
    (("run", "-x", "daily,+s"), ["daily,+sessions"]),
    (("run", "-s", "tag:"), ["tag:old", "tag:raw"]),
    (("plan", "daily", "s"), ["sessions"]),
    (("run", "--forward-only", "c"), ["clicks"]),
    (("run", "--allow-destructive", "d"), ["daily"]),
    (("explain", ""), ["clicks", "daily", "sessions"]),
    (("quarantine", "add", "se"), ["sessions"]),
    (("show", "s"), ["sessions", "sessions_lifecycle_manifest", "set_aside"]),
    (("show", "daily", "--columns", ""), ["day", "revenue", "sessions"]),
    (("show", "daily", "--columns", "day,re"), ["day,revenue"]),
    (("show", "no_such", "--columns", ""), []),
    (("test", "--mask", "us"), ["user_id"]),
    (("--target", "p"), ["prod"]),
    (("--target", "prod", "show", "d"), ["daily"]),
    (("run", "--env", ""), []),
    (("com",), ["completion"]),
    (("schema", "m"), ["model"]),
    (("lateness", ""), ["clicks"]),
    (("dag", "+s"), ["+sessions"]),
]


@pytest.mark.parametrize(("words", "expected"), CASES, ids=[" ".join(words) for words, _ in CASES])
def test_names_are_completed(shop: Path, words: tuple[str, ...], expected: list[str]) -> None:
    """Names that begin as it is typed, with what is before them in the same word."""
    assert completed(shop, *words) == expected


def test_environments_are_completed(shop: Path) -> None:
    """Those that a ledger in a file knows; a Tab makes none."""
    completed(shop, "run", "--env", "")
    assert not (shop / ".infold" / "ledger.db").exists()
    ledger = api.ledger_of(load(shop))
    ledger.acquire("test")
    ledger.put_environment(Environment("alice", "alice@host", 1))
    ledger.release()

    assert completed(shop, "run", "--env", "al") == ["alice"]
    assert completed(shop, "promote", "") == ["alice"]


def test_models_are_completed_by_their_files_where_one_is_wrong(shop: Path) -> None:
    """A mistake that is being mended takes no name away; columns need the whole project."""
    (shop / "models" / "daily.sql").write_text("SELECT")

    assert completed(shop, "explain", "") == ["clicks", "daily", "sessions"]
    assert completed(shop, "show", "daily", "--columns", "") == []


@pytest.mark.parametrize("words", [words for words, _ in CASES if words[-1] != "com"])
def test_without_a_project_there_is_no_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Nothing is offered, and nothing raised."""
    assert completed(tmp_path, *words) in ([], ["model"], ["tag:"])


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - NO_NAMES))
def test_every_command_with_names_completes_them(name: str) -> None:
    """Arguments and options that are called after a name have a completion."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    commands = list(command.commands.values()) if isinstance(command, click.Group) else [command]
    named = {"MODEL", "TERM", "COLUMN", "TABLE", "[TERM...]", "TERM...", "[MODEL...]", "MODEL..."}
    for each in commands:
        for param in each.params:
            if param.metavar in named or param.name in ("model", "table", "env"):
                if name == "test" and param.name == "terms":
                    continue  # names of tests
                assert param._custom_shell_complete is not None, (each.name, param.name)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_what_a_shell_reads(infold: Infold, shell: str) -> None:
    """For each shell; bash takes it."""
    done = infold("completion", shell)

    assert done.exit_code == 0
    assert "_INFOLD_COMPLETE" in done.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=True)


def watched(finds: list[bool], *, does: bool = True) -> list[str]:
    """What happens where the looks find this, and a run takes a second."""
    clock, happened = [0.0], []

    def look() -> bool:
        if not finds:
            raise KeyboardInterrupt
        return finds.pop(0)

    def run() -> bool:
        happened.append("run")
        clock[0] += 1
        return does

    def sleep(seconds: float) -> None:
        happened.append(f"{seconds:.2f}")
        clock[0] += seconds

    with pytest.raises(KeyboardInterrupt):
        watching.watch(look, run, now=lambda: clock[0], sleep=sleep)
    return happened


def test_what_comes_meanwhile_is_run_at_once() -> None:
    """After a run there is a look without a pause."""
    assert watched([False, True, True, False]) == ["0.25", "run", "run", "0.25"]


def test_pauses() -> None:
    """After steps that nothing carries out too; the longer the less comes."""
    assert watched([True, True], does=False) == ["run", "0.25", "run", "0.25"]
    pauses = [pause(idle) for idle in (0, 4, 20, 100, 10_000)]
    assert pauses == [SOONEST, SOONEST, 1.0, LATEST, LATEST]


def test_the_command_runs_until_one_fails(
    fake: FakeApi, infold: Infold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It prints the steps of each run, reads the project each time, and ends as that run does."""
    plans = [fake.plan, replace(fake.plan, steps=()), fake.plan]
    monkeypatch.setattr(api, "plan", lambda *_, **__: plans.pop(0))
    monkeypatch.setattr(watching, "SOONEST", 0.0)
    ran: list[dict[str, Any]] = []
    once: Callable[..., Any] = fake.run

    def run(project: Any, **asked: Any) -> Any:
        ran.append(asked)
        if len(ran) == 2:
            raise RunFailed(sample.failed())
        return once(project, **asked)

    monkeypatch.setattr(api, "run", run)
    result = infold("run", "--watch", "-s", "daily")

    assert result.exit_code == 1
    assert result.stdout.startswith("  1. ")
    assert result.stdout.count(sample.result().notes[0]) == 2  # of each run, in its words
    assert "Files are taken in as they land" in result.stderr
    assert [(one["select"], one["wait"]) for one in ran] == [(("daily",), 60.0)] * 2
    assert not plans
    assert isinstance(fake.plan, Plan)


def test_it_prints_what_each_check_finds(
    tmp_path: Path, infold: Infold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A right project, a mistake, no project at all, and the right one again."""
    root = write(tmp_path)
    daily, project = root / "models" / "daily.sql", root / "infold.yml"
    text = project.read_text()

    def each_change(_: Path) -> Iterator[None]:
        yield
        daily.write_text(DAILY.replace("sum(revenue)", "sum(revenu)"))
        yield
        daily.write_text(DAILY)
        project.unlink()
        yield
        project.write_text(text)
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr(folder, "each_change", each_change)
    done = infold("-C", str(root), "check", "--watch")

    lines = [line.partition("  ")[2] for line in done.stdout.splitlines()]
    assert [line.partition(" in ")[0] for line in lines] == [
        "3 models, 2 sources, no findings",
        "3 models, 2 sources, no findings",
    ]
    findings = [line for line in done.stderr.splitlines() if line.startswith(("un", "no-"))]
    assert [line.partition(":")[0] for line in findings] == ["unknown-column", "no-project"]
    assert done.exit_code == 130


def test_without_a_project_no_check_begins(tmp_path: Path, infold: Infold) -> None:
    """Where there is none, or no such target, it ends as any command."""
    assert infold("-C", str(tmp_path), "check", "--watch").exit_code == 2
    root = str(write(tmp_path))
    assert infold("-C", root, "--target", "no_such", "check", "--watch").exit_code == 2
