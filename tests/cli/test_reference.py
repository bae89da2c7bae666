"""docs/reference/ and the code list the same commands, options, keys, shapes and variables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli import sample
from tests.render.test_lateness import LATE

from infold.cli.main import COMMANDS, cli
from infold.core import engines
from infold.core.interval import Ranges
from infold.core.model import Materialization, Override
from infold.core.report import Forgotten, LedgerCopy
from infold.declare import models, project, seeds, sources, targets
from infold.declare import models as declared_sessions
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

    assert rows == dict(engines.FIXED)
    assert [start for start in engines.REFUSED if f"`{start}*`" not in text] == []


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
