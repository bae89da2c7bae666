"""One place chooses how tables are stored, by the target's ``storage``."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infold import api
from infold.core.engines import changed_settings
from infold.core.project import Project
from infold.core.storages import STORAGE_SETTINGS, Storage, extensions
from infold.core.target import Target
from infold.spark import storages
from infold.spark.engine import SparkEngine


def test_every_storage_has_adapters_and_settings() -> None:
    """A storage that infold.yml may name is one that can be opened."""
    assert set(storages.STORAGES) == set(STORAGE_SETTINGS) == set(Storage)
    both = {"spark.sql.extensions": extensions(*Storage)}
    for settings in STORAGE_SETTINGS.values():
        assert settings.extension in both["spark.sql.extensions"]
    assert not [*changed_settings(both)]
    assert [*changed_settings({"spark.sql.extensions": STORAGE_SETTINGS[Storage.DELTA].extension})]


def test_the_target_chooses_the_adapters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are opened by the adapters of the target's storage, with Spark and without."""
    opened: list[str] = []

    def lake(project: Project) -> str:
        opened.append(f"lake of {project.name}")
        return "its lake"

    def tables(spark: Any, project: Project, lake: Any) -> str:
        opened.append(f"tables of {project.name} over {lake}")
        return "its tables"

    elsewhere: Any = "elsewhere"
    other: Any = SimpleNamespace(lake=lake, tables=tables)
    monkeypatch.setattr(storages, "STORAGES", {**storages.STORAGES, elsewhere: other})
    target = replace(Target("dev"), storage=elsewhere)
    project = Project("shop", tmp_path, None, {}, (), target)

    found: Any = api.lake(project)
    engine: Any = SparkEngine(None, project, None, found, "run")  # type: ignore[arg-type]

    assert (found, engine.tables) == ("its lake", "its tables")
    assert opened == ["lake of shop", "tables of shop over its lake"]


def test_choosing_imports_no_engine() -> None:
    """Opening a target's tables starts at once: ``plan`` and ``status`` have 0.2 seconds."""
    code = (
        "import sys; from pathlib import Path; from infold.core.target import Target\n"
        "from infold.core.storages import Storage\n"
        "from infold.core.project import Project\n"
        "from infold.spark.storages import storage_of\n"
        "for storage in Storage:\n"
        "    target = Target('dev', storage=storage)\n"
        "    project = Project('shop', Path('.'), None, {}, (), target)\n"
        "    storage_of(project).lake(project).metadata('nothing')\n"
        "sys.exit(bool({'pyspark', 'pyiceberg', 'pyarrow', 'deltalake'} & set(sys.modules)))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
