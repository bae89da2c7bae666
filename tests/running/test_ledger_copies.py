"""`infold ledger`: a project goes on with its ledger elsewhere, or with one from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.running.commands import infold, said
from tests.running.standing_tables import NAMES, folders, leased, tables

from infold import api
from infold.core.project import Project
from infold.core.target import Target

TO = "sqlite:///elsewhere/new.db"


def written(project: Project, url: str) -> Project:
    """The same project, with another ledger named in infold.yml."""
    file = project.root / "infold.yml"
    text = file.read_text(encoding="utf-8").partition("targets:")[0]
    text += f"targets:\n  {project.target.name}: {{ledger: '{url}'}}\n"
    file.write_text(text, encoding="utf-8")
    return api.open_project(project.root, project.target.name)


def seen(project: Project) -> object:
    """What is known of the tables, and what a run would do."""
    return api.status(project), api.make_plan(project, api.observe(project, as_of=1)).steps


class TestCopy:
    """The target goes on with the copy, and with nothing else."""

    def test_the_tables_are_known_to_the_copy(self, shop: Project) -> None:
        """As they were to the original; it says what was copied, and how the target is to name it.
        A relative place is the project's, as in infold.yml.
        """
        before = seen(shop)

        output = said(shop, "ledger", "copy", TO)

        rows = output.partition(" rows in")[0].rpartition(" ")[2]
        assert output == (
            f"Copied the ledger of dev, {rows} rows in 29 tables, and compared what was written.\n"
            "\n"
            f"  from:  {Target('dev').ledger}\n"
            f"  to:    {TO}\n"
            "\n"
            "Now name it in infold.yml, wherever the target is used:\n"
            "\n"
            "  dev:\n"
            f"    ledger: {TO}\n"
            "\n"
            "Until then every run of dev is refused: the ledger that was copied is closed.\n"
            "Keep it, as a backup, until the first run with the copy is done.\n"
        )
        assert (shop.root / "elsewhere" / "new.db").exists()
        after = written(shop, TO)
        assert seen(after) == before
        assert {run.id for run in api.history(after)} == {"r1"}

    def test_nobody_goes_on_with_the_original(self, shop: Project, tmp_path: Path) -> None:
        """It says where the copy is; a teardown would drop tables that the copy tells of. What the
        original has can still be exported, and be a ledger again.
        """
        before = seen(shop)
        said(shop, "ledger", "copy", TO, "--json")

        for words in ("status", "plan", "run", "teardown --yes", f"ledger copy {TO}"):
            output = said(shop, *words.split(), code=3)
            assert output.startswith("ledger-moved")
            assert f"copied to:  {TO}" in output
        assert tables(shop) == folders(shop) == set(NAMES)
        put_back(shop, tmp_path / "saved")
        assert seen(shop) == before

    @pytest.mark.parametrize(
        ("words", "slug", "why"),
        [
            (["postgresql://me:secret@host/db"], "ledger-url", "a password is written out"),
            (["postgresql://me:${env:X@host/db"], "ledger-url", "no reference to a secret"),
            (["mysql://host/db"], "ledger-url", "it is none of sqlite:///FILE"),
            (["prod"], "ledger-url", "it is none of sqlite:///FILE"),
            (["sqlite:///${env:HOME}/x.db"], "ledger-url", "it is none of"),
            (["postgresql://${env:NOT_THERE}@host/db"], "secret-missing", "${env:NOT_THERE}"),
            ([TO, "--schema", "mine"], "Usage", "a ledger on a server has a schema"),
            (["postgresql://host/db", "--schema", "a-b"], "Usage", "letters, digits"),
            (["postgresql://host/db", "--schema", "pg_a"], "Usage", "not pg_ at the beginning"),
            ([Target("dev").ledger], "ledger-not-empty", "nothing is written over it"),
        ],
    )
    def test_what_is_refused(self, shop: Project, words: list[str], slug: str, why: str) -> None:
        """Before anything is written; no password is shown."""
        code, output = infold(shop, "ledger", "copy", *words)

        assert code in (2, 3)
        assert output.startswith(slug)
        assert why in output
        assert "secret@" not in output
        assert api.status(shop)

    def test_where_there_is_no_ledger(self, shop: Project) -> None:
        """The key is changed after the copy, and not before."""
        fresh = written(shop, "sqlite:///fresh.db")

        for words in (["copy", TO], ["export", str(shop.root / "saved")]):
            assert said(fresh, "ledger", *words, code=2).startswith("ledger-missing:")
        assert not (shop.root / "fresh.db").exists()
        assert not (shop.root / "saved").exists()


def put_back(shop: Project, file: Path) -> str:
    """The ledger is exported, lost, and made from the file; what the import prints as JSON."""
    output = said(shop, "ledger", "export", str(file))
    assert output.count("\n") == 1
    assert output.startswith("Exported the ledger of dev, ")
    api.ledger(shop).close()
    (shop.root / ".infold" / "ledger.db").unlink()
    return said(shop, "ledger", "import", str(file), "--json")


class TestFile:
    """A target's ledger to a file, and from one."""

    def test_a_lost_ledger_is_put_back(self, shop: Project, tmp_path: Path) -> None:
        """The tables are those that it tells of; a second import writes nothing over."""
        before = api.status(shop)
        file = tmp_path / "saved.jsonl.gz"

        found = json.loads(put_back(shop, file))

        assert (found["from"], found["rows"]["runs"]) == (str(file), 1)
        again = said(shop, "ledger", "import", str(file), code=3)
        assert again.startswith("ledger-not-empty:")
        assert api.status(shop) == before

    def test_an_older_one_is_found_out(self, shop: Project, tmp_path: Path) -> None:
        """A ledger that lacks commits of the tables is refused, wherever it came from."""
        file = tmp_path / "saved"
        said(shop, "ledger", "export", str(file))
        text = file.read_text(encoding="utf-8")
        lines = [line for line in text.splitlines(keepends=True) if '"r1-3"' not in line]
        file.write_text("".join(lines), encoding="utf-8")
        elsewhere = written(shop, TO)

        damaged = said(elsewhere, "ledger", "import", str(file), code=2)
        assert damaged.startswith("ledger-file-damaged:")
        assert said(elsewhere, "plan", code=3).startswith("ledger-behind")

    def test_a_backup_is_always_made(self, shop: Project, tmp_path: Path) -> None:
        """A mistake in a model does not matter, and a run at work is named."""
        (shop.root / "models" / "wrong.sql").write_text("SELEC", encoding="utf-8")
        said(shop, "check", code=2)
        with leased(shop, "r9"):
            assert "Run r9 had its lease" in said(shop, "ledger", "export", str(tmp_path / "x"))
        said(shop, "ledger", "copy", TO)
