"""Where Spark computes: here, on a cluster, on a server, or as spark-submit says."""

from __future__ import annotations

import re
from dataclasses import dataclass

LOCAL = "local[*]"
"""Everything in one process, on all of its machine's cores."""

REMOTE = re.compile(
    r"sc://(?P<host>\[[^\]\s]+\]|[^\s:/;,@\[\]]+)(:(?P<port>\d{1,5}))?/?(?P<more>(?<=/);.*)?"
)
"""A server of Spark Connect, as Spark writes it: address, then parameters."""

REMOTE_PORT = 15002
"""The port of a server of Spark Connect, if none is given."""

MASTER = re.compile(r"spark://[^\s,/]+:\d+(,[^\s,/]+:\d+)*|yarn|k8s://\S+|local(\[(\*|\d+)\])?")
"""A master: the address of a standalone cluster (several with standbys), or of others."""


@dataclass(frozen=True, slots=True)
class Engine:
    """
    The engine of a target.

    ``submitted``: infold is the application of a spark-submit, which chose the master, and computes
    with the Spark that it was given. ``master`` says nothing then.
    ``remote``: the address of a server of Spark Connect, which computes; with references to
    secrets, and no secret. ``master`` says nothing then either.
    ``shared_disk``: the folders of the project and its tables are at the same paths on the
    machines of the executors.
    """

    master: str = LOCAL
    shared_disk: bool = False
    executor_wait: int = 300
    """How long a run waits for a first executor, in seconds."""
    submitted: bool = False
    idle: int = 600
    """For how long an engine that a command leaves running waits for the next one, in seconds."""
    remote: str = ""

    @property
    def name(self) -> str:
        """What a message calls it; without the parameters of an address, some of them secret."""
        return "what spark-submit gives" if self.submitted else self.server or self.master

    @property
    def server(self) -> str:
        """The address of a server of Spark Connect without its parameters; empty for none."""
        return self.remote.partition("/;")[0].rstrip("/")

    @property
    def is_cluster(self) -> bool:
        """Whether executors are, or may be, processes of their own, on machines of their own."""
        return self.submitted or bool(self.remote) or not self.master.startswith("local")

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Hosts and ports of a server, or of a standalone cluster's masters; else none."""
        if found := REMOTE.fullmatch(self.remote):
            return ((found["host"], int(found["port"] or REMOTE_PORT)),)
        if not self.master.startswith("spark://"):
            return ()
        parts = (one.rpartition(":") for one in self.master.removeprefix("spark://").split(","))
        return tuple((host, int(port)) for host, _, port in parts)


@dataclass(frozen=True, slots=True)
class WarmEngine:
    """A process that keeps Spark running between commands. Times are in seconds."""

    target: str
    process: int
    jvm: int
    """The process of Java."""
    since: int
    """When it began, in microseconds."""
    commands: int
    """How many commands it carried out."""
    busy: bool
    idle_seconds: int
    """For how long it has waited for a command."""
    ends_after_seconds: int
    """It ends once it has waited for so long."""
    memory_bytes: int
    """What Java has in memory."""
