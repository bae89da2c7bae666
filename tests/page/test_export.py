"""The page as files, and what the files that draw it may not have."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.page.history import EVIL, history

from infold.cli import cli
from infold.messages.errors import InfoldError
from infold.page.assets_list import assets
from infold.page.documents import Documents
from infold.page.export import MARK, export


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
    """The same as the server's, as scripts, and a page that refers to nothing elsewhere."""
    documents, site = Documents(root), tmp_path / "site"
    done = CliRunner().invoke(cli, ["-C", str(root), "ui", "--export", str(site)])
    files = listed(site)

    said = f"{len(files)} documents written. Open {site / 'index.html'}\n"
    assert (done.exit_code, done.output) == (0, said)
    assert {*files} == {*documents.names()}
    text = (site / files["model/clicks"]).read_text(encoding="utf-8")
    data = json.loads(text.removeprefix('infold.arrived("model/clicks", ').rstrip(");\n"))
    assert data == documents("model/clicks")
    first = (site / "index.html").read_text(encoding="utf-8")
    assert 'data-form="files"' in first
    assert "Content-Security-Policy" in first
    for name in re.findall(r'(?:src|href)="([^"#]+)"', first):
        assert (site / name).is_file()
    assert EVIL not in first


def test_an_earlier_export_is_replaced(root: Path, tmp_path: Path) -> None:
    """A second export leaves nothing of the first, and all that a user put beside it."""
    site = tmp_path / "site"
    export(Documents(root), site)
    (site / "data" / "999.js").write_text("old", encoding="utf-8")
    (site / MARK).write_text(json.dumps({"files": [*noted(site), "data/999.js"]}))
    mine = [site / "notes.txt", site / "data" / "notes.txt"]
    for file in mine:
        file.write_text("mine", encoding="utf-8")

    export(Documents(root), site)

    assert [file.read_text(encoding="utf-8") for file in mine] == ["mine", "mine"]
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    assert files_in(site) == {*noted(site), MARK, "notes.txt", "data/notes.txt"}


def noted(site: Path) -> list[str]:
    """The files that the mark lists."""
    found: list[str] = json.loads((site / MARK).read_text(encoding="utf-8"))["files"]
    return found


def files_in(folder: Path) -> set[str]:
    """All that is in it."""
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}


LOOKS_LIKE_ONE = {"index.html": "mine", "data/index.js": "mine", "thesis.txt": "mine"}


@pytest.mark.parametrize(
    "there",
    [
        {"thesis.txt": "mine"},
        LOOKS_LIKE_ONE,
        LOOKS_LIKE_ONE | {MARK: "mine"},
        LOOKS_LIKE_ONE | {MARK: '{"files": ["../thesis.txt"]}'},
        LOOKS_LIKE_ONE | {MARK: '{"files": ["index.html", 7]}'},
        {MARK: '{"files": ["index.html"]}', "data/index.js": "mine"},
        {MARK: '{"files": ["index.html"]}', "data": "mine"},
    ],
    ids=" ".join,
)
def test_other_folders_are_left_alone(root: Path, tmp_path: Path, there: Mapping[str, str]) -> None:
    """A folder that no export wrote, or with a file in its way, is refused, and stays as it is."""
    site = tmp_path / "site"
    for name, text in there.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")

    with pytest.raises(InfoldError) as found:
        export(Documents(root), site)

    assert found.value.slug == "folder-in-use"
    assert {name: (site / name).read_text(encoding="utf-8") for name in files_in(site)} == there


def test_a_file_is_no_folder(root: Path, tmp_path: Path) -> None:
    """A file of that name is refused, and stays."""
    (tmp_path / "site").write_text("mine", encoding="utf-8")

    with pytest.raises(InfoldError, match="it is not a folder"):
        export(Documents(root), tmp_path / "site")

    assert files_in(tmp_path) == {"site"}


def test_data_that_leads_elsewhere_is_refused(root: Path, tmp_path: Path) -> None:
    """Where the folder of the documents was made a link, nothing is written through it."""
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    export(Documents(root), site)
    (site / "data").rename(elsewhere)
    (site / "data").symlink_to(elsewhere)
    before = {path: path.stat().st_ino for path in elsewhere.iterdir()}

    with pytest.raises(InfoldError, match="data in it is not of the earlier export"):
        export(Documents(root), site)

    assert {path: path.stat().st_ino for path in elsewhere.iterdir()} == before


def test_the_present_folder_and_a_link_take_an_export(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--export .` fills an empty folder; a link to one stays a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "site").symlink_to(tmp_path / "real")
    export(Documents(root), tmp_path / "site")
    assert (tmp_path / "site").is_symlink()
    assert (tmp_path / "real" / "index.html").is_file()

    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path / "new")
    export(Documents(root), Path())
    assert files_in(tmp_path / "new") == {*noted(Path()), MARK}


@pytest.mark.parametrize("words", [(), ("--port", "8000"), ("--allow-runs",)])
def test_an_export_that_fails_leaves_nothing(
    root: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """A folder that was made for an export is gone when the project cannot be opened, and none is
    made where something else is asked for as well: files listen at no port and start nothing.
    """
    folder = root if words else root / "models"
    done = CliRunner().invoke(
        cli, ["-C", str(folder), "ui", "--export", str(tmp_path / "site"), *words]
    )

    assert done.exit_code == 2
    assert all(word in done.output for word in words[:1])
    assert list(tmp_path.iterdir()) == []


def test_documents_with_errors_are_named(tmp_path: Path) -> None:
    """What could not be made is said with its reason, and the command fails."""
    root, site = history(tmp_path / "shop"), tmp_path / "site"
    project = root / "infold.yml"
    text = project.read_text(encoding="utf-8").replace("landing/", "nowhere/")
    project.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(cli, ["-C", str(root), "ui", "--export", str(site)])

    assert (done.exit_code, done.output.splitlines()[1:]) == (
        1,
        [
            "1 document with an error in place of data:",
            "  explained/clicks: no-such-folder: the folder of source raw.clicks does not exist",
        ],
    )


def test_what_scripts_and_styles_may_not_have() -> None:
    """The scripts make text of what they get, and no file of the page names another host. A
    document may be an error, so no script takes parts of one before it has looked. The first page
    names every script and style that there is.
    """
    spoilt = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|Function\("
    )
    unseen = re.compile(r"\{[^{}]*\} = await infold\.load\(|infold\.load\([^)]*\)\.then\(\(\{")
    for name, content in assets().items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")

        assert not spoilt.search(text), name
        assert not unseen.search(text), name
        assert not re.search(r"https?:|//[a-z]+\.", text), name
        assert "<script>" not in text
        assert not re.search(r'\son\w+="|style="', text), name

    first = assets()["index.html"].decode()
    assert {*re.findall(r'(?:src|href)="([\w.]+\.(?:js|css|svg))"', first)} == {
        name for name in assets() if name != "index.html"
    }
