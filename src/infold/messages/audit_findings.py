"""What can be wrong with an audit, and what a step or `infold audit` says of one that failed."""

from __future__ import annotations

from collections.abc import Sequence

from infold.messages.errors import ExitCode, Finding, InfoldError, Near, Spot

# An entry of `audits` that says nothing, or several things.
not_one_audit = Finding(
    "bad-audit",
    "an entry of `audits` is one audit, and this has {found}",
    {"one of": "{known}"},
    "Beside it there may be `name`, `severity` and `where`.",
)

duplicate_audit = Finding(
    "duplicate-name",
    "{model} has another audit called {name!r}",
    {"other": "{other}"},
    "Give one of them a `name`; names are compared without regard to case.",
)

no_such_model = Finding(
    "unknown-table",
    "this audit is of {model!r}, and there is no such model",
    {"models": Near("{model}")},
)

# A predicate that one row alone does not answer.
not_of_one_row = Finding(
    "bad-audit",
    "{key} has {what}, and it is asked of each row by itself",
    todo="A file in audits/ may be any SELECT of bad rows.",
)

changing_audit = Finding(
    "bad-audit",
    "{call} is another value at every run, so the same rows could pass and fail",
    todo="Compare with a column, or use `freshness`, which goes by the clock of the run.",
)

reads_no_model = Finding(
    "bad-audit",
    "this SELECT is to find bad rows of {model}, and does not read it",
    todo="Name it in FROM: there it is the rows that are about to be written.",
)

needs_cells = Finding(
    "bad-audit",
    "{kind} asks about cells of time, and {model} has none",
    todo="Leave it out.",
)

wrong_column_type = Finding(
    "bad-audit",
    "{kind} asks for {wanted}, and {column} is {type_}",
)

# The audit's other table is made from the model's own rows.
audit_in_a_circle = Finding(
    "bad-audit",
    "this audit of {model} reads {other}, which is built from {model}",
    todo="Audit {other} the other way round, or ask it in a view over both, with `infold audit`.",
)

source_in_audit = Finding(
    "bad-audit",
    "this audit reads {name}, a source that no model reads as it is",
    todo="Read a model: an audit is judged on rows that are stored.",
)

unequal_columns = Finding(
    "bad-audit",
    "{columns} of {model} cannot be compared with {others} of {to}: not as many",
)

nothing_asked = Finding(
    "bad-audit",
    "{kind} needs {keys}",
)

# In Spark's own words.
refused_audit = Finding(
    "bad-audit",
    "Spark does not accept the audit {name} of {model}",
    {"why": "{why}"},
    "Change it, or the column.",
)


def audit_failed(
    model: str, found: Sequence[tuple[str, str, str]], sample: Sequence[str]
) -> InfoldError:
    """
    What a step was about to write fails audits of severity error.

    ``found`` are these audits: name, what was found, place. ``sample`` are a few bad rows.
    """
    names = [name for name, _, _ in found]
    what = f"the audit {names[0]}" if len(names) == 1 else f"{len(names):,} audits"
    return InfoldError(
        "audit-failed",
        f"what was to be written to {model} does not pass {what}",
        (
            *((name, f"{words} ({place})" if place else words) for name, words, place in found),
            *(("such as", row) for row in sample),
        ),
        "Nothing of this step was written, and its cells stay pending. `infold show "
        "audit_failures` has the rows. Correct the input, the query or the audit, and run again.",
        exit_code=ExitCode.FAILED,
    )


def unseen_audit(at: Spot, name: str, model: str, why: str) -> InfoldError:
    """An audit that cannot be judged, for a reason that only the rows show."""
    return InfoldError(
        "audit-failed",
        f"the audit {name} of {model} cannot be judged",
        (("why", why),),
        "Nothing of this step was written.",
        exit_code=ExitCode.FAILED,
        at=at,
    )
