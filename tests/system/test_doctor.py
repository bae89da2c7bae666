"""What `infold doctor` says of targets to which something was done; nothing here starts Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from infold import api
from infold.api.doctor import examine
from infold.cli import cli
from infold.core.report import Check, CheckVerdict
from infold.spark.jvm import java

NO_JAVA = {"PATH": "/nowhere", "JAVA_HOME": ""}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project, on a machine without Java."""
    for name, value in NO_JAVA.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(java, "PACKAGE", "no_such_package")
    folder = tmp_path / "shop"
    CliRunner().invoke(cli, ["init", str(folder)])
    return folder


def checks(root: Path, target: str | None = None) -> Mapping[str, Check]:
    """What was checked, by name."""
    return {check.name: check for check in examine(root, target)}


def slugs(root: Path, name: str, target: str | None = None) -> list[str]:
    """The errors of a check."""
    return [error.slug for error in checks(root, target)[name].errors]


def test_all_else_is_checked_without_java(root: Path) -> None:
    """Spark is left out, and what needs it. No ledger and no table is made."""
    found = checks(root)

    others = {
        name: check.verdict for name, check in found.items() if check.verdict != CheckVerdict.OK
    }
    assert others == {"Java": CheckVerdict.FAILED} | dict.fromkeys(
        ("Spark", "catalog", "clocks"), CheckVerdict.LEFT_OUT
    )
    right = ["Python", "project", "ledger", "warehouse", "tables", "source raw.clicks"]
    assert [name for name in found if name not in others] == right
    assert [error.slug for error in found["Java"].errors] == ["java-missing"]
    assert found["source raw.clicks"].found.startswith("2 files, ")
    assert not (root / "warehouse").exists()
    assert sorted(path.name for path in (root / ".infold").iterdir()) == ["project.json"]


def test_it_ends_with_1_and_every_error(root: Path) -> None:
    """A line for each check, then what to do about those that failed; the same for programs."""
    doctor = ["-C", str(root), "doctor"]
    done = CliRunner().invoke(cli, doctor)
    as_json = CliRunner().invoke(cli, [*doctor, "--json"])

    assert done.exit_code == as_json.exit_code == 1
    shown = ("failed    Java       ", "left out  Spark      needs Java", "Failed: Java.")
    assert [line for line in (*shown, "java-missing: ") if line not in done.output] == []
    found = json.loads(as_json.stdout)
    assert found["ok"] is False
    by_name = {check["name"]: check for check in found["checks"]}
    assert by_name["Java"]["errors"][0]["slug"] == "java-missing"
    same = {"name": "ledger", "found": "", "seconds": 0}
    assert by_name["ledger"] | same == {**same, "verdict": "ok", "errors": []}


def test_a_project_with_mistakes(root: Path) -> None:
    """All of them are shown; a target cannot be known."""
    (root / "models" / "wrong.sql").write_text("SELECT 1 AS x FROM nowhere\n")
    (root / "models" / "wrong_too.sql").write_text("---\nkind: tabel\n---\nSELECT 1 AS x\n")
    found = checks(root)

    assert list(found) == ["Python", "Java", "project"]
    assert len(found["project"].errors) >= 2


def test_no_project(root: Path, tmp_path: Path) -> None:
    """Python and Java are checked all the same. An unknown target is named."""
    assert checks(tmp_path)["Python"].verdict is CheckVerdict.OK
    assert slugs(tmp_path, "project") == ["no-project"]
    assert slugs(root, "project", "prod") == ["unknown-target"]


def test_the_lease_of_a_ledger(root: Path) -> None:
    """It is taken and given back; that of a run that is at work stays its own, and is no fault."""
    book = api.ledger_of(api.open_project(root))
    for run in ("one", "two"):
        book.acquire(run)
        at_work = checks(root)["ledger"]
        book.close()
        free = checks(root)["ledger"]

        assert at_work.verdict is free.verdict is CheckVerdict.OK
        assert "a run is at work in it" in at_work.found
        assert "no run yet; its lease was taken and given back" in free.found


def test_what_is_not_as_it_should_be(root: Path) -> None:
    """Another file in the place of ledger or warehouse, a missing folder; no files may yet come."""
    (root / ".infold").mkdir(exist_ok=True)
    (root / ".infold" / "ledger.db").write_text("not a database, but long enough " * 50)
    (root / "warehouse").write_text("a file")
    for file in (root / "landing" / "clicks").iterdir():
        file.unlink()

    assert slugs(root, "ledger") == ["not-a-ledger"]
    assert slugs(root, "warehouse") == ["system-refused"]
    found = checks(root)["source raw.clicks"]
    assert (found.verdict, found.found) == (CheckVerdict.OK, "0 files, 0 bytes: nothing to read")
    (root / "landing").rename(root / "elsewhere")
    assert slugs(root, "source raw.clicks") == ["no-such-folder"]
