"""The data of the page, from a ledger that was written by hand."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.page.history import EVIL, FIRST, History, change, history

from infold import api
from infold.core.interval import DAY, SECOND
from infold.page.documents import Documents


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Documents:
    """Those of the project with two runs."""
    return Documents(history(tmp_path_factory.mktemp("page") / "shop"))


def the(documents: Documents, name: str) -> dict[str, Any]:
    """A document that is there and no error."""
    found = documents(name)
    assert found is not None
    assert "error" not in found or found["error"] is None, found["error"]
    return found


def seconds(number: int) -> int:
    """The start of a day, as scripts count."""
    return (FIRST + number * DAY) // SECOND


def test_every_document_is_there_and_plain(documents: Documents) -> None:
    """Every name that an export writes has a document, which JSON has without help."""
    names = list(documents.names())

    assert {"project", "states", "runs", "aside", "changes", "run/run-1", "model/names"} < {*names}
    for name in names:
        found = the(documents, name)
        assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    "name",
    [
        *("", "nothing", "model/nothing", "explained/nothing", "lateness/daily", "run/nothing"),
        "model/../project",
    ],
)
def test_other_names_have_none(documents: Documents, name: str) -> None:
    """A name of nothing has no document, and no file is looked for."""
    assert documents(name) is None


def test_the_project_and_its_states(documents: Documents) -> None:
    """Models with what they read and their rows; then what a run would do of each."""
    found, states = the(documents, "project")["models"], the(documents, "states")

    assert [(one["model"], one["reads"], one["rows"], one["run"]) for one in found] == [
        ("clicks", ["raw.clicks"], 57, "run-2"),
        ("daily", ["clicks"], 6, "run-2"),
        ("names", ["clicks"], None, None),
    ]
    assert EVIL in found[0]["columns"]
    found_states = {name: one["state"] for name, one in states["models"].items()}
    assert found_states == {"clicks": "standard run", "daily": "standard run", "names": "view"}
    assert states["plan"]["steps"] == []


def test_new_files_make_their_readers_stale(tmp_path: Path) -> None:
    """A file that nobody has read yet makes its table stale, and what reads it, at a cost."""
    root = history(tmp_path / "shop")
    row = '{"event_id": "1", "user_id": "u", "event_ts": "2024-03-03T10:00:00"}\n'
    (root / "landing" / "late.json").write_text(row, encoding="utf-8")

    found = the(Documents(root), "states")

    assert [step["model"] for step in found["plan"]["steps"]] == ["clicks", "daily"]
    assert found["plan"]["rows"] > 0
    assert [found["models"][name]["stale"] for name in ("clicks", "daily")] == ["up to 1 day"] * 2


def test_a_model_says_why_its_rows_changed(documents: Documents) -> None:
    """The newest version comes first, with its reason, file and cells; each cell with rows is on
    the calendar, and each change of one is known by its version.
    """
    found = the(documents, "model/clicks")
    newest, first = found["versions"]
    second, sixth = [seconds(1), seconds(2)], [seconds(5), seconds(6)]

    assert (newest["run"], newest["net"], newest["added"], newest["rows"]) == ("run-2", 7, 7, 57)
    assert newest["reasons"] == [{"cause": "late", "detail": f"1 new file {EVIL}", "rows": 3}]
    assert newest["files"] == [f"landing/{EVIL}.json"]
    assert newest["top"] == [[*sixth, 0, 4], [*second, 10, 13]]
    assert (first["cells"], first["files"]) == (5, ["landing/first.json"])
    assert found["calendar"]["unit"] == "day"
    assert [rows for _, rows, _ in found["calendar"]["cells"]] == [10, 13, 10, 10, 10, 4]
    assert found["changes"][:2] == [[2, second[0], 3, 0, 10, 13], [2, sixth[0], 4, 0, 0, 4]]


def test_what_a_table_reads(documents: Documents) -> None:
    """Its inputs with bounds, and why nothing is built, as `infold explain` says it."""
    (entry,) = the(documents, "model/daily")["inputs"]
    found = the(documents, "explained/daily")

    assert (entry["name"], entry["bounds"], entry["lookup"]) == ("clicks", [[0, 0]], False)
    assert found["reads"][0]["mapping"] == "the same cell of event_ts"
    assert (found["step"], found["why_left"]) == (None, "up to date")


def test_rows_of_a_rebuilt_table_are_counted_by_its_versions(tmp_path: Path) -> None:
    """A version that replaced all content names no cell that became empty: its rows tell."""
    root = history(tmp_path / "shop")
    project = api.open_project(root)
    made = History(project, api.ledger(project), number=2)
    made.run(("daily", (change(0, 0, 1),), "definition"), whole=True)

    newest = the(Documents(root), "model/daily")["versions"][0]
    step = the(Documents(root), "run/run-3")["steps"][0]

    assert (newest["rows"], newest["net"]) == (1, -5)
    assert step["changed"]["net"] == -5


def test_a_run_has_its_steps_with_what_they_changed(documents: Documents) -> None:
    """A run's steps have their cells, their files, and the rows that came."""
    clicks, daily = the(documents, "run/run-2")["steps"]

    assert clicks["changed"]["added"] == 7
    assert clicks["spans"] == [[seconds(1), seconds(2)], [seconds(5), seconds(6)]]
    assert [file["path"] for file in clicks["files"]] == [f"landing/{EVIL}.json"]
    assert (daily["changed"]["net"], daily["files"]) == (1, [])


def test_lateness_without_a_received_column(documents: Documents) -> None:
    """Nobody knows how late rows are; what each run brought is known."""
    found = the(documents, "lateness/clicks")

    assert (found["how"], "heat" in found) == ("nothing", False)
    assert found["arrivals"][0]["late"] == 3


def test_documents_are_made_in_several_threads(documents: Documents) -> None:
    """A browser asks for several at once: each is what it is alone."""
    names = ["states", "project", "model/clicks", "explained/daily", "aside", "changes"] * 3
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(documents, names))

    for name, one in zip(names, found, strict=True):
        again = the(documents, name)
        assert one is not None
        assert {**one, "made_at": 0} == {**again, "made_at": 0}


def test_a_mistake_is_a_document_too(tmp_path: Path) -> None:
    """What is wrong with the project is shown, and is gone once it is mended."""
    root = history(tmp_path / "shop")
    model = root / "models" / "daily.sql"
    text = model.read_text(encoding="utf-8")
    model.write_text(text.replace("FROM clicks", "FROM click"), encoding="utf-8")

    broken = Documents(root)("project")
    model.write_text(text, encoding="utf-8")

    assert broken is not None
    assert broken["error"]["text"].startswith("unknown-table: ")
    assert the(Documents(root), "project")["project"] == "shop"


def test_a_changed_definition_is_a_diff(tmp_path: Path) -> None:
    """Of each kept definition the lines that differ from the one before it are shown."""
    root = history(tmp_path / "shop")
    model = root / "models" / "daily.sql"
    text = model.read_text(encoding="utf-8")
    model.write_text(text.replace("count(*)", "count(user_id)"), encoding="utf-8")
    (waiting,) = the(Documents(root), "changes")["waiting"]
    project = api.open_project(root)
    made = History(project, api.ledger(project), number=2)
    made.run(("daily", (change(0, 1, 1),), "definition"))

    changes = the(Documents(root), "changes")
    newest = changes["definitions"][0]

    assert (waiting["lines"], changes["waiting"]) == (newest["lines"], [])
    assert (newest["model"], newest["first"], newest["applied"]) == ("daily", False, True)
    assert [line for line in newest["lines"] if line[0] in "+-"] == [
        "-SELECT cast(event_ts AS date) AS day, count(*) AS clicks FROM clicks GROUP BY 1",
        "+SELECT cast(event_ts AS date) AS day, count(user_id) AS clicks FROM clicks GROUP BY 1",
    ]


def test_a_project_that_never_ran_has_a_page(tmp_path: Path) -> None:
    """Every document is there and none makes a ledger; one that comes later is shown."""
    root = history(tmp_path / "shop")
    ledger = root / ".infold" / "ledger.db"
    stays = Documents(root)
    before = len(the(stays, "runs")["runs"])
    for file in ledger.parent.glob("ledger.db*"):
        file.unlink()

    documents = Documents(root)

    assert [name for name in documents.names() if "error" in the(documents, name)] == []
    assert the(documents, "project")["models"][0]["rows"] is None
    gone = len(the(stays, "runs")["runs"])
    assert not ledger.exists()
    project = api.open_project(root)
    History(project, api.ledger(project)).run(("clicks", (change(0, 0, 1),), "first run"))
    assert (before, gone, len(the(stays, "runs")["runs"])) == (2, 0, 1)
