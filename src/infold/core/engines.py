"""Where Spark computes: here, with the executors of a cluster, or as spark-submit says."""

from __future__ import annotations

import re
from dataclasses import dataclass

LOCAL = "local[*]"
"""Everything in one process, on all of its machine's cores."""

MASTER = re.compile(r"spark://[^\s,/]+:\d+(,[^\s,/]+:\d+)*|yarn|k8s://\S+|local(\[(\*|\d+)\])?")
"""A master: the address of a standalone cluster (several with standbys), or of others."""


@dataclass(frozen=True, slots=True)
class Engine:
    """
    The engine of a target.

    ``submitted``: infold is the application of a spark-submit, which chose the master, and computes
    with the Spark that it was given. ``master`` says nothing then.
    ``shared_disk``: the folders of the project and its tables are at the same paths on the
    machines of the executors.
    """

    master: str = LOCAL
    shared_disk: bool = False
    executor_wait: int = 300
    """How long a run waits for a first executor, in seconds."""
    submitted: bool = False

    @property
    def name(self) -> str:
        """What a message calls it."""
        return "what spark-submit gives" if self.submitted else self.master

    @property
    def is_cluster(self) -> bool:
        """Whether executors are, or may be, processes of their own, on machines of their own."""
        return self.submitted or not self.master.startswith("local")

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Hosts and ports of the masters of a standalone cluster; of others none are known."""
        if not self.master.startswith("spark://"):
            return ()
        parts = (one.rpartition(":") for one in self.master.removeprefix("spark://").split(","))
        return tuple((host, int(port)) for host, _, port in parts)
