"""
Spark in this process: one session for each project, however many runs there are.

The first starts a JVM; further ones are sessions in it. It ends with the process, or by ``close``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from infold.api.sole_writer import announce, remote_url
from infold.core.interval import SECOND, show_duration
from infold.core.object_store import Stores
from infold.core.plan import Action, Plan
from infold.core.project import Project
from infold.core.storages import Catalog, Storage
from infold.core.target import OFF
from infold.messages import faults, store_errors
from infold.running.observe import Observer
from infold.system.process_lock import inherited_descriptors, lock_in_jvm

if TYPE_CHECKING:
    from infold.core.ports import Engine
    from infold.spark.jvm.session_settings import Size

MEDIUM_ROWS = 40_000  # docs/decisions/0009-small-runs.md has what each size takes
MEDIUM_BYTES = 1024 * 1024
MEDIUM_HISTORY = 1_000_000
"""Rows of a stored table from which looking for what a few rows touch is work by itself."""

LARGE_ROWS = 2_000_000
LARGE_BYTES = 100 * 1024 * 1024

MODELS_AT_ONCE, SMALL_AT_ONCE = 4, 6
"""Models that are built side by side at most, where nobody asks for more."""

_Key = tuple[str, Storage, Catalog, Stores, tuple[str, ...], str, int]
_sessions: dict[_Key, Any] = {}


@dataclass(frozen=True, slots=True)
class Home:
    """Where the JVM of a process belongs, if it stays: a project's target."""

    target: str
    socket: str
    idle: int
    """For how long it stays unused, in seconds."""

    @property
    def idle_text(self) -> str:
        """The same for people."""
        return show_duration(self.idle * SECOND)


_engine_homes: list[Home] = []


def home() -> Home | None:
    """That of the first project for which this process started Spark; None if it may not stay."""
    return _engine_homes[0] if _engine_homes else None


def belongs_to(project: Project) -> None:
    """Let the JVM that is started now be that of a project, if it computes here."""
    from infold.system.engine_socket import socket_file

    target = project.target
    if not (target.engine.is_cluster or target.engine.start == OFF or _engine_homes):
        file = socket_file(str(project.root.resolve()), target.name)
        _engine_homes.append(Home(target.name, file, target.engine.idle))


def session(project: Project, *, size: Size = "small") -> Any:
    """The process's Spark session for a project's tables; started on first use."""
    return numbered_session(project, size, 0)


def close() -> None:
    """
    End Spark and its JVM, and with it all sessions; the next use starts another. Servers go on.

    A Spark session that the program itself started goes on.

    Nothing has to be closed at the end of a process: the JVM sees that and ends by itself.
    """
    from infold.lake.stores.places import forget_ways

    forget_ways()
    if "pyspark" not in sys.modules:
        return
    from infold.spark import connect
    from infold.spark.jvm.gateway import has_started
    from infold.spark.jvm.spark_session import stop

    _sessions.clear()
    connect.close()
    if has_started():
        stop(wait_seconds=30)


def has_started_spark() -> bool:
    """Whether this process started a JVM: it was not left by an earlier command."""
    gateway = sys.modules.get("infold.spark.jvm.gateway")
    if gateway is None:
        return False
    from infold.spark.jvm import lasting

    return bool(gateway.has_started()) and not lasting.has_attached()


def numbered_session(project: Project, size: Size, number: int) -> Any:
    """The session of a project with this number; further ones are for steps side by side."""
    if project.target.engine.remote:
        return _remote_session(project, size, number)
    from infold.spark.jvm import submitted
    from infold.spark.jvm.gateway import forget_dead, has_deleted, has_started, is_stopped
    from infold.spark.jvm.spark_session import tune

    if forget_dead() or is_stopped():
        _sessions.clear()
    key = _key(project, number)
    if key in _sessions and has_deleted(project.catalog_db):
        _forget_catalog(key)
    if key not in _sessions:
        _sessions[key] = _new_session(project, size)
    tune(_sessions[key], size, dict(project.target.spark))
    if not has_started():
        lock_in_jvm(project.root, project.target.name, submitted.lock_file)
    return _sessions[key]


def _forget_catalog(key: _Key) -> None:
    """Forget the sessions of a catalog whose file is gone: they would go on answering from it."""
    from infold.spark.jvm.lasting import close_catalog

    for session_key in [session_key for session_key in _sessions if session_key[:-1] == key[:-1]]:
        close_catalog(_sessions.pop(session_key))


def _key(project: Project, number: int) -> _Key:
    """What tells sessions apart; an address has no secrets in it."""
    target, place = project.target, project.warehouse_location
    tables = place, target.storage, target.catalog
    return *tables, target.stores, project.buckets, target.engine.remote, number


def _remote_session(project: Project, size: Size, number: int) -> Any:
    """A session on the target's server: another one where that does not know it any more."""
    from infold.spark import connect
    from infold.spark.jvm import gateway, spark_session
    from infold.spark.storages import storage_of

    target, key = project.target, _key(project, number)
    if target.in_store or project.buckets:
        place = project.warehouse_location if target.in_store else project.buckets[0]
        raise store_errors.not_over_connect(target=target.name, place=place)
    if not gateway.is_stopped():
        running = spark_session.running_master()
        raise faults.other_engine(running=running, target=target.name, wanted=target.engine.name)
    if key in _sessions and connect.is_lost(_sessions[key]):
        del _sessions[key]
    if key not in _sessions:
        gateway.quieten_py4j()
        project.warehouse.mkdir(parents=True, exist_ok=True)
        _sessions[key] = connect.start(
            target.engine,
            remote_url(project),
            storage_of(project).catalog(project),
            size=size,
            extra=dict(target.spark),
            adapters=storage_of(project),
            given=f"`engine` of target {target.name} in infold.yml",
        )
    connect.activate(_sessions[key])
    connect.tune(_sessions[key], size, dict(target.spark))
    in_python = any(node.model.python is not None or node.model.functions for node in project)
    if in_python or any(source.multiline for source in project.sources.values()):
        connect.send_package(_sessions[key])
    return _sessions[key]


def _new_session(project: Project, size: Size) -> Any:
    """A session of the process's Spark, which starts with the first."""
    from infold.spark.jvm.spark_session import JavaProcess, start
    from infold.spark.reading.avro_files import source_jars
    from infold.spark.storages import storage_of

    if not project.target.in_store:
        project.warehouse.mkdir(parents=True, exist_ok=True)
    project.catalog_db.parent.mkdir(parents=True, exist_ok=True)
    belongs_to(project)
    catalog, own = storage_of(project).catalog(project), project.root / ".infold"
    return start(
        project.warehouse_location,
        project.catalog_db,
        size=size,
        process=JavaProcess(
            log=own / "spark.log",
            inherit=inherited_descriptors(project.root, project.target.name),
            spill=own / "spill",
            meanwhile=_import_steps,
        ),
        extra=dict(project.target.spark),
        storage=project.target.storage,
        catalog=replace(catalog, jars=(*catalog.jars, *source_jars(project))),
        engine=project.target.engine,
        target=project.target.name,
    )


def _import_steps() -> None:
    """Import what carries out steps, and PySpark with it, while a JVM starts."""
    import infold.spark.engine  # noqa: F401


def run_size(observer: Observer, first: Plan) -> Size:
    """How a run is sized: by the rows it is known to read, the files it takes in, the history."""
    files = sum(file.size for step in first.steps if step.files for file in step.files.new)
    heads = observer.ledger.newest_versions()
    refolds = [step.model for step in first.steps if step.action is Action.REFOLD]
    rows = first.rows_to_read + sum(heads[name].rows for name in refolds if name in heads)
    if rows > LARGE_ROWS or files > LARGE_BYTES:
        return "large"
    stored = [heads[step.model].rows for step in first.steps if step.model in heads]
    if rows > MEDIUM_ROWS or files > MEDIUM_BYTES or max(stored, default=0) > MEDIUM_HISTORY:
        return "medium"
    return "small"


def whole_size(observer: Observer) -> Size:
    """How reading all tables is sized: by the largest."""
    rows = max((head.rows for head in observer.ledger.newest_versions().values()), default=0)
    return "large" if rows > LARGE_ROWS else "medium" if rows > MEDIUM_ROWS else "small"


def engine(project: Project, observer: Observer, run_id: str, first: Plan) -> Engine:
    """The engine of a run, in a session as large as its first plan asks for."""
    size = run_size(observer, first)

    def numbered(number: int) -> Any:
        spark = numbered_session(project, size, number)
        if project.target.engine.remote:
            announce(project, observer.ledger, spark)
        return spark

    own = (numbered(0), project, observer.ledger, observer.lake, run_id)
    from infold.spark.engine import SparkEngine

    return SparkEngine(
        *own,
        another=lambda number: numbered(number + 1),
        models_at_once=_models_at_once(project, size, own[0]),
    )


def _models_at_once(project: Project, size: Size, session: Any) -> int:
    """
    How many models a run builds side by side, if nobody says how many steps.

    A small step keeps one core busy, with planning, which is the driver's, or waits: half of a
    commit's time Iceberg sleeps, ten milliseconds at a time, until its own threads are done. Those
    of a large run have tasks for all cores, and need the heap for themselves.
    """
    if size == "large" or project.target.engine.remote:
        return 1
    from infold.spark.session_facts import parallelism

    cores = parallelism(session)
    return min(SMALL_AT_ONCE, 3 * cores) if size == "small" else min(MODELS_AT_ONCE, cores)
