"""A jar that a storage needs beside Spark's own."""

from __future__ import annotations

from dataclasses import dataclass


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
    def file_name(self) -> str:
        """The name under which Ivy and the cache keep it."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"
