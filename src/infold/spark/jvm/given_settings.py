"""Settings given to infold: by the project, the environment, or an existing session."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infold.core import engines
from infold.core.engines import FIXED
from infold.core.storages import STORAGE_SETTINGS, Storage
from infold.messages import faults
from infold.spark.jvm.java import settings_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


DEFAULTS = "spark-defaults.conf"


CONNECT = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
"""Variables that turn PySpark to a server; a first session there sets the second itself."""


def refuse_connect(target: str, wanted: str) -> None:
    """Raise ``engine_faults.connect`` where PySpark would use Spark Connect, and a target not."""
    for name in CONNECT:
        if name in os.environ:
            value = os.environ[name].partition(";")[0]
            raise faults.connect(name=name, value=value, target=target, wanted=wanted)


def all_settings(session: SparkSession) -> dict[str, str]:
    """
    All settings of a session with a JVM, as text in one call.

    PySpark asks for each of them, several times: a warm command would spend a tenth of a second.
    """
    conf: Any = session.conf
    mapper: Any = session._jvm.com.fasterxml.jackson.databind.ObjectMapper()  # type: ignore[union-attr] # noqa: SLF001 (Spark brings it; no public way)
    settings: dict[str, str] = json.loads(mapper.writeValueAsString(conf._jconf.getAllAsJava()))  # noqa: SLF001 (as above)
    return settings


def refuse_given(where: str, settings: Mapping[str, str]) -> None:
    """Raise ``faults.fixed_setting`` for settings that exactness does not allow."""
    changed = tuple(engines.changed_settings(settings))
    if changed:
        raise faults.fixed_setting(where, changed)


def refuse_environment(spark_home: Path) -> None:
    """The same for the settings that spark-submit reads by itself."""
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    refuse_given("PYSPARK_SUBMIT_ARGS", dict(_confs(words)))
    files = [Path(name) for name in _values(words, "--properties-file")]
    for file in files or [settings_folder(spark_home) / DEFAULTS]:
        refuse_given(str(file), dict(given_settings(file)))


def refuse_session(session: SparkSession, *, ours: bool) -> None:
    """
    The same for a session, which has the settings of spark-env.sh and of system properties too.

    In a session that infold did not start, a setting that it can still set is refused only if it
    was given.
    """
    given = all_settings(session)
    if ours:
        given = {
            key: value
            for key, value in given.items()
            if not key.startswith(f"spark.sql.catalog.{engines.FIXED['spark.sql.defaultCatalog']}")
        }
    else:
        # None, and not a text: Spark raises for a text that the setting may not have.
        for key, default in _DEFAULTS.items():
            given.setdefault(key, session.conf.get(key, None) or default)
        given.pop("spark.sql.defaultCatalog", None)
        if DELTA in given[EXTENSIONS]:
            given.pop(CHANGED, None)  # it is put back in the session that is made of this one
    refuse_given(
        "the settings of Spark's start" if ours else "the Spark session of this process", given
    )


_DEFAULTS = {"spark.sql.extensions": "", "spark.sql.catalogImplementation": "in-memory"}
"""The values of settings that were not given at the start."""


def _confs(words: list[str]) -> Iterator[tuple[str, str]]:
    for value in (*_values(words, "--conf"), *_values(words, "-c")):
        key, _, text = value.partition("=")
        yield key.strip(), text.strip()


def _values(words: list[str], option: str) -> Iterator[str]:
    """The values of an option, written apart or with an equals sign."""
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word == option:
            yield after
        elif word.startswith(f"{option}="):
            yield word.removeprefix(f"{option}=")


def given_settings(file: Path) -> Iterator[tuple[str, str]]:
    """A file of properties as Spark reads it: key and value parted by a space, = or a colon."""
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        text = line.strip()
        if not text or text.startswith(("#", "!")):
            continue
        at = next((i for i, letter in enumerate(text) if letter in " \t=:"), len(text))
        yield text[:at], text[at:].lstrip(" \t=:").strip()


EXTENSIONS = "spark.sql.extensions"
DELTA = STORAGE_SETTINGS[Storage.DELTA].extension
CHANGED = "spark.sql.parquet.fieldId.read.enabled"
"""
Delta Lake turns it on for tables that map columns by ids. Infold makes none of those, and reads
files of others by the names that the ids have in each.
"""


def put_back_fixed(session: SparkSession) -> None:
    """
    Let a session have the fixed value again.

    The extension changes it when the session makes its analyser, for its first query. So that is
    made now.
    """
    if DELTA in (session.conf.get(EXTENSIONS, "") or ""):
        java: Any = session._jsparkSession  # noqa: SLF001 (no public way)
        java.sessionState().analyzer()
        session.conf.set(CHANGED, FIXED[CHANGED])
