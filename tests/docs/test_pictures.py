"""Drawings and pictures of commands are what their texts say, and every one is shown.

A drawing's text is drawn by `docs/draw.py`; that of a command was recorded by `docs/pictures.py`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.shell_completion import get_completion_class

from infold import api
from infold.cli.main import cli
from infold.render.pictures.graph import graph_of, graph_screen
from infold.render.pictures.look import Look

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"
DRAWINGS = sorted((DOCS / "drawings").glob("*.txt"))
TEXTS = sorted(PICTURES.glob("*.ansi"))


@pytest.mark.parametrize("script", ["draw.py", "pictures.py"])
def test_the_pictures_are_current(script: str) -> None:
    """Each picture is what the script writes from its text."""
    done = subprocess.run(
        [sys.executable, str(DOCS / script), "--check"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


def test_every_picture_is_on_a_page_and_described_there() -> None:
    """With a sentence for readers who do not see it; each page of concepts shows one."""
    shown: dict[Path, list[str]] = {}
    for page in DOCS.rglob("*.md"):
        found = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
        for text, path in found:
            shown.setdefault((page.parent / path).resolve(), []).append(text)
        assert found or page.parent.name != "concepts", page

    assert set(shown) == {path.with_suffix(".svg") for path in (*DRAWINGS, *TEXTS)}
    assert min(len(text) for texts in shown.values() for text in texts) > 40


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_a_picture_shows_its_text_and_nothing_from_elsewhere(text: Path) -> None:
    """Each line is there, nothing is fetched, and no id or time of the recording is in it."""
    path = text.with_suffix(".svg")
    picture = path.read_text(encoding="utf-8")
    shown = "".join(ET.fromstring(picture).itertext()).replace("\xa0", " ")

    for line in re.sub(r"\x1b\[\d+m", "", text.read_text(encoding="utf-8")).split("\n"):
        for word in line.split():
            assert word in shown
    assert re.findall(r"https?://(?!www\.w3\.org/)|url\((?!#)|@import|<image", picture) == []
    assert path.stat().st_size < 40_000
    assert not re.search(r"\d{8}T\d{6}", text.read_text(encoding="utf-8"))


def test_the_page_names_the_commands_that_were_recorded() -> None:
    """Each picture follows the command that it shows; the last lines are for the shell's start."""
    page = (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")
    commands = re.findall(r"```sh\n(.*?)\n```\n\n!\[[^\]]+\]\(pictures/(\w+)\.svg\)", page)
    (shell,) = re.findall(r'```sh\neval "\$\(_INFOLD_COMPLETE=(\w+)_source infold\)"', page)

    assert len(commands) == len(TEXTS)
    for command, name in commands:
        title = ET.parse(PICTURES / f"{name}.svg").getroot()[0].text
        assert title == command
    assert get_completion_class(shell) is not None
    assert cli.name == "infold"


def test_the_graph_is_that_of_the_demo(tmp_path: Path) -> None:
    """The recorded graph is what `infold dag` draws of the demo's project today."""
    with as_file(files("infold.demo") / "project") as project:
        shutil.copytree(project, tmp_path / "demo")
    found = api.open_project(tmp_path / "demo")
    text = graph_screen(
        found, graph_of(found, {node.name for node in found}), Look(78, plain=False)
    )

    assert text + "\n" == (PICTURES / "dag.ansi").read_text(encoding="utf-8")
