"""What `infold doctor` says of targets to which something was done; nothing here starts Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from infold import api
from infold.api.doctor import examine
from infold.cli import cli
from infold.core.checkup import Check, Verdict

NO_JAVA = {"PATH": "/nowhere", "JAVA_HOME": ""}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project, on a machine without Java."""
    for name, value in NO_JAVA.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "shop"
    CliRunner().invoke(cli, ["init", str(folder)])
    return folder


def checks(root: Path, target: str | None = None) -> Mapping[str, Check]:
    """What was checked, by name."""
    return {check.name: check for check in examine(root, target)}


def slugs(check: Check) -> list[str]:
    """The errors of a check."""
    return [error.slug for error in check.errors]


def doctor(root: Path, *words: str) -> Result:
    """The command."""
    return CliRunner().invoke(cli, ["-C", str(root), "doctor", *words])


def test_all_else_is_checked_without_java(root: Path) -> None:
    """Spark is left out, and what needs it."""
    found = checks(root)

    assert {name: check.verdict for name, check in found.items()} == {
        "Python": Verdict.OK,
        "Java": Verdict.FAILED,
        "project": Verdict.OK,
        "ledger": Verdict.OK,
        "warehouse": Verdict.OK,
        "tables": Verdict.OK,
        "Spark": Verdict.LEFT_OUT,
        "catalog": Verdict.LEFT_OUT,
        "clocks": Verdict.LEFT_OUT,
        "source raw.clicks": Verdict.OK,
    }
    assert slugs(found["Java"]) == ["java-missing"]
    assert found["source raw.clicks"].found.startswith("2 files, ")


def test_it_leaves_no_ledger_and_no_table(root: Path) -> None:
    """The first run after it is a first run."""
    checks(root)

    assert not (root / "warehouse").exists()
    assert sorted(path.name for path in (root / ".infold").iterdir()) == ["project.pickle"]


def test_it_ends_with_1_and_every_error(root: Path) -> None:
    """A line for each check, then what to do about those that failed."""
    done = doctor(root)

    assert done.exit_code == 1
    assert "failed    Java       " in done.output
    assert "left out  Spark      needs Java" in done.output
    assert "Failed: Java." in done.output
    assert "java-missing: " in done.output


def test_json(root: Path) -> None:
    """The same for programs."""
    done = doctor(root, "--json")
    found = json.loads(done.stdout)

    assert done.exit_code == 1
    assert found["ok"] is False
    by_name = {check["name"]: check for check in found["checks"]}
    assert by_name["Java"]["errors"][0]["slug"] == "java-missing"
    assert by_name["ledger"] | {"seconds": 0, "found": ""} == {
        "name": "ledger",
        "verdict": "ok",
        "found": "",
        "seconds": 0,
        "errors": [],
    }


def test_a_project_with_mistakes(root: Path) -> None:
    """All of them are shown; a target cannot be known."""
    (root / "models" / "wrong.sql").write_text("SELECT 1 AS x FROM nowhere\n")
    (root / "models" / "wrong_too.sql").write_text("---\nkind: tabel\n---\nSELECT 1 AS x\n")
    found = checks(root)

    assert list(found) == ["Python", "Java", "project"]
    assert len(found["project"].errors) >= 2


def test_an_unknown_target(root: Path) -> None:
    """It is named, with those that there are."""
    assert slugs(checks(root, "prod")["project"]) == ["unknown-target"]


def test_no_project(tmp_path: Path) -> None:
    """Python and Java are checked all the same."""
    found = checks(tmp_path)

    assert found["Python"].verdict is Verdict.OK
    assert slugs(found["project"]) == ["no-project"]


class TestTheLedger:
    """It is read, and its lease taken and given back."""

    def test_one_that_is_there(self, root: Path) -> None:
        """Afterwards the lease is free."""
        book = api.ledger(api.open_project(root))
        book.acquire("one")
        book.close()
        found = checks(root)["ledger"]

        assert found.verdict is Verdict.OK
        assert "no run yet; its lease was taken and given back" in found.found
        book.acquire("two")
        book.close()

    def test_a_run_that_is_at_work_is_no_fault(self, root: Path) -> None:
        """Its lease stays its own."""
        book = api.ledger(api.open_project(root))
        book.acquire("one")
        found = checks(root)["ledger"]

        assert found.verdict is Verdict.OK
        assert "a run is at work in it" in found.found
        book.close()

    def test_what_is_no_ledger(self, root: Path) -> None:
        """Another file in its place is named."""
        (root / ".infold").mkdir(exist_ok=True)
        (root / ".infold" / "ledger.db").write_text("not a database, but long enough " * 50)

        assert slugs(checks(root)["ledger"]) == ["not-a-ledger"]


def test_a_warehouse_that_cannot_be_written(root: Path) -> None:
    """A file is where the folder would be."""
    (root / "warehouse").write_text("a file")

    assert slugs(checks(root)["warehouse"]) == ["system-refused"]


def test_a_source_whose_folder_is_missing(root: Path) -> None:
    """It is named."""
    (root / "landing").rename(root / "elsewhere")

    assert slugs(checks(root)["source raw.clicks"]) == ["no-such-folder"]


def test_a_source_without_files(root: Path) -> None:
    """That is no fault: they may yet come."""
    for file in (root / "landing" / "clicks").iterdir():
        file.unlink()
    found = checks(root)["source raw.clicks"]

    assert (found.verdict, found.found) == (Verdict.OK, "0 files, 0 bytes: nothing to read")
