"""The page as files, and what the files that draw it may not have."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.page.history import EVIL, history

from infold.cli import cli
from infold.messages.errors import InfoldError
from infold.page.assets_list import assets
from infold.page.documents import Documents
from infold.page.export import export


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with two runs."""
    return history(tmp_path_factory.mktemp("page") / "shop")


def listed(folder: Path) -> dict[str, str]:
    """The files of the documents by their names."""
    text = (folder / "data" / "index.js").read_text(encoding="utf-8")
    found: dict[str, str] = json.loads(text.removeprefix("infold.exported = ").rstrip(";\n"))
    return found


def test_every_document_is_a_file(root: Path, tmp_path: Path) -> None:
    """Each document is a script that hands over the same as the server does."""
    documents = Documents(root)
    number = export(documents, tmp_path / "site")
    files = listed(tmp_path / "site")

    assert number == len(files)
    assert {*files} == {*documents.names()}
    text = (tmp_path / "site" / files["model/clicks"]).read_text(encoding="utf-8")
    data = json.loads(text.removeprefix('infold.arrived("model/clicks", ').rstrip(");\n"))
    assert data == documents("model/clicks")


def test_the_first_page_is_one_of_files(root: Path, tmp_path: Path) -> None:
    """The exported page loads files, has a policy, and refers to nothing elsewhere."""
    export(Documents(root), tmp_path / "site")
    text = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")

    assert 'data-form="files"' in text
    assert "Content-Security-Policy" in text
    for name in re.findall(r'(?:src|href)="([^"#]+)"', text):
        assert (tmp_path / "site" / name).is_file()
    assert EVIL not in text


def test_an_earlier_export_is_replaced(root: Path, tmp_path: Path) -> None:
    """A second export leaves nothing of the first, and nothing beside it."""
    export(Documents(root), tmp_path / "site")
    (tmp_path / "site" / "data" / "999.js").write_text("old", encoding="utf-8")

    export(Documents(root), tmp_path / "site")

    assert not (tmp_path / "site" / "data" / "999.js").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_other_folders_are_left_alone(root: Path, tmp_path: Path) -> None:
    """A folder with anything else is refused, and stays as it is."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "thesis.txt").write_text("mine", encoding="utf-8")

    with pytest.raises(InfoldError) as found:
        export(Documents(root), tmp_path / "site")

    assert found.value.slug == "folder-in-use"
    assert (tmp_path / "site" / "thesis.txt").read_text(encoding="utf-8") == "mine"


def test_the_command_writes_it(root: Path, tmp_path: Path) -> None:
    """`infold ui --export` says how much it wrote, and where to look."""
    site = tmp_path / "site"
    done = CliRunner().invoke(cli, ["-C", str(root), "ui", "--export", str(site)])

    assert (done.exit_code, done.output) == (
        0,
        f"{len(listed(site))} documents written. Open {site / 'index.html'}\n",
    )


def test_export_and_port_do_not_go_together(root: Path, tmp_path: Path) -> None:
    """What is said twice is refused."""
    words = ["-C", str(root), "ui", "--export", str(tmp_path / "site"), "--port", "8000"]

    assert CliRunner().invoke(cli, words).exit_code == 2


def test_nothing_is_read_as_html_and_nothing_comes_from_elsewhere() -> None:
    """The scripts make text of what they get, and no file of the page names another host."""
    spoilt = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|Function\("
    )
    for name, content in assets().items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")

        assert not spoilt.search(text), name
        assert not re.search(r"https?:|//[a-z]+\.", text), name
        assert "<script>" not in text
        assert not re.search(r'\son\w+="|style="', text), name


def test_every_script_is_loaded() -> None:
    """The first page names every script and style that there is."""
    text = assets()["index.html"].decode()

    assert {*re.findall(r'(?:src|href)="([\w.]+\.(?:js|css|svg))"', text)} == {
        name for name in assets() if name != "index.html"
    }
