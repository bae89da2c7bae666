"""What ``infold ledger`` prints: what was copied, and what is to be done then."""

from __future__ import annotations

from typing import Any

from infold.core.report import LedgerCopy
from infold.render.formatting import count


def copied_screen(target: str, done: LedgerCopy, url: str, schema: str, had_schema: str) -> str:
    """What ``infold ledger copy`` did; a ``schema`` was given to it, the target has another."""
    said = (
        "The copy was there already, and is as the ledger: nothing was written to it."
        if done.again
        else f"Copied the ledger of {target}, {_rows(done)}, and compared what was written."
    )
    lines = [said, "", f"  from:  {done.from_}", f"  to:    {done.to}", ""]
    lines += ["Now name it in infold.yml, wherever the target is used:", ""]
    lines += [f"  {target}:", f"    ledger: {url}"]
    if schema:
        lines.append(f"    ledger_schema: {schema}")
    elif had_schema and "schema " not in done.to:
        lines.append("    (without ledger_schema)")
    lines += [
        "",
        f"Until then every run of {target} is refused: the ledger that was copied is closed.",
    ]
    lines.append("Keep it, as a backup, until the first run with the copy is done.")
    return "\n".join(lines)


def exported_screen(target: str, done: LedgerCopy) -> str:
    """What ``infold ledger export`` did."""
    said = f"Exported the ledger of {target}, {_rows(done)}, to {done.to}."
    if done.working:
        said += (
            f"\nRun {done.working} had its lease: the file goes with tables of this very moment, "
            "and no others.\nTo make a backup, export while no run is working."
        )
    return said


def imported_screen(target: str, done: LedgerCopy) -> str:
    """What ``infold ledger import`` did."""
    return (
        f"Made the ledger of {target} of {done.from_}: {_rows(done)}, compared after they were "
        "written.\nThe next run finds out whether the tables are those that it tells of."
    )


def ledger_copy_json(done: LedgerCopy) -> dict[str, Any]:
    """The same for programs."""
    return {
        "from": done.from_,
        "to": done.to,
        "rows": dict(done.rows),
        "again": done.again,
        "working": done.working or None,
    }


def _rows(done: LedgerCopy) -> str:
    rows = count(sum(done.rows.values()), "row")
    return f"{rows} in {count(len(done.rows), 'table')}"
