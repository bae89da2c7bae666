"""Projects of other tools, written file by file, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from infold.declare.load import check
from infold.importing import reader_of
from infold.importing.draft import Line, Outcome
from infold.importing.fit import Fitted, fit, place


@dataclass(frozen=True)
class Imported:
    """The files that were written, by name, and the report."""

    root: Path
    fitted: Fitted

    def text(self, file: str) -> str:
        """A file."""
        return self.fitted.files[file].decode()

    def front(self, model: str) -> list[str]:
        """The lines of a model's front matter."""
        return self.text(f"models/{model}.sql").split("---\n")[1].splitlines()

    def query(self, model: str) -> str:
        """A model's query on one line."""
        return " ".join(self.text(f"models/{model}.sql").split("---\n", 2)[2].split())

    def lines(self, what: str) -> list[Line]:
        """What the report says of a part."""
        return [line for line in self.fitted.lines if line.what == what]

    def why(self, what: str, outcome: Outcome) -> str:
        """The reasons for an outcome, as one text."""
        return "; ".join(line.why for line in self.lines(what) if line.outcome is outcome)

    def outcomes(self, what: str) -> set[Outcome]:
        """What became of a part."""
        return {line.outcome for line in self.lines(what)}


Import = Callable[..., Imported]


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    """
    Import a project that is given as texts by file names.

    The result passes `infold check`: whatever a test is about, that is asserted here.
    """

    def run(tool: str, files: Mapping[str, str], dialect: str = "") -> Imported:
        theirs, ours = tmp_path / "shop", tmp_path / "shop_infold"
        place({name: dedent(text).lstrip("\n").encode() for name, text in files.items()}, theirs)
        fitted = fit(reader_of(tool)(theirs, dialect), tool, check)
        place(fitted.files, ours)
        (ours / "models").mkdir(exist_ok=True)

        assert [str(error) for error in check(ours)] == []
        assert fitted.findings == ()
        return Imported(ours, fitted)

    return run
