"""
Whether all that a target needs is there and works, from Python to a row of each source.

What can be tried is tried: the lease is taken and given back, a table is made, read and dropped, a
row of the newest file of each source is read. Nothing that was there is changed.
"""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from infold import __version__
from infold.api import opening
from infold.api.extraction import try_table
from infold.api.spark_sessions import session
from infold.core.formats import FORMATS
from infold.core.interval import now
from infold.core.model import Source
from infold.core.project import Project
from infold.core.report import Check, CheckVerdict
from infold.messages import faults
from infold.messages.errors import InfoldError, InfoldErrors
from infold.render.formatting import count
from infold.running.ledger_consistency import refuse_other_project
from infold.running.publish import check_readers, check_views
from infold.system.failures import in_a_line, known_failure
from infold.system.secrets import hide_passwords

Found = TypeVar("Found")


def examine(root: Path, target: str | None = None) -> Iterator[Check]:
    """
    Check a target of the project in a folder, and give each result as soon as it is known.

    Raises nothing: whatever fails is a result. What needs something that failed is left out.
    """
    yield _check("Python", _python)[0]
    java, home = _check("Java", _java)
    opened, project = _check("project", lambda: _opened(root, target))
    if project is None or not project.target.engine.remote:
        yield java
    yield opened
    if project is None:
        return
    yield _check("ledger", lambda: _ledger(project))[0]
    yield _check("warehouse", lambda: _warehouse(project))[0]
    yield _check("tables", lambda: _tables(project))[0]
    if project.target.registers:
        yield _check("metastore", lambda: _metastore(project))[0]
    spark = None
    if home is None and not project.target.engine.remote:
        yield _left_out("Spark", "Java")
    else:
        started, spark = _check("Spark", lambda: _spark(project))
        yield started
    if spark is None:
        yield _left_out("catalog", "Spark")
        yield _left_out("clocks", "Spark")
    else:
        from infold.spark import probes

        lake = opening.lake_of(project)
        yield _check("catalog", lambda: (probes.table(spark, project, lake), None))[0]
        yield _check("clocks", lambda: (probes.clocks(spark, now), None))[0]
    for name, source in project.sources.items():
        yield _check(f"source {name}", partial(_source, project, source, spark))[0]


def _check(name: str, look: Callable[[], tuple[str, Found]]) -> tuple[Check, Found | None]:
    """Look at one thing; its value is for what follows, None if it failed."""
    started = time.perf_counter()
    try:
        text, value = look()
    except Exception as error:  # noqa: BLE001 - whatever fails is what the user wants to know
        known = known_failure(error) or faults.check_failed(name=name, why=in_a_line(error))
        spent = time.perf_counter() - started
        return Check(name, CheckVerdict.FAILED, known.each[0].what, spent, known.each), None
    return Check(name, CheckVerdict.OK, text, time.perf_counter() - started), value


def _left_out(name: str, needs: str) -> Check:
    return Check(name, CheckVerdict.LEFT_OUT, f"needs {needs}")


def _python() -> tuple[str, None]:
    return f"{platform.python_version()}, {sys.executable}; infold {__version__}", None


def _java() -> tuple[str, Path]:
    from infold.spark.jvm.java import find_java

    java = find_java()
    return f"{java.version}, {java.home}", java.home


def _opened(root: Path, target: str | None) -> tuple[str, Project]:
    project = opening.open_project(root, target, declared=True)
    models = sum(not node.landed for node in project)
    counts = f"{count(models, 'model')}, {count(len(project.sources), 'source')}"
    return f"{project.name}, target {project.target.name}: {counts}", project


def _ledger(project: Project) -> tuple[str, None]:
    """Reads it, and takes its lease as a run does; where there is none yet, of one beside it."""
    ledger = opening.ledger_of(project)
    refuse_other_project(project, ledger)
    newest = next(iter(ledger.runs(limit=1)), None)
    if not ledger.exists():
        where = ledger.try_create()
        ledger.close()
        return f"{where}: the first run makes it; it can be written there", None
    try:
        ledger.acquire("doctor")
        ledger.release()
        where = ledger.place
    except InfoldError as error:
        if error.slug != "locked":
            raise
        return f"{ledger.place}: a run is at work in it, so no lease was taken", None
    finally:
        ledger.close()
    runs = "no run yet" if newest is None else f"newest run {newest.id}"
    return f"{where}: {runs}; its lease was taken and given back", None


def _warehouse(project: Project) -> tuple[str, None]:
    """Writes a file where the tables are; of a folder that is not there yet, where it would be."""
    if project.target.in_store:
        return _warehouse_in_store(project), None
    folder = project.warehouse
    existing = next(at for at in (folder, *folder.parents) if at.exists())
    with tempfile.TemporaryFile(dir=existing):
        free = shutil.disk_usage(existing).free
    note = "" if existing == folder else "the first run makes it; "
    return f"{folder}: {note}{free / 2**30:,.0f} GiB are free", None


def _tables(project: Project) -> tuple[str, None]:
    """Whether the catalog has the tables that the ledger knows, and may have views if it is to."""
    observer = opening.observer_of(project)
    check_views(project, observer.lake)
    if wrong := observer.check_ledger():
        raise InfoldErrors(wrong.values())
    stored = [head for head in observer.ledger.newest_versions().values() if head.snapshot]
    if not stored:
        return "the ledger knows none yet", None
    if dropped := observer.vanished():
        return f"{', '.join(dropped)}: dropped, not by infold; the next run builds it again", None
    return f"{count(len(stored), 'table')}, as the ledger says", None


def _metastore(project: Project) -> tuple[str, None]:
    """Whether it answers, and has nothing else under the names of the tables."""
    tables = check_readers(project, opening.lake_of(project))
    where = f"{hide_passwords(project.target.catalog.uri)}, namespace {project.catalog_namespace}"
    return f"{where}: {count(len(tables), 'table')} registered", None


def _warehouse_in_store(project: Project) -> str:
    """Does with an object what runs do with those of tables."""
    from infold.lake.stores import places

    places.use(project)
    where = project.warehouse_location
    places.try_out(where)
    return f"{where}: an object was written, listed, read and deleted"


def _spark(project: Project) -> tuple[str, Any]:
    from infold.spark import probes

    spark = session(project)
    return probes.engine(spark, project), spark


def _source(project: Project, source: Source, spark: Any) -> tuple[str, None]:
    """Lists the files of a source, and reads a row of the newest; looks at a database's table."""
    from infold.lake.reading.formats import files_of

    files, young = files_of(source.format).list_files(project, source, now())
    text = f"{count(len(files), 'file')}, {sum(file.size for file in files):,} bytes"
    if FORMATS[source.format].is_extracted:
        text = f"{try_table(project, source)}; {text} were extracted of it"
    if young:
        text += f"; {count(len(young), 'file')} too young to be read (`settle`)"
    if not files:
        return f"{text}: nothing to read", None
    if spark is None:
        return f"{text}; no row was read, as that needs Spark", None
    from infold.spark import probes

    newest = max(files, key=lambda file: file.modified_at)
    return f"{text}; {probes.row(spark, project, source, newest)}", None
