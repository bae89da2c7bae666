"""
A command in infold's place: it does what a folder says, and writes down how it was called.

    python stand_in.py FOLDER --project=… COMMAND …

``FOLDER/COMMAND.json`` (or ``COMMAND-MODEL.json``, for a run of one model) has ``code``, ``result``
(printed as JSON), ``stderr``, ``log`` (lines for ``--log``), ``sleep`` (seconds; SIGTERM ends it
with 143) and ``stops_caller`` (who called gets a SIGTERM meanwhile). Each call is a line of
``FOLDER/calls``, and each stop one of ``FOLDER/stopped``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def main(folder: Path, words: list[str]) -> int:
    """Do as the folder says."""
    command = next(word for word in words if not word.startswith("-"))
    selected = [word.partition("=")[2] for word in words if word.startswith("--select=")]
    how = _how(folder, [*(f"{command}-{model}" for model in reversed(selected)), command])
    shown = {name: value for name, value in os.environ.items() if name.startswith("SHOP_")}
    with (folder / "calls").open("a") as calls:
        calls.write(json.dumps({"words": words, "env": shown}) + "\n")
    for word in words:
        if word.startswith("--log=") and how.get("log"):
            with Path(word.partition("=")[2]).open("a") as log:
                log.writelines(f"{json.dumps(line)}\n" for line in how["log"])
    sys.stderr.write(how.get("stderr", ""))
    sys.stderr.flush()
    if how.get("sleep"):

        def stopped(*_: object) -> None:
            with (folder / "stopped").open("a") as file:
                file.write(f"{' '.join(selected)}\n")
            os._exit(143)

        signal.signal(signal.SIGTERM, stopped)
        (folder / "sleeping").touch()
        if how.get("stops_caller"):
            os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(how["sleep"])
    if how.get("result") is not None:
        sys.stdout.write(json.dumps(how["result"], indent=2))
    return int(how.get("code", 0))


def _how(folder: Path, names: list[str]) -> dict[str, Any]:
    for name in names:
        if (folder / f"{name}.json").exists():
            found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
            return found
    return {}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
