"""Memory of this machine, or of the container that the process is in."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

PART = 16
"""Memory is short if less than this part of all is left."""


def is_memory_short() -> bool:
    """Whether so little is left that a process that only waits should end."""
    left, total = _of_machine()
    limit, used = _of_container()
    return left * PART < total or (limit is not None and (limit - used) * PART < limit)


def memory_of_process(pid: int) -> int:
    """What a process has in memory, in bytes; 0 if it is gone."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def _of_machine() -> tuple[int, int]:
    with suppress(OSError, ValueError, KeyError):
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        facts = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        return facts["MemAvailable"], facts["MemTotal"]
    return 1, 1


def _of_container() -> tuple[int | None, int]:
    """The limit of version 2 of control groups, and what of it cannot be given back at once."""
    folder = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError, KeyError):
        limit = int((folder / "memory.max").read_text(encoding="ascii"))
        used = int((folder / "memory.current").read_text(encoding="ascii"))
        lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
        facts = {line.split()[0]: int(line.split()[1]) for line in lines}
        return limit, used - facts["inactive_file"] - facts["active_file"]
    return None, 0
