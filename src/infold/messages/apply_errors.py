"""What keeps definitions from being applied, or a command from going on by the applied ones."""

from __future__ import annotations

from collections.abc import Sequence

from infold.messages.errors import ExitCode, InfoldError, Message

nothing_applied = Message(
    "nothing-applied",
    "no definition is applied in {target} yet",
    {"in the files": "{models}"},
    "Nothing was written. `{infold} apply` shows what the definitions in the files build, applies "
    "them, and builds it.",
    exit_code=ExitCode.REFUSED,
)

# Kept by another infold, or made by another one in another way.
applied_unknown = Message(
    "applied-unknown",
    "definitions that are applied in {target} are not understood here",
    {"models": "{models}", "why": "{why}"},
    "Nothing was written. Use the infold that applied them, or let `infold apply` apply those in "
    "the files.",
    exit_code=ExitCode.REFUSED,
)

# A run waited for the lease, or somebody was asked and thought about it.
applied_meanwhile = Message(
    "applied-meanwhile",
    "other definitions were applied in {target} since this command began",
    {"models": "{models}"},
    "Nothing was written. Do the same again: it takes what is applied now.",
    exit_code=ExitCode.REFUSED,
)

apply_not_confirmed = Message(
    "apply-not-confirmed",
    "this would apply definitions in {target}, and it was not confirmed",
    todo="Nothing was applied. --yes confirms it.",
    exit_code=ExitCode.REFUSED,
)


def apply_incomplete(found: Sequence[tuple[str, str]]) -> InfoldError:
    """Chosen definitions that do not fit those that stay applied; each mistake with its place."""
    return InfoldError(
        "apply-incomplete",
        "the chosen definitions do not fit those that stay applied",
        tuple(found),
        "Nothing was written. Apply the models together that were changed together: `infold apply` "
        "without a model applies all.",
        exit_code=ExitCode.REFUSED,
    )


# The cells before it could not stay as they are.
not_forward_only = Message(
    "not-forward-only",
    "{model} cannot be changed forward-only",
    {"why": "{why}"},
    "Its table was left alone. Change it so that the earlier cells can stay, or let the change "
    "build the table again: without --forward-only, or with `forward_only: false`.",
    exit_code=ExitCode.REFUSED,
)

# It is not in the ledger, or names what its inputs no longer have.
earlier_definition_unknown = Message(
    "earlier-definition-unknown",
    "cells of {model} keep the rows of an earlier definition, which is not understood any more",
    {"cells": "{cells}", "definition": "{digest}"},
    "Nothing of it was built, since late rows there would be lost. Give its inputs back what they "
    "had then, or let `infold forget {model}` and a run build all of it by the newest definition.",
    exit_code=ExitCode.REFUSED,
)

# An input was built again with other types, say.
other_type_forward_only = Message(
    "forward-only-types",
    "{column} of {model} is of another type than in its table, which keeps earlier cells",
    {"in the table": "{stored}", "by its query": "{given}"},
    "Nothing of it was built. Cast the column to the type that it has in the table, or let "
    "`infold forget {model}` and a run build all of it by the newest definition.",
    exit_code=ExitCode.REFUSED,
)

bad_plan_file = Message(
    "bad-plan-file",
    "this file is not a saved plan",
    {"file": "{path}", "why": "{why}"},
    "`infold plan --save FILE` writes one.",
)

plan_of_another = Message(
    "plan-of-another",
    "the saved plan is one of another project, target or warehouse",
    {
        "its project": "{project}",
        "its target": "{target}",
        "its warehouse": "{warehouse}",
        "here": "{here}",
    },
    "Nothing was written. Carry it out in its own folder, for its own target.",
    exit_code=ExitCode.REFUSED,
)


def plan_outdated(found: Sequence[tuple[str, str]]) -> InfoldError:
    """What is not as it was when a plan was saved, by name."""
    return InfoldError(
        "plan-outdated",
        "the saved plan does not fit what is there now",
        tuple(found),
        "Nothing was written. Save a plan of what is there now, and review that.",
        exit_code=ExitCode.REFUSED,
    )
