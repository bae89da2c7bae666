"""
What a process was started with and can see of itself: environment, folder, limits, namespaces;
how much memory is left, and what share of the processors its session gets.

A command in a warm engine must have all of it as if it had been started by itself. Some of it a
process can take on; the JVM beside it cannot. So an engine serves only commands whose
circumstances are its own. What only terminals and shells look at may differ.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing typing takes long
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAY_DIFFER = frozenset(
    b"""
    _ CLICOLOR CLICOLOR_FORCE COLORFGBG COLORTERM COLUMNS DESKTOP_STARTUP_ID DISPLAY EDITOR
    FORCE_COLOR INFOLD_CRASH_AT INFOLD_CRASH_LOG INFOLD_ENGINE INVOCATION_ID JOURNAL_STREAM LESS
    LINES LS_COLORS MAIL MANPATH NO_COLOR OLDPWD PAGER PS1 PS2 PWD SHELL_SESSION_ID SHLVL STY TERM
    TERM_PROGRAM TERM_PROGRAM_VERSION TERM_SESSION_ID TMUX TMUX_PANE VISUAL VTE_VERSION
    WAYLAND_DISPLAY WINDOWID WT_SESSION
    """.split()
)
PREFIXES_MAY_DIFFER = (
    *(b"DBUS_", b"GNOME_", b"GPG_", b"HIST", b"KITTY_", b"KONSOLE_", b"LESS_", b"PROMPT"),
    *(b"SSH_", b"VSCODE_", b"XDG_SESSION_"),
)
NAMESPACES = ("mnt", "net", "pid", "user")


def that_matters(environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """The variables that have to be equal."""
    return {
        name: value
        for name, value in environment.items()
        if name not in MAY_DIFFER and not name.startswith(PREFIXES_MAY_DIFFER)
    }


class Began:
    """What a process is begun with, and may change: noted at its beginning."""

    def __init__(self) -> None:
        self.environment = dict(os.environb)
        self.path = list(sys.path)


def place(path: Sequence[str]) -> bytes:
    """
    Everything else that has to be equal, as a text that is compared and not read.

    ``path`` is where Python looks for modules.
    """
    mask = os.umask(0o077)
    os.umask(mask)
    status = os.stat(".")  # noqa: PTH116 (pathlib takes 5 ms)
    facts = (
        os.getcwd(),  # noqa: PTH109 (as above)
        (status.st_dev, status.st_ino),
        mask,
        (os.getuid(), os.geteuid(), os.getgid(), os.getegid(), *sorted(os.getgroups())),
        sys.executable,
        [*path],
        [word for word in str(sys.flags).split(", ") if not word.startswith("safe_path")],
        os.getpriority(os.PRIO_PROCESS, 0),
        sorted(os.sched_getaffinity(0)),
        *(_link(f"/proc/self/ns/{name}") for name in NAMESPACES),
        _text("/proc/self/limits"),
        _text("/proc/sys/kernel/random/boot_id"),
    )
    return "\n".join(map(str, facts)).replace("\0", "").encode(errors="surrogateescape")


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 (as above)
    except OSError:
        return ""


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as opened:  # noqa: PTH123 (as above)
            return opened.read()
    except OSError:
        return ""


SHARE = 16
"""Memory is short if less than this part of all is left."""


def is_memory_short() -> bool:
    """Whether so little is left that a process that only waits should end."""
    free, total = _of_machine()
    limit, used = _of_container()
    return free * SHARE < total or (limit is not None and (limit - used) * SHARE < limit)


def free_memory() -> int:
    """How many bytes are left, of the machine or of its container."""
    limit, used = _of_container()
    free = _of_machine()[0] * 1024
    return free if limit is None else min(free, limit - used)


def memory_of_process(pid: int) -> int:
    """What a process has in memory, in bytes; 0 if it is gone."""
    for line in _text(f"/proc/{pid}/status").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def _of_machine() -> tuple[int, int]:
    """Free and whole memory in KiB."""
    try:
        lines = _text("/proc/meminfo").splitlines()
        facts = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        return facts["MemAvailable"], facts["MemTotal"]
    except (ValueError, KeyError):
        return 1, 1


def _of_container() -> tuple[int | None, int]:
    """The limit of version 2 of control groups, and what of it cannot be given back at once."""
    folder = "/sys/fs/cgroup"
    try:
        limit, used = int(_text(f"{folder}/memory.max")), int(_text(f"{folder}/memory.current"))
        lines = _text(f"{folder}/memory.stat").splitlines()
        facts = {line.split()[0]: int(line.split()[1]) for line in lines}
        return limit, used - facts["inactive_file"] - facts["active_file"]
    except (ValueError, KeyError):
        return None, 0


# Linux shares processors among sessions first. A process that is alone in one, as the JVM is, gets
# as much as a user's run, however low its priority is. Unlike that, a session's may be raised
# again.


def session_priority(pid: int) -> int:
    """The priority of a process's session: 0 as ever, 19 for the lowest."""
    word = _text(f"/proc/{pid}/autogroup").rpartition(" ")[2].strip()
    return int(word) if word.isdigit() else 0


def set_session_priority(pid: int, priority: int) -> None:
    """Set it, where the system shares processors so."""
    try:
        with open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as opened:  # noqa: PTH123
            opened.write(str(priority))
    except OSError:
        return
