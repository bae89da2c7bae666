"""Jars of servers for tests, fetched as those of Spark are."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from infold.spark.jvm.jars import download
from infold.system.kept_files import cache_dir

Jar = tuple[str, str, str, str]
"""Folder in Maven Central, version, classifier and SHA-256."""


def listed_jars(file: Path) -> list[Jar]:
    """The jars of a file, with one a line; ``-`` is no classifier."""
    lines = file.read_text(encoding="utf-8").splitlines()
    found = [line.split() for line in lines]
    return [
        (where, version, classifier.strip("-"), digest)
        for where, version, classifier, digest in found
    ]


def fetched_jars(jars: Sequence[Jar]) -> list[Path]:
    """The jars as files; they are fetched the first time on a machine."""
    folder = cache_dir() / "servers"
    folder.mkdir(parents=True, exist_ok=True)
    for where, version, classifier, digest in jars:
        name = _name(where, version, classifier)
        if not (folder / name).is_file():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                fetched = Path(scratch) / name
                download(f"{where}/{version}/{name}", fetched, digest)
                fetched.replace(folder / name)
    return [folder / _name(*jar[:3]) for jar in jars]


def _name(where: str, version: str, classifier: str) -> str:
    artifact = where.rpartition("/")[2]
    return "-".join(filter(None, (artifact, version, classifier))) + ".jar"
