"""What the page shows: documents of a project, its sessions and its unit tests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.cli import sample
from tests.page.history import EVIL, FIRST, History, change, history, lay_out

from infold import api
from infold.core.interval import DAY, SECOND, Interval
from infold.core.ports import Lake
from infold.core.project import Project
from infold.core.trace import CellState, Trace
from infold.core.unit_tests import SHUFFLES, TestResult
from infold.inspecting.left_out import set_aside_schema
from infold.ledger import SqlLedger
from infold.page.documents import Documents, aside_document, sessions_document
from infold.render.session_history import session_history_shape
from infold.testing.run_tests import PassedTests, read_project_tests


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
    made = History(project, api.ledger_of(project), number=2)
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

    assert (found["how"], found["picture"]) == ("nothing", None)
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
    made = History(project, api.ledger_of(project), number=2)
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
    History(project, api.ledger_of(project)).run(("clicks", (change(0, 0, 1),), "first run"))
    assert (before, gone, len(the(stays, "runs")["runs"])) == (2, 0, 1)


@dataclass
class Stored:
    """A ledger and a lake with one table of sessions."""

    asked: list[dict[str, Any]] = field(default_factory=list)

    def traces(self) -> dict[str, Trace]:
        """It was built."""
        return {"sessions": Trace("sessions", "f")}

    def cells(self, _: str) -> Sequence[CellState]:
        """Two days of it."""
        return [CellState(Interval(at, at + DAY), 2, 7) for at in (FIRST, FIRST + DAY)]

    def rows(self, table: str, **asked: Any) -> pa.Table:
        """Two sessions, not in order."""
        self.asked.append({"table": table, **asked})
        start = datetime(2024, 3, 2, 12, tzinfo=UTC)
        starts = [start + timedelta(hours=1), start]
        return pa.table(
            {
                "session_id": ["b", "a"],
                "session_start": pa.array(starts, pa.timestamp("us", "UTC")),
                "amount": pa.array([None, 1], pa.decimal128(5, 2)),
            }
        )


def test_some_of_the_newest_are_listed() -> None:
    """Of the newest cell alone, by their start; nothing of a table that was never built."""
    stored = Stored()
    found, none = (
        sessions_document(cast("SqlLedger", stored), cast("Lake", stored), name)
        for name in ("sessions", "others")
    )

    where = "session_start >= '2024-03-02'"
    assert stored.asked == [{"table": "sessions", "where": where, "limit": 20}]
    shown = [(one["session_id"], one["amount"]) for one in found["sessions"]]
    assert shown == [("a", "1.00"), ("b", None)]
    assert none["sessions"] == []


def test_a_session_is_what_explain_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document of a session is that of `infold explain session`; its id may be anything."""
    asked: list[str] = []

    def known(_: object, id_: str) -> object:
        asked.append(id_)
        return sample.histories()

    monkeypatch.setattr(api, "session_history", known)

    found = Documents(history(tmp_path / "shop"))("session/a/../b")

    assert asked == ["a/../b"]
    assert found is not None
    assert found["sessions"][0]["runs"]
    assert {*found} == {*session_history_shape(sample.histories())}
    json.dumps(found)


def test_a_session_that_is_none_says_so(tmp_path: Path) -> None:
    """An id that no session has is a message, as of the command."""
    found = Documents(history(tmp_path / "shop"))("session/nobody")

    assert found is not None
    assert found["error"]["slug"] in ("unknown-session", "no-sessions")


REASONS = [("clicks", f"unparsable {EVIL}")] * 7 + [("clicks", "null key")] * 2


@dataclass
class StoredRows:
    """A lake in which only the table of set-aside rows is read."""

    project: Project

    def rows(self, table: str, *, limit: int) -> pa.Table:
        """Some rows with two reasons."""
        assert (table, limit > len(REASONS)) == (self.project.set_aside, True)
        known = {"source": "raw.clicks", "file": f"{EVIL}.json", "file_id": 1, "event_time": None}
        rows = [
            {**known, "model": model, "reason": reason, "raw": f"{EVIL}{number}"}
            for number, (model, reason) in enumerate(REASONS)
        ]
        return pa.Table.from_pylist(rows, schema=set_aside_schema())


def test_rows_are_counted_by_their_reason(tmp_path: Path) -> None:
    """The most frequent first, five of each; without sessions nothing is in quarantine."""
    project = api.open_project(history(tmp_path / "shop"))
    lake = cast("Lake", StoredRows(project))
    document = aside_document(project, api.ledger_of(project), lake)
    found = document["reasons"]

    assert {(one["model"], one["reason"]): one["rows"] for one in found} == Counter(REASONS)
    assert [(one["rows"], len(one["samples"])) for one in found] == [(7, 5), (2, 2)]
    assert found[0]["samples"][0]["raw"] == f"{EVIL}0"
    assert document["left_out"] == {"models": [], "samples": []}
    assert document["quarantine"] == {"quarantined_sessions": [], "entries": [], "sessions": 0}


ERASURES = """\
erasures:
  person: {raw.clicks: user_id}
targets:
  dev: {erasure_secret: "${env:ERASED_BY}"}
"""


def test_requests_to_erase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are listed with the models that they wait for, which are stale since they were made."""
    monkeypatch.setenv("ERASED_BY", "one that nobody guesses")
    root = history(tmp_path / "shop")
    with (root / "infold.yml").open("a", encoding="utf-8") as config:
        config.write(ERASURES)
    assert the(Documents(root), "aside")["erasures"] == {"requests": []}
    request = api.erase(api.open_project(root), "person", ["ann"], reason=EVIL)

    documents = Documents(root)
    [shown] = the(documents, "aside")["erasures"]["requests"]
    [clicks, daily] = the(documents, "states")["plan"]["steps"]

    asked = (shown["id"], shown["reason"], shown["pending"], shown["purged"])
    assert asked == (request.id, EVIL, ["clicks"], False)
    assert clicks["reasons"][0]["detail"].startswith("1 request to erase (person), made ")
    assert (clicks["model"], daily["model"]) == ("clicks", "daily")
    waiting = {
        one.model: [each.id for each in one.erasures] for one in api.status(api.open_project(root))
    }
    assert waiting == {"clicks": [request.id], "daily": [], "names": []}
    assert "ann" not in json.dumps(shown)
    assert request.keys[0] not in json.dumps(shown)


TESTS = """\
# a click counts

## Arrival

raw.clicks:
| event_id | event_ts         |
|----------|------------------|
| a        | 2024-03-01 10:00 |

expect daily:
| day        | clicks |
|------------|--------|
| 2024-03-01 | 1      |

# nothing comes of nothing

## Arrival

raw.clicks: no rows

expect daily: no rows
expect clicks: no rows
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with two tests."""
    root = lay_out(tmp_path / "shop")
    (root / "tests").mkdir()
    (root / "tests" / "clicks.md").write_text(TESTS, encoding="utf-8")
    return root


def test_each_model_has_its_tests(root: Path) -> None:
    """Those that expect rows of it, and which of them passed and are as they were."""
    project = api.open_project(root, declared=True)
    first, _ = tests = read_project_tests(project)
    PassedTests(project, seed=0, shuffles=SHUFFLES).add(
        [first], {first.name: TestResult(first, (), shuffles=SHUFFLES)}
    )

    one = {"test": "a click counts", "file": "tests/clicks.md:1", "passed": True}
    two = {"test": "nothing comes of nothing", "file": "tests/clicks.md:15", "passed": False}
    assert len(tests) == 2
    assert Documents(root)("tests") == {"models": {"daily": [one, two], "clicks": [two]}}


def test_a_project_without_tests_and_one_with_a_mistake(root: Path) -> None:
    """The first has none, the second says what is wrong."""
    (root / "tests" / "clicks.md").write_text("# x\n\nexpcet daily: no rows\n", encoding="utf-8")
    wrong = Documents(root)("tests")
    (root / "tests" / "clicks.md").unlink()

    assert wrong is not None
    assert "bad-test" in wrong["error"]["text"]
    assert Documents(root)("tests") == {"models": {}}
