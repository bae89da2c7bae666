"""The page of measurements keeps what was measured elsewhere; the cases' projects can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import project, run, scale, versus_sqlmesh

from infold.declare.load import load

PAGE = Path(run.__file__).parent / "RESULTS.md"


def test_nothing_measured_here_leaves_the_page_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page does not change when nothing was measured in this checkout."""
    monkeypatch.setattr(run, "DATA", tmp_path)
    page = PAGE.read_text(encoding="utf-8")

    assert run.report(page) == page


def test_a_case_measured_here_replaces_its_own_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case measured here replaces its own section, and the others keep theirs."""
    monkeypatch.setattr(run, "DATA", tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    line = {"what": "one", "value": 2.0, "target": 3.0, "unit": "x", "detail": "made up"}
    kept = {"scale": 0.5, "repeats": 1, "machine": {"cores": "64"}, "lines": [line]}
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "c.json").write_text(json.dumps(kept), encoding="utf-8")

    written = run.report(page)

    assert "`make bench BENCH=c SCALE=0.5`" in written
    assert "made up" in written
    assert "cores 64 / cores" in written
    old, new = run.SECTION.findall(page), run.SECTION.findall(written)
    assert old == new
    for name in set(old) - {"c"}:
        section = next(found[0] for found in run.SECTION.finditer(page) if found[1] == name)
        assert section in written


MADE = {
    "project": (
        project.PROJECT,
        {"events": project.EVENTS, "sessions": project.SESSIONS, "daily": project.DAILY},
    ),
    "versus_sqlmesh": (
        versus_sqlmesh.PROJECT,
        {name: versus_sqlmesh.OURS.format(sql=sql) for name, sql in versus_sqlmesh.MODELS.items()},
    ),
    "scale": (scale.PROJECT, {"events": scale.EVENTS}),
}
"""What cases write: infold.yml, and its models."""


@pytest.mark.parametrize("name", MADE)
def test_projects_of_cases_have_no_mistakes(tmp_path: Path, name: str) -> None:
    """Nobody runs the long cases with each change: what has become a mistake is found here."""
    declared, models = MADE[name]
    (tmp_path / "models").mkdir()
    (tmp_path / "infold.yml").write_text(declared, encoding="utf-8")
    for model, text in models.items():
        (tmp_path / "models" / f"{model}.sql").write_text(text, encoding="utf-8")

    assert {node.name for node in load(tmp_path)} >= {*models}
