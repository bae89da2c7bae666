"""The page of measurements keeps what was measured on other machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import run

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
