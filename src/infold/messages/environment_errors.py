"""What keeps a command from going on with an environment."""

from __future__ import annotations

from collections.abc import Sequence

from infold.messages.errors import ExitCode, InfoldError, Message, Near

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


tables_moved = Message(
    "tables-moved",
    "somebody wrote to a table while this {command} was about to give it another name",
    todo="Nothing was changed. Do the same again: it goes by what is there now.",
    exit_code=ExitCode.REFUSED,
)

promote_not_confirmed = Message(
    "promote-not-confirmed",
    "this would swap tables of {target}, and it was not confirmed",
    todo="Nothing was written. --yes confirms it.",
    exit_code=ExitCode.REFUSED,
)

# Another run was faster, or somebody was asked and thought about it.
promote_changed = Message(
    "promote-changed",
    "what this would swap is not what was shown",
    todo="Nothing was written. Do the same again: it shows what is there now.",
    exit_code=ExitCode.REFUSED,
)

nothing_to_roll_back = Message(
    "nothing-to-roll-back",
    "no table that a promote replaced is kept in {target}",
    todo="`keep_old` of the target says how long they are kept. An earlier definition can be "
    "applied: the next run builds its tables again.",
    exit_code=ExitCode.REFUSED,
)


def environment_unfinished(name: str, found: Sequence[tuple[str, str]]) -> InfoldError:
    """An environment whose own tables cannot be promoted as they are; why, by model."""
    return InfoldError(
        "environment-unfinished",
        f"the tables of {name} are not up to date",
        tuple(found),
        f"Nothing was written. `infold run --env {name}` builds what is missing.",
        exit_code=ExitCode.REFUSED,
    )


def production_moved(name: str, found: Sequence[tuple[str, str]]) -> InfoldError:
    """Production changed since an environment was built; what, by model."""
    return InfoldError(
        "production-moved",
        f"production changed since {name} was run",
        tuple(found),
        f"Nothing was written. `infold run --env {name}` catches up; then promote it.",
        exit_code=ExitCode.REFUSED,
    )


def promote_incomplete(found: Sequence[tuple[str, str]]) -> InfoldError:
    """Definitions that stay applied, and do not fit those that would be applied."""
    return InfoldError(
        "promote-incomplete",
        "definitions that stay applied do not fit those that would be applied",
        tuple(found),
        "Nothing was written. Apply definitions of those models first that fit both.",
        exit_code=ExitCode.REFUSED,
    )


def rollback_outdated(found: Sequence[tuple[str, str]]) -> InfoldError:
    """What was changed after a promote, so that it cannot be taken back any more."""
    return InfoldError(
        "rollback-outdated",
        "what was promoted was changed since",
        tuple(found),
        "Nothing was written. An earlier definition can be applied: the next run builds its "
        "tables again.",
        exit_code=ExitCode.REFUSED,
    )
