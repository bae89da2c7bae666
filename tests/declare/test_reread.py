"""Of a project with a changed model no more is compiled than what follows from that model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.declare.shop import CLICKS, DAILY, INFOLD, SHOP, model, write

from infold.core.project import Project
from infold.declare import reread
from infold.declare.cache import FILE
from infold.declare.folder import Folder
from infold.declare.load import load
from infold.messages.errors import InfoldErrors

LANDED = model("table", "SELECT code, count(*) AS n FROM raw.countries GROUP BY 1")
TOP = model("table", "SELECT max(sessions) AS most FROM d1")
PAID = model("view", "SELECT * FROM clicks WHERE amount > 0")
FILES = {
    **SHOP,
    **{f"models/d{at}.sql": DAILY for at in range(9)},
    **{f"models/c{at}.sql": LANDED for at in range(9)},
    "models/top.sql": TOP,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of two dozen models that was read."""
    root = write(tmp_path_factory.mktemp("made"), FILES)
    load(root)
    return root


@pytest.fixture
def shop(made: Path, tmp_path: Path) -> Path:
    """The same project, which was read before, in a folder of its own."""
    return Path(shutil.copytree(made, tmp_path / "shop"))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The models that were compiled instead of the whole project, each time."""
    found: list[list[str]] = []
    reading = reread._read

    def noted(folder: Folder) -> Project | None:
        made = reading(folder)
        found.append([node.name for node in made] if made is not None else [])
        return made

    monkeypatch.setattr(reread, "_read", noted)
    return found


def afresh(root: Path) -> Project:
    """The project as it is read without what was kept of it."""
    (root / FILE).unlink()
    return load(root)


@pytest.mark.parametrize(
    ("changes", "compiled"),
    [
        ({"d1": DAILY.replace("count(*)", "1 + count(*)")}, "clicks sessions d1 top"),
        ({"d1": DAILY.replace("AS revenue", "AS revenue, 1 AS one")}, "clicks sessions d1 top"),
        ({"d2": DAILY.replace("day}", "month}"), "top": TOP + " "}, "clicks sessions d1 d2 top"),
        ({"d3": DAILY.replace("---\n", "---\ntags: [a]\n", 1)}, "clicks sessions d3"),
        ({"c1": LANDED.replace("n FROM", "m FROM")}, "raw.countries c1"),
        ({"top": TOP.replace("max", "min")}, "clicks sessions d1 top"),
    ],
)
def test_what_follows_from_a_change(
    shop: Path, read: list[list[str]], changes: dict[str, str], compiled: str
) -> None:
    """The changed models, what reads them, and what all these read; the project is the same."""
    write(shop, {f"models/{name}.sql": text for name, text in changes.items()})

    found = load(shop)

    assert [sorted(names) for names in read] == [sorted(compiled.split())]
    assert load(shop) == found
    assert len(read) == 1
    assert afresh(shop) == found


@pytest.mark.deep
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("d1", DAILY.replace("FROM sessions", "FROM d2").replace("session_start", "day")),
        ("d1", f"{DAILY.rstrip()} HAVING count(*) IN (SELECT n FROM c1)"),
        ("d1", PAID),
        ("d1", CLICKS),
        ("c1", LANDED.replace("SELECT", "WITH u AS (SELECT * FROM raw.clicks) SELECT")),
        ("c1", LANDED.replace("raw.countries", "top").replace("code", "most")),
        ("clicks", CLICKS.replace("url,", "")),
        ("sessions", SHOP["models/sessions.sql"].replace("30", "20")),
        ("more", DAILY),
    ],
    ids=[
        "reads another",
        "reads one more",
        "a view",
        "events",
        "a source in a CTE",
        "no source",
        "changed events",
        "most of all",
        "another file",
    ],
)
def test_what_may_be_about_the_whole(shop: Path, file: str, text: str) -> None:
    """Where a change may be about other models too, all are read; the project is the same."""
    write(shop, {f"models/{file}.sql": text})

    def outcome() -> object:
        try:
            return load(shop)
        except InfoldErrors as errors:
            return str(errors)

    found = outcome()
    (shop / FILE).unlink()

    assert outcome() == found


def test_errors_are_those_of_the_whole_project(shop: Path) -> None:
    """A mistake in one file is found together with those in others."""
    write(shop, {"models/d1.sql": DAILY.replace("revenue", "revenu")})
    with pytest.raises(InfoldErrors, match="revenu"):
        load(shop)
    write(shop, {"models/d2.sql": "SELECT", "models/d1.sql": DAILY})
    with pytest.raises(InfoldErrors, match=r"d2\.sql"):
        load(shop)


@pytest.mark.parametrize(
    "files",
    [
        {"infold.yml": INFOLD.replace("url: string", "url: {type: string, optional: true}")},
        {"models/paid.sql": PAID, "models/d1.sql": DAILY.replace("FROM sessions", "FROM calls"),
         "models/calls.sql": SHOP["models/sessions.sql"].replace("FROM clicks", "FROM paid")},
    ],
    ids=["optional columns", "views"],
)  # fmt: skip
def test_what_depends_on_its_readers(
    shop: Path, read: list[list[str]], files: dict[str, str]
) -> None:
    """Optional columns and views are what all that read them make of them."""
    write(shop, files)
    load(shop)
    before = (shop / "models/d1.sql").read_text()
    write(shop, {"models/d1.sql": before.replace("count(*)", "1 + count(*)")})

    found = load(shop)

    assert read == []
    assert afresh(shop) == found
