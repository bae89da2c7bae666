"""What a Spark session needs to find a target's tables by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Jar:
    """A Maven artifact and the SHA-256 of its one file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        """``group:artifact:version``, as Spark's option takes it."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def path(self) -> str:
        """Where a Maven repository has it."""
        folder = f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}"
        return f"{folder}/{self.artifact}-{self.version}.jar"

    @property
    def file_name(self) -> str:
        """The name under which the cache keeps it."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"


@dataclass(frozen=True, slots=True)
class SparkCatalog:
    """
    Settings of a session, and jars beside those of the storage.

    ``secrets`` are settings that nobody may see; they are set once the session is there.
    """

    settings: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    jars: tuple[Jar, ...] = ()

    def set_secrets(self, session: SparkSession) -> None:
        """Let a session know them, before it uses the catalog."""
        for key, value in self.secrets.items():
            session.conf.set(key, value)
