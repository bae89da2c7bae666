"""Audits: steps whose model has five audits of one row, against the same steps without."""

from __future__ import annotations

from functools import partial

from bench import runs
from bench.first_builds import year_of_events
from bench.measure import Clock, Line, Size, alternately, ratio
from bench.project import DAILY, EVENTS, SESSIONS, with_history

from infold import api
from infold.core.project import Project

AUDITS = {
    "events": """
  - not_null: [event_id, user_id, event_ts]
  - accepted_range: {column: amount, min: -1000000, max: 1000000}
  - matches: {column: url, pattern: '^/'}
  - expression: event_ts >= TIMESTAMP '2000-01-01 00:00:00'
  - expression: length(event_id) > 0
    severity: warn
""",
    "sessions": """
  - not_null: [session_id, user_id]
  - accepted_range: {column: events, min: 1}
  - expression: session_end >= session_start
  - matches: {column: entry_url, pattern: '^/'}
  - expression: revenue IS NULL OR revenue > -1000000
    severity: warn
""",
    "daily": """
  - not_null: [day, sessions]
  - accepted_range: {column: sessions, min: 1}
  - expression: events >= sessions
  - accepted_range: {column: day, min: 2000-01-01}
  - expression: revenue IS NULL OR revenue > -1000000
    severity: warn
""",
}
MODELS = {"events": EVENTS, "sessions": SESSIONS, "daily": DAILY}


def five_audits(size: Size) -> list[Line]:
    """Whole builds of events, sessions and days with five audits of one row, and without."""
    root, _ = with_history("u", year_of_events(size))
    for name, text in MODELS.items():
        audited = text.replace("---\n", f"---\naudits:{AUDITS[name]}", 1)
        (root / "models" / f"{name}_audited.sql").write_text(audited)
    runs.run(root)
    project = api.open_project(root)
    return [_line(name, project, size) for name in MODELS]


def _line(name: str, project: Project, size: Size) -> Line:
    """One kind of model, both ways in turns."""
    clocks = {model: Clock() for model in (name, f"{name}_audited")}

    def build(model: str) -> None:
        result = api.restate(project, [model])
        [receipt] = [made for step, made in result.steps if step.model == model]
        clocks[model].add(receipt.seconds)

    both = [partial(build, model) for model in clocks]
    alternately(1, *both)  # not counted: the JVM compiles what is new
    for clock in clocks.values():
        clock.seconds.clear()
    alternately(size.repeats, *both)
    plain, audited = clocks.values()
    return Line(
        f"{name} with five audits of one row, against the same without",
        ratio(audited, plain),
        1.10,
        detail=f"{audited} against {plain}",
    )
