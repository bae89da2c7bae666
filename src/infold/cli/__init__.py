"""
The command line: one command a file, imported when it is called.

Rules of this package: a command reads options, calls ``infold.api`` and prints what
``infold.render`` returns; it decides nothing. Neither Spark nor anything else that is slow to
import is imported before it is needed, so that ``--help`` and ``status`` answer at once.
"""

from __future__ import annotations

from infold.cli.main import cli, main

__all__ = ["cli", "main"]
