"""What can be wrong with a Python file of a project, before it is executed."""

from __future__ import annotations

from infold.messages.message import Finding, Near

bad_python = Finding(
    "bad-python",
    "this is not valid Python",
    {"why": "{why}"},
)

missing_module = Finding(
    "missing-module",
    "there is no module {module!r}, in the project or installed",
    {"modules": Near("{module}")},
    "Modules of the project are found from its folder: `from lib.text import clean` reads "
    "lib/text.py. Anything else has to be installed where infold runs.",
)

unreadable_python = Finding(
    "bad-python",
    "this file of the project cannot be read",
    {"why": "{why}"},
)
