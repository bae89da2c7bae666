"""What a Spark session needs to find a target's tables by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from infold.spark.tables.jar import Jar


@dataclass(frozen=True, slots=True)
class SparkCatalog:
    """
    Settings of a session, and jars beside those of the storage.

    ``secrets`` are settings that nobody may see; they are set once the session is there.
    """

    settings: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    jars: tuple[Jar, ...] = ()
