"""What keeps a command from going on with an environment."""

from __future__ import annotations

from infold.messages.errors import ExitCode
from infold.messages.message import Message, Near

bad_environment_name = Message(
    "bad-environment-name",
    "no environment can be named {name}",
    todo="A name has letters, digits, - and _, begins with a letter or _, and has at most 40 "
    "characters.",
)

unknown_environment = Message(
    "unknown-environment",
    "{target} has no environment {name}",
    {"environments": Near("{name}")},
    "`infold env list` lists them; `infold run --env {name}` makes one.",
)

# Another run was faster, of production or of the same environment.
environment_moved = Message(
    "environment-moved",
    "production or the environment {name} changed while this run waited for its turn",
    todo="Nothing was written. Run it again: it goes by what is there now.",
    exit_code=ExitCode.REFUSED,
)

# They were kept by another infold, or by a run of another machine.
environment_unknown = Message(
    "environment-not-understood",
    "the definitions of the environment {name} are not understood here",
    {"why": "{why}"},
    "`infold run --env {name}` builds it by those in the files.",
    exit_code=ExitCode.REFUSED,
)
