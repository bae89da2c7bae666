"""What ``infold repair`` prints: table by table what is known, what is done, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from infold.core.report import CheckedTable, Forgotten, LedgerCopy, Repair, RepairReport
from infold.render import formatting
from infold.render.formatting import count
from infold.render.json_shapes import JsonObject

_REPAIR_TEXTS = {
    Repair.KEEP: "stays",
    Repair.SET_BACK: "set back",
    Repair.BUILD: "built again",
    Repair.LEAVE: "left alone",
}
"""What is done about a table, as people read it."""


def _kept_parts(report: RepairReport) -> Iterator[str]:
    """What can be taken over of what the ledger alone knows."""
    if report.entries:
        yield f"{entries_text(report.entries)} in it can be read, and will be taken over."
    if report.requests:
        yield f"It lacks {requests_text(report.requests)}, which their table has."


def repair_screen(report: RepairReport) -> str:
    """What is wrong, and what would be done about it."""
    parts = [f"ledger  {report.ledger}"]
    if report.damage:
        parts.append(f"It is damaged: {report.damage}. It will be put aside, and a new one begun.")
    elif report.aside:
        parts.append(f"A repair that did not end put a damaged one aside: {report.aside}.")
    parts += _kept_parts(report)
    if report.tables:
        lines = [(table.table, _REPAIR_TEXTS[table.repair], table.why) for table in report.tables]
        parts += ["", *formatting.columns(lines, right=[], indent=2)]
    if report.orphans:
        parts += ["", *_orphans(report)]
    if report.lost:
        parts += ["", *report.lost]
    if report.written:
        parts += ["", *_foreign_write_lines(report.written)]
    if report.misnamed:
        names = formatting.names(report.misnamed)
        parts += ["", f"In the metastore, missing or not as the tables are: {names}"]
    elif not (report.changes or report.unrecorded):
        others = "all other" if report.written else "the"
        parts += ["", f"The ledger fits {others} tables: there is nothing to repair."]
    return "\n".join(parts)


def _foreign_write_lines(tables: Sequence[str]) -> list[str]:
    """What there is to do about tables that somebody else wrote to; only a person can decide."""
    what = formatting.names(tables)
    return [
        f"Runs refuse {what}, and what reads from it, as somebody else wrote to it.",
        "Roll the table back to the snapshot before, or have the next run build it again:",
        f"  infold forget {' '.join(tables)}",
    ]


def _orphans(report: RepairReport) -> list[str]:
    is_one = len(report.orphans) == 1
    knows = "Nothing points to this table" if is_one else "Nothing points to these tables"
    how = "--drop-orphans drops " + ("it." if is_one else "them.")
    if report.shared:
        how = (
            f"Another project may have tables in the namespace {report.shared}: "
            "--drop TABLE drops one that is this project's."
        )
    return [f"{knows}, which infold made: {formatting.names(report.orphans)}", how]


def question(report: RepairReport) -> str:
    """What somebody is asked to confirm."""
    parts = []
    if report.damage:
        parts.append("put the damaged ledger aside")
    if report.entries:
        parts.append(f"take over {entries_text(report.entries)} from the damaged ledger")
    if report.requests:
        parts.append(f"take over {requests_text(report.requests)} from their table")
    if back := report.of(Repair.SET_BACK):
        parts.append(f"set {_names(back)} back")
    if rebuilt := report.of(Repair.BUILD):
        parts.append(f"have {_names(rebuilt)} built again")
    if report.swaps:
        parts.append("forget the tables that were replaced")
    if report.unrecorded and not parts:
        parts.append("record what is in the tables")
    if report.dropped:
        parts.append(f"drop {formatting.names(report.dropped)}")
    if report.misnamed:
        parts.append("make the names in the metastore right")
    return ", and ".join(parts)


def repaired_screen(done: RepairReport, infold: str) -> str:
    """What was done; ``infold`` is how commands about the target begin."""
    parts = [""]
    if done.aside:
        parts.append(f"The damaged ledger is {done.aside} now.")
        if done.entries:
            parts.append(f"{entries_text(done.entries)} of it were taken over.")
    if done.requests:
        parts.append(f"{requests_text(done.requests)} were taken over from their table.")
    if done.dropped:
        parts.append(f"Dropped {formatting.names(done.dropped)}.")
    if done.misnamed:
        parts.append(f"Made right in the metastore: {formatting.names(done.misnamed)}.")
    parts.append(f"The ledger fits the tables. `{infold} run` builds what is left to build, and")
    parts.append(f"`{infold} verify` proves the tables equal to a rebuild.")
    return "\n".join(parts)


def repair_json(report: RepairReport) -> JsonObject:
    """What ``infold repair --json`` prints, after it is done or with --dry-run."""
    return {
        "ledger": report.ledger,
        "done": report.done,
        "damage": report.damage or None,
        "put_aside": report.aside or None,
        "entries": report.entries,
        "requests": report.requests,
        "tables": [
            {
                "table": table.table,
                "repair": table.repair.value,
                "why": table.why,
                "unknown_steps": list(table.unknown),
            }
            for table in report.tables
        ],
        "swaps_forgotten": list(report.swaps),
        "orphans": list(report.orphans),
        "orphans_dropped": list(report.dropped),
        "lost": list(report.lost),
        "misnamed": list(report.misnamed),
    }


def _names(tables: tuple[CheckedTable, ...]) -> str:
    return formatting.names([table.table for table in tables])


# The sentences about the manifest are those of Snowplow's packages, which users know.


def forgotten_screen(done: Forgotten) -> str:
    """What ``infold forget`` did."""
    parts = []
    if done.models:
        parts.append(f"Deleted {_models_text(done.models)} from the manifest, and what was stored.")
        parts.append("The next run builds what is still in the project again.")
    if done.missing:
        verb = "does" if len(done.missing) == 1 else "do"
        parts.append(f"{formatting.names(done.missing)} {verb} not exist in the manifest.")
    return "\n".join(parts)


def torn_down_screen(target: str, done: Forgotten) -> str:
    """What ``infold teardown`` did."""
    what = f": {formatting.names(done.models)}" if done.models else ""
    gone = [entries_text(done.entries)] if done.entries else []
    gone += [requests_text(done.requests)] if done.requests else []
    entries = f"{' and '.join(gone)} went with it.\n" if gone else ""
    return (
        f"Dropped {formatting.count(len(done.models), 'table')} and the ledger of {target}{what}.\n"
        f"{entries}The next run is a first run."
    )


def entries_text(number: int) -> str:
    """How many manual entries there are."""
    return formatting.count(number, "manual entry for sessions", "manual entries for sessions")


def requests_text(number: int) -> str:
    """How many requests to erase there are."""
    return formatting.count(number, "request to erase", "requests to erase")


def _models_text(models: tuple[str, ...]) -> str:
    return f"{'model' if len(models) == 1 else 'models'} {formatting.names(models)}"


def ledger_copied_screen(
    target: str, done: LedgerCopy, url: str, schema: str, had_schema: str
) -> str:
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


def ledger_exported_screen(target: str, done: LedgerCopy) -> str:
    """What ``infold ledger export`` did."""
    said = f"Exported the ledger of {target}, {_rows(done)}, to {done.to}."
    if done.working:
        said += (
            f"\nRun {done.working} had its lease: the file goes with tables of this very moment, "
            "and no others.\nTo make a backup, export while no run is working."
        )
    return said


def ledger_imported_screen(target: str, done: LedgerCopy) -> str:
    """What ``infold ledger import`` did."""
    return (
        f"Made the ledger of {target} of {done.from_}: {_rows(done)}, compared after they were "
        "written.\nThe next run finds out whether the tables are those that it tells of."
    )


def ledger_copy_json(done: LedgerCopy) -> dict[str, Any]:
    """What ``infold ledger copy``, ``export`` and ``import`` print with --json."""
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
