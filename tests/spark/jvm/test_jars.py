"""The jars are fetched once, checked, and complete, with a fake spark-submit."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infold.messages.errors import InfoldError
from infold.spark.jvm import jars
from infold.spark.jvm.java import Java
from infold.spark.tables.catalog import Jar
from infold.system.kept_files import cache_dir

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


def test_jars_are_fetched_once(spark: Spark) -> None:
    """The second start finds the jars in the cache and runs no spark-submit."""
    spark.will(FETCHES)

    first, second = jars.jar_paths(), jars.jar_paths()

    assert first == second
    assert first[0].read_bytes() == CONTENT
    assert spark.calls == 1


def test_processes_that_fetch_at_once_do_it_once(spark: Spark) -> None:
    """Of two processes that fetch at once, the second waits and uses what the first has fetched."""
    spark.will(FETCHES)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: jars.jar_paths(), range(4)))

    assert len(set(found)) == 1
    assert spark.calls == 1


def test_nothing_else_is_left_in_the_cache(spark: Spark) -> None:
    """The folder in which Ivy worked is removed afterwards."""
    spark.will(FETCHES)

    folder = jars.jar_paths()[0].parent

    assert sorted(path.name for path in folder.iterdir()) == [".lock", JAR.file_name]


def test_a_jar_with_other_content_is_refused(spark: Spark) -> None:
    """A file whose hash is not the pinned one never gets into the cache."""
    spark.will(f'printf "something else" > "$ivy/jars/{JAR.file_name}"')

    with pytest.raises(InfoldError) as caught:
        jars.jar_paths()

    assert dict(caught.value.facts)["why"] == f"{JAR.file_name} is not the file that was published"
    assert not (cache_dir() / "jars" / JAR.file_name).exists()


def test_what_another_user_could_change_is_compared(spark: Spark) -> None:
    """In a cache that everybody can write to, a jar is what was published, or fetched again."""
    spark.will(FETCHES)
    [path] = jars.jar_paths()
    content = path.read_bytes()
    path.parent.chmod(0o777)
    path.write_bytes(b"something else")

    assert jars.jar_paths() == (path,)
    assert path.read_bytes() == content


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


def test_a_failed_fetch_does_not_stop_the_next_one(spark: Spark) -> None:
    """A failed fetch leaves nothing behind that would stop the next one."""
    spark.will("exit 1")
    with pytest.raises(InfoldError):
        jars.jar_paths()

    spark.will(FETCHES)

    assert jars.jar_paths()[0].read_bytes() == CONTENT


class TestCache:
    """Where the cache is follows the environment."""

    def test_infold_cache_names_it(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """INFOLD_CACHE names the cache folder itself."""
        monkeypatch.setenv("INFOLD_CACHE", str(tmp_path))

        assert cache_dir() == tmp_path

    def test_xdg_cache_home_contains_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """Without INFOLD_CACHE the cache is a folder in the user's cache."""
        monkeypatch.delenv("INFOLD_CACHE", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

        assert cache_dir() == tmp_path / "infold"
