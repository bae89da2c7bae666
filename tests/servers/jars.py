"""Jars of servers for tests: Spark's Ivy fetches them, as it does those of Spark."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from infold.spark.jvm.jars import spark_home
from infold.spark.jvm.java import find_java
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
    missing = [jar for jar in jars if not (folder / _name(*jar[:3])).is_file()]
    if missing:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            _fetch(Path(scratch), missing)
            for where, version, classifier, digest in missing:
                name = _name(where, version, classifier)
                content = (Path(scratch) / name).read_bytes()
                assert hashlib.sha256(content).hexdigest() == digest, f"{name} is another file"
                (Path(scratch) / name).replace(folder / name)
    return [folder / _name(*jar[:3]) for jar in jars]


def _name(where: str, version: str, classifier: str) -> str:
    artifact = where.rpartition("/")[2]
    return "-".join(filter(None, (artifact, version, classifier))) + ".jar"


def _fetch(folder: Path, jars: Sequence[Jar]) -> None:
    """Have Spark's Ivy fetch jars: its own resolver takes none that have a classifier."""
    wanted: dict[tuple[str, str], list[str]] = defaultdict(list)
    for where, version, classifier, _ in jars:
        wanted[where, version].append(classifier)
    modules = "".join(_dependency(*key, names) for key, names in wanted.items())
    (folder / "ivy.xml").write_text(IVY.replace("MODULES", modules), encoding="utf-8")
    (folder / "settings.xml").write_text(SETTINGS, encoding="utf-8")
    [ivy] = (spark_home() / "jars").glob("ivy-*.jar")
    words = [
        *("-settings", str(folder / "settings.xml"), "-cache", str(folder / "cache")),
        *("-ivy", str(folder / "ivy.xml"), "-types", "jar", "-retrieve"),
        str(folder / "[artifact]-[revision](-[classifier]).[ext]"),
    ]
    java = str(find_java().home / "bin" / "java")
    done = subprocess.run(
        [java, "-cp", str(ivy), "org.apache.ivy.Main", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _dependency(where: str, version: str, classifiers: Sequence[str]) -> str:
    organisation, _, name = where.rpartition("/")
    artifacts = "".join(
        f'<artifact name="{name}" type="jar" ext="jar"'
        + (f' m:classifier="{one}"/>' if one else "/>")
        for one in classifiers
    )
    return (
        f'<dependency org="{organisation.replace("/", ".")}" name="{name}" rev="{version}" '
        f'transitive="false" conf="default->*">{artifacts}</dependency>'
    )


IVY = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="infold" module="servers"/>
<configurations><conf name="default"/></configurations>
<dependencies>MODULES</dependencies>
</ivy-module>"""
SETTINGS = """<ivysettings>
<settings defaultResolver="central"/>
<resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>"""
