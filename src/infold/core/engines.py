"""Where Spark computes: in infold's own process, or with the executors of a cluster."""

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

    ``shared_disk``: the folders of the project and its tables are at the same paths on the
    machines of the executors.
    """

    master: str = LOCAL
    shared_disk: bool = False
    executor_wait: int = 300
    """How long a run waits for a first executor, in seconds."""

    @property
    def is_cluster(self) -> bool:
        """Whether executors are processes of their own, on machines of their own."""
        return not self.master.startswith("local")

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Hosts and ports of the masters of a standalone cluster; of others none are known."""
        if not self.master.startswith("spark://"):
            return ()
        parts = (one.rpartition(":") for one in self.master.removeprefix("spark://").split(","))
        return tuple((host, int(port)) for host, _, port in parts)
