"""The error pages show what `infold check` prints, and a model that it accepts instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.analysis.rules.cases import cases
from tests.docs.error_examples import Pair, message, pages, pairs, project
from tests.messages.every import MESSAGES, rendered

from infold.cli import cli


def test_the_pages_are_current() -> None:
    """`make docs` writes the examples, with the messages as they are printed."""
    old = [path.name for path, text in pages() if path.read_text(encoding="utf-8") != text]

    assert old == [], "run: python -m tests.docs.error_examples"


def test_every_refusal_of_a_query_has_an_example() -> None:
    """Every slug of `messages/refusals.py`, and of the queries of the rules, has a pair."""
    refused = {slug for case in cases() for slug, _ in case.refused}
    refused |= {rendered(name).slug for name in MESSAGES if name.startswith("refusals.")}

    assert refused - {pair.slug for pair in pairs()} == set()


def test_every_shown_case_is_half_of_a_pair() -> None:
    """A refused model comes first, then the accepted one that replaces it."""
    for pair in pairs():
        assert pair.refused.refused
        assert not pair.accepted.refused
        assert pair.refused.file == pair.accepted.file


@pytest.mark.deep
@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: f"{pair.slug}-{pair.refused.line}")
def test_check_refuses_the_first_and_accepts_the_second(pair: Pair, tmp_path: Path) -> None:
    """`infold check` refuses the first model of each pair on the pages and accepts the second."""
    for name, case in (("refused", pair.refused), ("accepted", pair.accepted)):
        for file, text in project(case).items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    refused = CliRunner().invoke(cli, ["-C", str(tmp_path / "refused"), "check"])
    accepted = CliRunner().invoke(cli, ["-C", str(tmp_path / "accepted"), "check"])

    assert refused.exit_code == 2
    assert message(pair) in refused.output
    assert accepted.exit_code == 0, accepted.output
