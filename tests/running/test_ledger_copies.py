"""`infold ledger`: a project goes on with its ledger elsewhere, or with one from a file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.running.commands import infold
from tests.running.standing_tables import NAMES, folders, stand_up, tables

from infold import api
from infold.core.project import Project
from infold.core.target import Target
from infold.ledger import open_ledger

TO = "sqlite:///elsewhere/new.db"


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """Three tables, each built once."""
    return stand_up(tmp_path / "shop")


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

    def test_what_it_prints(self, shop: Project) -> None:
        """What was copied, and how the target is to name it."""
        code, output = infold(shop, "ledger", "copy", TO)

        assert code == 0
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

    def test_the_tables_are_known_to_the_copy(self, shop: Project) -> None:
        """As they were to the original."""
        before = seen(shop)

        assert infold(shop, "ledger", "copy", TO, "--json")[0] == 0

        after = written(shop, TO)
        assert seen(after) == before
        assert {run.id for run in api.history(after)} == {"r1"}

    @pytest.mark.parametrize(
        "words",
        [["status"], ["plan"], ["run"], ["teardown", "--yes"], ["ledger", "copy", TO]],
        ids=lambda words: words[0],
    )
    def test_nobody_goes_on_with_the_original(self, shop: Project, words: list[str]) -> None:
        """It says where the copy is; a teardown would drop tables that the copy tells of."""
        infold(shop, "ledger", "copy", TO)

        code, output = infold(shop, *words)

        assert code == 3
        assert output.startswith("ledger-moved")
        assert f"copied to:  {TO}" in output
        assert tables(shop) == folders(shop) == set(NAMES)

    def test_a_lost_copy(self, shop: Project) -> None:
        """What the original has can still be exported, and be a ledger again."""
        before = seen(shop)
        infold(shop, "ledger", "copy", TO)
        saved = str(shop.root / "saved")

        assert infold(shop, "ledger", "export", saved)[0] == 0
        api.ledger(shop).close()
        (shop.root / ".infold" / "ledger.db").unlink()
        assert infold(shop, "ledger", "import", saved)[0] == 0

        assert seen(shop) == before

    def test_a_copy_that_another_made_before(self, shop: Project) -> None:
        """What a call did that was killed before it closed the original."""
        (shop.root / "elsewhere").mkdir()
        api.ledger(shop).close()
        shutil.copy(shop.root / ".infold" / "ledger.db", shop.root / "elsewhere" / "new.db")

        code, output = infold(shop, "ledger", "copy", TO)

        assert code == 0
        assert output.startswith("The copy was there already")
        assert infold(shop, "plan")[1].startswith("ledger-moved")

    @pytest.mark.parametrize(
        ("words", "slug", "said"),
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
    def test_what_is_refused(self, shop: Project, words: list[str], slug: str, said: str) -> None:
        """Before anything is written; no password is shown."""
        code, output = infold(shop, "ledger", "copy", *words)

        assert code in (2, 3)
        assert output.startswith(slug)
        assert said in output
        assert "secret@" not in output
        assert api.status(shop)

    def test_where_there_is_no_ledger(self, shop: Project) -> None:
        """The key is changed after the copy, and not before."""
        fresh = written(shop, "sqlite:///fresh.db")

        for words in (["copy", TO], ["export", str(shop.root / "saved")]):
            code, output = infold(fresh, "ledger", *words)
            assert (code, output.partition(":")[0]) == (2, "ledger-missing")
        assert not (shop.root / "fresh.db").exists()
        assert not (shop.root / "saved").exists()


class TestFile:
    """A target's ledger to a file, and from one."""

    def test_a_lost_ledger_is_put_back(self, shop: Project, tmp_path: Path) -> None:
        """The tables are those that it tells of."""
        before = api.status(shop)
        file = tmp_path / "saved.jsonl.gz"
        code, output = infold(shop, "ledger", "export", str(file))
        assert (code, output.count("\n")) == (0, 1)
        assert output.startswith("Exported the ledger of dev, ")
        api.ledger(shop).close()
        (shop.root / ".infold" / "ledger.db").unlink()

        code, output = infold(shop, "ledger", "import", str(file), "--json")

        assert code == 0
        assert json.loads(output)["from"] == str(file)
        assert json.loads(output)["rows"]["runs"] == 1
        assert api.status(shop) == before

    def test_an_older_one_is_found_out(self, shop: Project, tmp_path: Path) -> None:
        """A ledger that lacks commits of the tables is refused, wherever it came from."""
        file = tmp_path / "saved"
        infold(shop, "ledger", "export", str(file))
        text = file.read_text(encoding="utf-8")
        lines = [line for line in text.splitlines(keepends=True) if '"r1-3"' not in line]
        file.write_text("".join(lines), encoding="utf-8")
        elsewhere = written(shop, TO)

        code, output = infold(elsewhere, "ledger", "import", str(file))

        assert (code, output.partition(":")[0]) == (2, "ledger-file-damaged")
        assert infold(elsewhere, "plan")[1].startswith("ledger-behind")

    def test_a_mistake_in_a_model_does_not_matter(self, shop: Project, tmp_path: Path) -> None:
        """A backup is made all the same."""
        (shop.root / "models" / "wrong.sql").write_text("SELEC", encoding="utf-8")
        assert infold(shop, "check")[0] == 2

        assert infold(shop, "ledger", "export", str(tmp_path / "saved"))[0] == 0
        assert infold(shop, "ledger", "copy", TO)[0] == 0

    def test_a_run_at_work(self, shop: Project, tmp_path: Path) -> None:
        """It is named."""
        book = api.ledger(shop)
        book.acquire("r9")

        assert "Run r9 had its lease" in infold(shop, "ledger", "export", str(tmp_path / "x"))[1]
        book.release()

    def test_files_that_are_not_there(self, shop: Project) -> None:
        """No folder to write to, nothing to read."""
        for words in (["export", "no/where"], ["import", "nothing"]):
            code, output = infold(shop, "ledger", *words)
            assert code == 2
            assert "Traceback" not in output
        assert infold(shop, "ledger", "import", str(shop.root / "infold.yml"))[1].startswith(
            "not-a-ledger-file"
        )

    def test_it_is_made_once(self, shop: Project, tmp_path: Path) -> None:
        """Nothing is written over."""
        infold(shop, "ledger", "export", str(tmp_path / "saved"))

        code, output = infold(shop, "ledger", "import", str(tmp_path / "saved"))

        assert (code, output.partition(":")[0]) == (3, "ledger-not-empty")
        assert api.status(shop)


def test_relative_places_are_the_projects(shop: Project) -> None:
    """As in infold.yml."""
    infold(shop, "ledger", "copy", TO)

    assert open_ledger(TO, shop.root).runs()
    assert (shop.root / "elsewhere" / "new.db").exists()
