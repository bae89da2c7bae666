"""
How the machine gives way under a program, by one function each: memory, disks, permissions.

Nothing here is a mistake in a project, and none of it is one of infold's. Each has a section in
docs/errors.md; :mod:`infold.system.failures` says which it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from infold.messages.errors import InfoldError


def _about(path: str, why: str) -> tuple[tuple[str, str], ...]:
    return (*((("file", path),) if path else ()), ("why", why))


def disk_full(path: str, why: str) -> InfoldError:
    """No room is left for what has to be written."""
    return InfoldError(
        "disk-full",
        "a disk is full",
        _about(path, why),
        "Make room, and run again. Tables are in the target's warehouse; what Spark writes "
        "meanwhile is in .infold/spill of the project, or where spark.local.dir says.",
        exit_code=1,
    )


def not_permitted(path: str, why: str) -> InfoldError:
    """A file or folder that may not be read, or not be written."""
    return InfoldError(
        "not-permitted",
        "a file or folder cannot be read or written",
        _about(path, why),
        "The project and its models/ have to be readable; .infold, the warehouse and the ledger "
        "writable, for whoever runs infold.",
        exit_code=1,
    )


def system_refused(path: str, why: str) -> InfoldError:
    """Anything else that the system says no to."""
    return InfoldError(
        "system-refused",
        "the system refused something that infold asked for",
        _about(path, why),
        "Once the cause is gone, run again: what was finished is kept.",
        exit_code=1,
    )


def output_failed(why: str) -> InfoldError:
    """What a command has to say cannot be written."""
    return InfoldError(
        "output-failed",
        "the output cannot be written",
        (("why", why),),
        "What the command did, it did: `infold history` and `infold status` show it again.",
        exit_code=1,
    )


def database_unusable(why: str) -> InfoldError:
    """SQLite cannot read or write the file of a catalog."""
    return InfoldError(
        "database-unusable",
        "the database file of the catalog cannot be used",
        (("why", why),),
        "Check that it and its folder can be written and that the disk has room.",
        exit_code=1,
    )


def out_of_memory(whose: str, why: str) -> InfoldError:
    """A process that asked for more memory than it may have."""
    return InfoldError(
        "out-of-memory",
        f"{whose} ran out of memory",
        (("why", why or "no more can be had"),),
        "INFOLD_MEMORY gives Spark more (2g unless it is said). A model's batch_size, or "
        "`infold run --batch-size 1`, builds less at once.",
        exit_code=1,
    )


def engine_died(why: str) -> InfoldError:
    """The JVM is gone in the middle of a run."""
    return InfoldError(
        "engine-died",
        "Spark's Java process ended in the middle of its work",
        (("why", why), ("log", ".infold/spark.log")),
        "Somebody killed it, or the system did for want of memory. Run again: the next run finds "
        "out what it had committed, and goes on from there.",
        exit_code=1,
    )


def too_deep(why: str) -> InfoldError:
    """SQL, YAML or JSON that is nested deeper than programs can follow."""
    return InfoldError(
        "too-deep",
        "something is nested too deeply",
        (("why", why),),
        "A list (IN (…)) says the same as thousands of ORs; a view or a table of its own "
        "takes a part of a long UNION ALL.",
    )


def too_many_parts(why: str) -> InfoldError:
    """A query of so many parts that what their tasks report is more than Spark's driver takes."""
    return InfoldError(
        "too-many-parts",
        "a query has more parts than Spark can keep an account of",
        (("why", why),),
        "Put a part of a long UNION ALL into a table of its own (materialization: table), or "
        "let one source name all the files: `path: landing/*/*.json`.",
        exit_code=1,
    )


def spark_without_iceberg(why: str) -> InfoldError:
    """A Spark session of somebody else's in which the tables' catalog cannot be opened."""
    return InfoldError(
        "no-iceberg",
        "the Spark session of this process cannot open Iceberg tables",
        (("why", why),),
        "Let infold start Spark: call it before there is a session. Or start yours with "
        "`spark.jars.packages`, of the same Spark: iceberg-spark-runtime and sqlite-jdbc, and with "
        "`spark.sql.extensions` (docs/python-api.md has both).",
    )


def fixed_setting(where: str, found: Sequence[tuple[str, str, str]]) -> InfoldError:
    """Settings from outside of the project that would change what queries and files mean."""
    (key, value, _), *more = found
    others = f", nor {len(more):,} others as they are" if more else ""
    return InfoldError(
        "fixed-setting",
        f"{key} cannot be {value or 'empty'}{others}",
        (("where", where), *((name, f"{given}; it is {kept}") for name, given, kept in found)),
        "Take it out there. Tables equal their definitions only while it stays as it is; whatever "
        "changes no rows (memory, parallelism, compression) is free.",
    )
