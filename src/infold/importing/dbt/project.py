"""A project of dbt as a draft of infold's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from infold.importing.dbt.audits import audits_of, singular_tests
from infold.importing.dbt.folder import DbtFolder, Properties, read_folder, variables
from infold.importing.dbt.models import read_model
from infold.importing.dbt.seeds import read_seeds
from infold.importing.dbt.snapshots import Snapshot, read_snapshot, snapshots_of
from infold.importing.dbt.sources import Source, read_sources
from infold.importing.dbt.templates import Macro, Names, Templates, macros_in
from infold.importing.dbt.unit_tests import read_unit_tests
from infold.importing.dialects import of_translation
from infold.importing.draft import Draft, DraftModel, project_name
from infold.importing.report import Line, came, left, to_fill
from infold.importing.yaml_lines import Lined, as_list


@dataclass(frozen=True, slots=True)
class Dbt:
    """A folder of dbt with what every part of it needs to be read."""

    folder: DbtFolder
    templates: Templates
    names: Names
    dialect: str


def read_dbt(root: Path, dialect: str) -> Draft:
    """What can be read of the project in ``root``, its SQL taken for that of ``dialect``."""
    folder = read_folder(root)
    lines: list[Line] = [*folder.lines, *of_translation(dialect)]
    sources = read_sources(folder, lines, dialect)
    snapshots = list(snapshots_of(folder, lines))
    names = _names(folder, sources, snapshots, dialect)
    macros = [macro for file, text in folder.macros.items() for macro in macros_in(file, text)]
    dbt = Dbt(folder, Templates(names, macros, folder.name), names, dialect)
    models = [*_models(dbt, lines), *_snapshots(dbt, snapshots, lines)]
    seeds, more = read_seeds(folder, dialect)
    lines += more
    kept = {model.name for model in models}
    files = [*singular_tests(folder, dbt.templates, dialect, lines)]
    files += read_unit_tests(folder, dbt.templates, lines)
    lines += _of_macros(macros, dbt.templates.called)
    lines += [to_fill(f"env_var {name}", "", _VALUE) for name in sorted(dbt.templates.asked)]
    lines += [left(f"model {PurePosixPath(f).stem}", f, _PYTHON) for f in folder.python]
    lines += _tests_elsewhere(folder, kept)
    return Draft(
        project_name(folder.name),
        tuple(models),
        tuple(source.draft for source in sources),
        tuple(seeds),
        tuple(files),
        {},
        tuple(lines),
    )


_PYTHON = "a model in Python: infold's are functions of DataFrames, see write-models-in-python"

_VALUE = (
    "values are never copied: write yours where it is read, or give it a default, and import again"
)


def _names(
    folder: DbtFolder, sources: list[Source], snapshots: list[Snapshot], dialect: str
) -> Names:
    refs = {PurePosixPath(file).stem: file for file in (*folder.models, *folder.python)}
    refs |= {PurePosixPath(file).stem: file for file in folder.seeds}
    refs |= {snapshot.name: snapshot.file for snapshot in snapshots}
    return Names(
        {name: project_name(name) for name in refs},
        {source.dbt_name: source.draft.name for source in sources},
        variables(folder.project),
        dialect,
    )


def _models(dbt: Dbt, lines: list[Line]) -> Iterator[DraftModel]:
    for file, text in dbt.folder.models.items():
        name = PurePosixPath(file).stem
        entry = dbt.folder.properties("models", name)
        model = read_model(dbt.folder, dbt.templates, dbt.dialect, file, text, lines)
        if model is not None:
            yield _with_audits(dbt, model, entry, lines)


def _snapshots(dbt: Dbt, snapshots: list[Snapshot], lines: list[Line]) -> Iterator[DraftModel]:
    for snapshot in snapshots:
        model = read_snapshot(snapshot, dbt.templates, dbt.dialect, lines)
        if model is not None:
            entry = dbt.folder.properties("snapshots", snapshot.name)
            yield _with_audits(dbt, model, entry, lines)


def _with_audits(
    dbt: Dbt, model: DraftModel, entry: Properties | None, lines: list[Line]
) -> DraftModel:
    from dataclasses import replace

    if entry is None:
        return model
    found = audits_of(entry, model.name, dbt.templates, lines)
    return replace(model, audits=(*model.audits, *found))


def _of_macros(macros: list[Macro], called: set[str]) -> list[Line]:
    why = "its calls are replaced by what it returns"
    found = [came(f"macro {m.name}", m.file, why) for m in macros if m.name in called]
    rest = [macro.name for macro in macros if macro.name not in called]
    if rest:
        found.append(left(f"macros {', '.join(rest)}", "macros/", "no model calls them"))
    return found


def _tests_elsewhere(folder: DbtFolder, kept: set[str]) -> list[Line]:
    """Tests of sources and seeds, which have no audits."""
    del kept
    found: list[Line] = []
    parts: Mapping[str, tuple[Properties, ...]] = folder.entries
    for seed in parts.get("seeds", ()):
        found += _left_tests(seed, f"seed {seed.found.get('name')}")
    for source in parts.get("sources", ()):
        for table in as_list(source.found.get("tables")):
            if isinstance(table, Lined):
                of = Properties(source.file, table)
                found += _left_tests(of, f"source {source.found.get('name')}.{table.get('name')}")
    return found


def _left_tests(entry: Properties, what: str) -> list[Line]:
    from infold.importing.dbt.audits import tests_in

    why = "sources and seeds have no audits: put it on a model that reads them"
    return [left(f"test of {what}: {test.shown}", test.at, why) for test in tests_in(entry)]
