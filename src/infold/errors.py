"""
Every message a user can meet, built by one function each.

A message has three parts: a slug and what is wrong, the facts aligned, and what to do about it.
No other module writes such a text, so that the tone is one and the tests compare whole messages.
"""

from __future__ import annotations


class InfoldError(Exception):
    """
    A mistake or a refusal that the user can do something about.

    ``exit_code`` follows the command line: 1 a step failed, 2 the project, the command or the
    machine is wrong, 3 refused, 4 a difference was found.
    """

    def __init__(
        self,
        slug: str,
        what: str,
        facts: tuple[tuple[str, str], ...] = (),
        todo: str = "",
        exit_code: int = 2,
    ) -> None:
        super().__init__(slug, what)
        self.slug = slug
        self.what = what
        self.facts = facts
        self.todo = todo
        self.exit_code = exit_code

    def __str__(self) -> str:
        """The three parts as they are shown, without a final newline."""
        parts = [f"{self.slug}: {self.what}"]
        if self.facts:
            width = max(len(name) for name, _ in self.facts) + 1
            parts.append("\n".join(f"  {name + ':':<{width}}  {text}" for name, text in self.facts))
        if self.todo:
            parts.append(self.todo)
        return "\n\n".join(parts)


# --- the machine


JAVA_TODO = (
    "Install a Java runtime (apt-get install openjdk-17-jre-headless, brew install openjdk@17), "
    "or set JAVA_HOME to one."
)


def java_missing(looked: tuple[tuple[str, str], ...]) -> InfoldError:
    """No Java at all; ``looked`` says where it was looked for."""
    return InfoldError(
        "java-missing", "Java 17 or newer is needed and none was found", looked, JAVA_TODO
    )


def java_too_old(version: str, path: str) -> InfoldError:
    """A Java was found, and it is older than Spark needs."""
    return InfoldError(
        "java-too-old",
        f"Java 17 or newer is needed and {version} was found",
        (("found", path),),
        JAVA_TODO,
    )


def jars_unresolved(coordinates: tuple[str, ...], cache: str, why: str) -> InfoldError:
    """The jars for Iceberg and SQLite could not be downloaded."""
    return InfoldError(
        "jars-unresolved",
        "the jars that Spark needs for Iceberg could not be downloaded",
        (*(("jar", c) for c in coordinates), ("cache", cache), ("why", why)),
        "Check that this machine reaches Maven Central (once is enough: later runs use the cache), "
        "or set INFOLD_CACHE to a cache that has them.",
        exit_code=1,
    )


def spark_failed_to_start(why: str, log: str) -> InfoldError:
    """The JVM or the Spark session did not come up."""
    return InfoldError(
        "spark-start",
        "Spark did not start",
        (("why", why), ("log", log)),
        "The log has the details. A machine short of memory can set INFOLD_MEMORY (now 2g).",
        exit_code=1,
    )
