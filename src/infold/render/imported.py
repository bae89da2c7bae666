"""What became of an imported project: a screen with the counts, and a page with every line."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from infold.importing.draft import Line, Outcome, counts, in_order
from infold.render.formatting import count

_SHOWN = 40
"""Of each outcome so many lines are on the screen; the page has all."""

_NEXT = """
Every line is in {folder}/import-report.md. Go on with

  cd {folder}
  infold check           # finds nothing now; look for `to fill in` in infold.yml
  infold check --deep    # once the types are right: Spark types every query"""


def imported_screen(folder: str, files: Collection[str], lines: Sequence[Line]) -> str:
    """The counts of each kind of part, and the lines on which somebody has to look."""
    shown = [f"Wrote {count(len(files) + 1, 'file')} into {folder}.", "", *_counts(lines)]
    for outcome in (Outcome.CHANGED, Outcome.TO_FILL, Outcome.LEFT):
        parts = [line for line in in_order(lines) if line.outcome is outcome]
        if not parts:
            continue
        shown += ["", f"{outcome.value}:"]
        for line in parts[:_SHOWN]:
            shown.append(f"  {line.what}" + (f"  ({line.at})" if line.at else ""))
            shown += [f"    {line.why}"] if line.why else []
        if len(parts) > _SHOWN:
            shown.append(f"  and {len(parts) - _SHOWN} more")
    return "\n".join([*shown, _NEXT.format(folder=folder)])


def _counts(lines: Sequence[Line]) -> list[str]:
    """A table: kinds of parts, and how many ended in which outcome."""
    kinds = counts(lines)
    heads = [outcome.value for outcome in Outcome]
    rows = [[kind, *(str(of.get(head, 0) or "-") for head in heads)] for kind, of in kinds.items()]
    table = [["", *heads], *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(heads) + 1)]
    return [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
            ]
        ).rstrip()
        for row in table
    ]


def report_page(tool: str, name: str, lines: Sequence[Line]) -> str:
    """The report as Markdown, a table for each outcome."""
    page = [f"# {name}, imported from {tool}", ""]
    for outcome in Outcome:
        parts = [line for line in in_order(lines) if line.outcome is outcome]
        if not parts:
            continue
        page += [f"## {outcome.value.capitalize()}", "", "| part | where | why |", "|---|---|---|"]
        page += [f"| {_cell(line.what)} | {_cell(line.at)} | {_cell(line.why)} |" for line in parts]
        page.append("")
    return "\n".join(page)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
