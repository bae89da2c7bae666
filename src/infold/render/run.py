"""A run: a line for each step as it ends, and the summary at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from infold.core.plan import Step
from infold.core.record import Receipt
from infold.core.report import RunResult
from infold.messages.errors import InfoldError
from infold.render import formatting

LONGEST = 40
"""So much room is left for the names of models at most."""


def name_width(names: Iterable[str]) -> int:
    """How much room the names of models take in the lines of steps."""
    return min(LONGEST, max((len(name) for name in names), default=0))


def step_line(index: int, step: Step, receipt: Receipt, width: int = 0) -> str:
    """What one step did, in one line of fixed places; names take ``width`` places."""
    facts = [
        f"{receipt.read:,} read",
        f"{receipt.written:,} written",
    ]
    if receipt.removed:
        facts.append(f"{receipt.removed:,} removed")
    if receipt.clamped:
        facts.append(f"{receipt.clamped:,} clamped")
    if receipt.set_aside:
        facts.append(f"{formatting.count(receipt.set_aside, 'row')} set aside")
    cells = formatting.count(receipt.cells_built, "cell")
    if receipt.cells_cut_off:
        cells += f" ({receipt.cells_cut_off:,} cut off)"
    took = formatting.seconds(receipt.seconds)
    return (
        f"{index:>3}. {step.model:<{width}}  {step.action.value:<9}  {took:>10}"
        f"  {cells}, {', '.join(facts)}"
    )


def failed_line(index: int, step: Step, error: InfoldError, width: int = 0) -> str:
    """The line of a step that did not succeed: the slug of the error in place of numbers."""
    name, what = f"{step.model:<{width}}", f"{step.action.value:<9}"
    return f"{index:>3}. {name}  {what}  {'failed':>10}  {error.slug}"


def outcome_lines(result: RunResult) -> list[str]:
    """What failed, what was not tried because of it, and what is up to date all the same."""
    rows = [
        (
            "refused" if failure.refused or failure.misdefined else "failed",
            failure.model or "the run",
            formatting.clip(failure.reason, formatting.WIDTH),
        )
        for failure in result.failures
    ]
    for model, because in result.not_tried:
        why = f"because of {formatting.names(because)}" if because else "the run ended before"
        rows.append(("not tried", model, why))
    if not rows:
        return []
    last = (
        [f"  up to date  {formatting.names(result.up_to_date, most=40)}"]
        if result.up_to_date
        else []
    )
    return [*formatting.columns([("up to date", "", ""), *rows])[1:], *last]


def summary_screen(
    result: RunResult, *, verbose: bool = False, states: bool = False, spark: bool = False
) -> str:
    """
    The summary of a whole run; of one that did nothing, what it could not do.

    ``verbose``: with all counts, and the times of models. ``states``: with the states of models
    before it, as ``verbose`` has them. ``spark``: Spark was started for it.
    """
    outcome = outcome_lines(result)
    if not result.steps:
        head = f"Run {result.run}: {result.state}, nothing was written"
        return "\n\n".join(["\n".join([head, *outcome]), *result.notes])
    took = f"{formatting.seconds(result.seconds)}{', the start of Spark included' if spark else ''}"
    if verbose:
        parts = ["\n".join(_all_counts(result, took))]
    else:
        parts = ["\n".join([f"Run {result.run}: {result.state} in {took}", *_changes(result)])]
    if outcome:
        parts.append("\n".join(["What is up to date, and what is not", *outcome]))
    if result.model_states and (verbose or states):
        from infold.render.status import states_text

        parts.insert(0, states_text(result.model_states))
    if result.notes:
        parts.append("\n".join(dict.fromkeys(result.notes)))
    return "\n\n".join(parts)


def _changes(result: RunResult) -> Iterator[str]:
    """What arrived and changed, in one line, and what was not used."""
    total = result.receipt
    arrived = ""
    if total.arrived or total.files_new or total.files_removed:
        files = _files_text(total)
        arrived = f"{formatting.count(total.arrived, 'row')} arrived"
        arrived += f" {files}; " if files.startswith("in ") else f", {files}; " if files else "; "
    yield f"  {arrived}{total.written:,} written, {total.removed:,} removed"
    if sessions := _sessions_text(total, every=False):
        yield f"  sessions: {sessions}"
    if total.set_aside:
        yield f"  {formatting.count(total.set_aside, 'row')} set aside, {_reasons_text(total)}"
    if total.before_start:
        left_out = formatting.count(total.before_start, "row")
        yield f"  {left_out} left out, dated before their tables begin"
    if total.erased:
        yield f"  {formatting.count(total.erased, 'row')} erased, of persons who were asked to be"
    if total.waiting:
        wait = "waits, as it is" if total.waiting == 1 else "wait, as they are"
        yield f"  {formatting.count(total.waiting, 'row')} {wait} dated in the future"


def _all_counts(result: RunResult, took: str) -> list[str]:
    """Every count of a run, and the time of each model."""
    total = result.receipt
    rows = [
        ("rows arrived", f"{total.arrived:,}", _files_text(total)),
        ("rows read", f"{total.read:,}", _per_arrived_row(total.read, total.arrived)),
        ("rows scanned", f"{total.scanned:,}", _per_arrived_row(total.scanned, total.arrived)),
        *_keys_scanned_row(total),
        ("rows written", f"{total.written:,}", f"{total.removed:,} removed"),
        ("rows set aside", f"{total.set_aside:,}", _reasons_text(total)),
        *_before_start_row(total),
        *_erased_row(total),
        ("rows waiting", f"{total.waiting:,}", "dated in the future" if total.waiting else ""),
        ("deduplicated", f"{total.deduplicated:,}", _copies_text(total)),
        ("cells built", f"{total.cells_built:,}", f"{total.cells_cut_off:,} cut off early"),
    ]
    if total.clamped:
        rows.append(("clamped", f"{total.clamped:,}", "came out in cells that were not asked for"))
    if _sessions_text(total):
        rows.append(("sessions", "", _sessions_text(total)))
    rows.append(("commits", f"{total.commits:,}", ""))
    rows.extend(
        (
            ("time" if i == 0 else ""),
            formatting.seconds(receipt.seconds),
            _model_text(model, steps, receipt, total),
        )
        for i, (model, steps, receipt) in enumerate(_receipts_by_model(result))
    )
    seconds, _, start = took.partition(", ")
    rows.append(("", seconds, f"in all{', ' if start else ''}{start}"))
    head = f"Summary of run {result.run}: {result.state}"
    return [head, *formatting.columns(rows, right=(1,))]


def amplification(total: Receipt) -> tuple[float | None, float | None]:
    """Rows read, and rows scanned, for each row that arrived; None when none arrived."""
    if not total.arrived:
        return None, None
    return total.read / total.arrived, total.scanned / total.arrived


def _per_arrived_row(rows: int, arrived: int) -> str:
    return f"{rows / arrived:.2f} per arrived row" if arrived else ""


def _receipts_by_model(result: RunResult) -> list[tuple[str, int, Receipt]]:
    """Each model once, in the order of their first steps: how many there were, and their sum."""
    by_model: dict[str, tuple[int, Receipt]] = {}
    for step, receipt in result.steps:
        steps, before = by_model.get(step.model, (0, Receipt()))
        by_model[step.model] = (steps + 1, before + receipt)
    return [(model, steps, receipt) for model, (steps, receipt) in by_model.items()]


def _model_text(model: str, steps: int, receipt: Receipt, total: Receipt) -> str:
    """A model and its own ratios: what it read for each row that arrived in the run."""
    name = f"{model} in {steps:,} steps" if steps > 1 else model
    if not total.arrived:
        return name
    read, scanned = receipt.read / total.arrived, receipt.scanned / total.arrived
    return f"{name}: {read:.2f} read, {scanned:.2f} scanned per arrived row"


def _files_text(total: Receipt) -> str:
    parts = [f"in {formatting.count(total.files_new, 'new file')}"] if total.files_new else []
    if total.files_removed:
        parts.append(f"{formatting.count(total.files_removed, 'file')} taken out")
    parts.append(formatting.folders(total.folders_listed, total.folders_left_out))
    return ", ".join(filter(None, parts))


def _reasons_text(total: Receipt) -> str:
    reasons = ", ".join(f"{reason} {rows:,}" for reason, rows in total.set_aside_by)
    return f"not usable: {reasons}" if reasons else ""


def _copies_text(total: Receipt) -> str:
    if not total.deduplicated:
        return ""
    parts = [f"{total.conflicting:,} of them conflicting"]
    if total.elsewhere:
        parts.append(f"{total.elsewhere:,} at another time than the one kept")
    return ", ".join(parts)


def _before_start_row(total: Receipt) -> list[tuple[str, str, str]]:
    """What starts left out; a line for projects in which they did."""
    if not total.before_start:
        return []
    return [
        ("before start", f"{total.before_start:,}", "left out, dated before their tables begin")
    ]


def _erased_row(total: Receipt) -> list[tuple[str, str, str]]:
    """Rows of persons who were asked to be erased; a line for runs that had some."""
    return [("erased", f"{total.erased:,}", "of files and of events")] if total.erased else []


def _keys_scanned_row(total: Receipt) -> list[tuple[str, str, str]]:
    """What looking for copies at any time cost; a line for projects that do so."""
    if not total.keys_scanned:
        return []
    return [("keys scanned", f"{total.keys_scanned:,}", "of these, for copies at other times")]


def _sessions_text(total: Receipt, *, every: bool = True) -> str:
    """How sessions changed; with ``every`` count, or those that are not zero."""
    counts: tuple[tuple[str, int], ...] = (
        ("new", total.sessions_new),
        ("extended", total.sessions_extended),
        ("merged", total.sessions_merged),
        ("split", total.sessions_split),
        ("removed", total.sessions_removed),
    )
    if total.sessions_quarantined:
        counts += (("put into quarantine", total.sessions_quarantined),)
    if not any(number for _, number in counts):
        return ""
    return ", ".join(f"{number:,} {name}" for name, number in counts if number or every)
