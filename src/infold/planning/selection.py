"""
What a command was asked for: models by terms, and event times by ``--start`` and ``--end``.

A range is half-open, and whole cells only: an end inside a cell would leave half of the cell
unbuilt, or build more than was asked for. So it is refused with the nearest instants that fit. It
bounds the cells of models that are built cell by cell, so it has to fit those models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from infold.core.interval import (
    MAX,
    MIN,
    Granularity,
    Interval,
    Ranges,
    parse_instant_text,
    show_instant,
)
from infold.core.plan import PlanOptions
from infold.core.project import Project
from infold.messages import command_errors
from infold.messages.errors import InfoldError


def parse_window(
    project: Project, names: Iterable[str], start: str | None, end: str | None
) -> Interval | None:
    """The window as asked for, open where an end was not given; None when neither was."""
    if start is None and end is None:
        return None
    first = MIN if start is None else _parsed_end("--start", start)
    last = MAX if end is None else _parsed_end("--end", end)
    if first >= last:
        raise command_errors.window_empty(str(start), str(end))
    chosen = frozenset(names)
    cells = {
        node.name: node.model.granularity
        for node in project
        if node.name in chosen and node.model.kind.is_by_cell
    }
    if start is not None:
        _refuse_inside("--start", first, cells)
    if end is not None:
        _refuse_inside("--end", last, cells)
    return Interval(first, last)


def parse_as_of(text: str | None) -> int | None:
    """The instant of ``--as-of``; None when it was not given."""
    return parse_instant("--as-of", text)


def parse_instant(option: str, text: str | None) -> int | None:
    """The instant of an option or argument; None when it was not given."""
    return None if text is None else _parsed_end(option, text)


def is_instant(text: str) -> bool:
    """Whether a text says a date or time."""
    try:
        parse_instant_text(text)
    except ValueError:
        return False
    return True


def _parsed_end(option: str, text: str) -> int:
    try:
        return parse_instant_text(text)
    except ValueError:
        raise command_errors.not_an_instant(option=option, text=text) from None


def _refuse_inside(option: str, at: int, cells: Mapping[str, Granularity | None]) -> None:
    """Refuse an end that is inside a cell of any model, and name all of these."""
    nearest = {
        name: (
            granularity.value,
            show_instant(granularity.cell(at).start),
            show_instant(granularity.cell(at).end),
        )
        for name, granularity in cells.items()
        if granularity is not None and not granularity.aligned(at)
    }
    if nearest:
        raise command_errors.window_unaligned(option, show_instant(at), nearest)


# Late rows, changed definitions and changed lookups need none of this: they are detected. Building
# again is for what infold cannot see, such as a function with a new meaning. A cell with the same
# result is no change, and nothing downstream of it is built.


@dataclass(frozen=True, slots=True)
class RestateRequest:
    """What is asked for, and the models that were named but are skipped, with reasons."""

    options: PlanOptions
    skipped: tuple[tuple[str, str], ...] = ()


def restate(project: Project, terms: Sequence[str], window: Interval | None) -> RestateRequest:
    """
    Build the models of some terms again: cells of a window, or all; then what follows from changes.

    A window applies to models that are built cell by cell; others named are skipped.
    """
    ranges = Ranges.ever() if window is None else Ranges((window,))
    names = _with_table(project, select_models(project, terms))
    restated = {name: ranges for name in names if window is None or _is_by_cell(project, name)}
    skipped = tuple(
        (name, "a window bounds no model of its kind") for name in sorted(names - restated.keys())
    )
    readers = names | project.downstream(names)
    within = {} if window is None else restated
    return RestateRequest(
        PlanOptions(selected=frozenset(readers), restated=restated, build_missing_in=within),
        skipped,
    )


def backbuild(project: Project, terms: Sequence[str], window: Interval) -> RestateRequest:
    """
    Build models over a window again, and what they read for it, upstream first.

    Each model upstream is built again over the union of the ranges that its readers read. Folded
    tables follow their files at any time, and are only brought up to date.
    """
    targets = _with_table(
        project, select_models(project, [term.removeprefix("+") for term in terms])
    )
    ranges = dict.fromkeys(targets, Ranges((window,)))
    for node in reversed(project.nodes):
        if node.name not in ranges:
            continue
        for entry in node.inputs:
            if entry.name in project:
                times = ranges[node.name]
                read = Ranges.ever() if entry.time_column is None else entry.times_read(times)
                ranges[entry.name] = ranges.get(entry.name, Ranges()) | read
    restated = {name: cells for name, cells in ranges.items() if _is_by_cell(project, name)}
    names = frozenset(ranges)
    skipped = tuple(
        (name, "it is brought up to date, not built again")
        for name in sorted(names - restated.keys())
    )
    return RestateRequest(
        PlanOptions(selected=names, restated=restated, build_missing_in=restated), skipped
    )


def _with_table(project: Project, names: Iterable[str]) -> frozenset[str]:
    """Those that have a table; a view has nothing to build."""
    return frozenset(name for name in names if project[name].model.kind.is_stored)


def _is_by_cell(project: Project, name: str) -> bool:
    return project[name].model.kind.is_by_cell


# A term is a model's name or a glob (`stg_*`), or `tag:NAME` (a glob too); a `+` before it adds
# everything it depends on, a `+` after it everything that depends on it. Terms add up. `--exclude`
# wins over any selection.


def select_models(
    project: Project, select: Sequence[str] = (), exclude: Sequence[str] = ()
) -> frozenset[str]:
    """The names of the models that are meant: all of them when nothing is selected."""
    every = frozenset(node.name for node in project)
    included = _models_of_terms(project, select) if select else every
    return included - _models_of_terms(project, exclude)


def with_landed(
    project: Project, names: frozenset[str], exclude: Sequence[str] = ()
) -> frozenset[str]:
    """
    Models with the landed sources that they read, directly or through views.

    Nobody thinks of a source as something to be built, so who names a model means its rows too.
    """
    reads = {entry.name for node in project if node.name in names for entry in node.stored_inputs}
    landed = {node.name for node in project if node.landed and node.name in reads}
    return names | (landed - _models_of_terms(project, exclude))


def _models_of_terms(project: Project, terms: Sequence[str]) -> frozenset[str]:
    """All models that any term names; a term may list several, with commas between them."""
    names = [name.strip() for term in terms for name in term.split(",")]
    return frozenset().union(*(_models_of_term(project, name) for name in names if name))


def _models_of_term(project: Project, term: str) -> frozenset[str]:
    """The models that one term names; never empty."""
    bare = term.removeprefix("+").removesuffix("+")
    if bare.startswith("tag:"):
        models = _models_with_tag(project, bare.removeprefix("tag:"))
    else:
        models = frozenset(
            node.name for node in project if fnmatchcase(node.name.lower(), bare.lower())
        )
        if not models:
            raise unknown_model(project, bare)
    before = project.upstream(models) if term.startswith("+") else frozenset()
    after = project.downstream(models) if term.endswith("+") else frozenset()
    return models | before | after


def unknown_model(project: Project, name: str) -> InfoldError:
    """No model has this name; one in the files may have it, and not be applied."""
    error = command_errors.unknown_model(name, [node.name for node in project])
    return with_unapplied(error, project, name)


def with_unapplied(error: InfoldError, project: Project, name: str) -> InfoldError:
    """An error about an unknown name, which also says that a model in the files has it."""
    if name in project.unapplied:
        apply = f"{project.target.command} apply {name}"
        return error.with_facts(("not applied", f"{name}: `{apply}` applies it"))
    return error


def _models_with_tag(project: Project, tag: str) -> frozenset[str]:
    models = frozenset(
        node.name for node in project if any(fnmatchcase(known, tag) for known in node.model.tags)
    )
    if not models:
        raise command_errors.unknown_tag(
            tag, sorted({tag for node in project for tag in node.model.tags})
        )
    return models
