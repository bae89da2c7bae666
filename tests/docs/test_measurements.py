"""The page of measurements keeps what was measured elsewhere; the cases' projects can be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from bench import project, run, scale, versus_sqlmesh

from infold.declare.load import load

PAGE = Path(run.__file__).parent / "RESULTS.md"


def test_a_case_measured_here_replaces_its_own_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A measured case replaces its own section; the others stay as they are."""
    monkeypatch.setattr(run, "DATA", tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    assert run.report(page) == page
    line = {"what": "one", "value": 2.0, "target": 3.0, "unit": "x", "detail": "made up"}
    kept = {"scale": 0.5, "repeats": 1, "machine": {"cores": "64"}, "lines": [line]}
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "c.json").write_text(json.dumps(kept), encoding="utf-8")

    written = run.report(page)

    assert "`make bench BENCH=c SCALE=0.5`" in written
    assert "made up" in written
    assert "cores 64 / cores" in written
    old, new = (
        {found[1]: found[0] for found in run.SECTION.finditer(text)} for text in (page, written)
    )
    assert list(new) == list(old)
    assert {name for name in old if old[name] != new[name]} == {"c"}


LAID_OUT: Mapping[str, Callable[[Path], object]] = {
    "project": project.lay_out,
    "scale": lambda root: scale.lay_out(root, models=50),
    "versus_sqlmesh": versus_sqlmesh.lay_out,
}
"""Writes the project of a module's cases into a folder."""


@pytest.mark.parametrize("name", LAID_OUT)
def test_projects_of_cases_have_no_mistakes(tmp_path: Path, name: str) -> None:
    """Nobody runs the long cases with each change: what has become a mistake is found here."""
    root = tmp_path / name
    LAID_OUT[name](root)
    models = {file.stem for file in (root / "models").iterdir()}

    assert models
    assert {node.name for node in load(root)} >= models
