"""What the end of a command means to a scheduler: done, worth another try, or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from infold.messages.errors import ExitCode

JsonObject = dict[str, Any]


class Verdict(Enum):
    """What a scheduler does with a command that ended."""

    DONE = "done"
    NOTHING_TO_DO = "nothing to do"
    TRY_AGAIN = "try again"
    """It failed, and the same command may succeed a little later."""
    GIVE_UP = "give up"
    """It failed, and will again until somebody changes something."""


PASSING_REFUSALS = frozenset({"applied-meanwhile", "engine-busy", "locked"})
"""Refusals (exit code 3) that pass by themselves; all others wait for somebody's decision."""

LASTING_FAILURES = frozenset(
    {
        # rows, files or a query that will be the same
        "audit-failed",
        "drift",
        "extracted-files-damaged",
        "function-failed",
        "unreadable-file",
        "source-column-missing",
        "source-column-type",
        "source-key-null",
        "source-table-missing",
        "source-value",
        # what the machine, a server or a login lacks
        "avro-library-missing",
        "catalog-database-missing",
        "catalog-login-refused",
        "catalog-not-permitted",
        "ledger-database-missing",
        "ledger-login-refused",
        "ledger-not-permitted",
        "no-worker-python",
        "not-permitted",
        "other-jars",
        "other-spark",
        "server-refuses",
        "server-settings",
        "server-zone",
        "source-database-missing",
        "source-login-refused",
        "source-not-permitted",
        "store-access-denied",
        "store-bucket-missing",
        "store-credentials-missing",
        "store-credentials-refused",
        "store-wrong-region",
    }
)
"""
Failures (exit code 1) that another try meets again. All others may be the machine's: a cluster
that went away, a full disk, and `step-failed`, of which nobody knows.
"""

ENDED_EARLY = 128
"""Exit codes above it are signals: somebody stopped the command, or it had no memory."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    How a command ended: its exit code, what it printed as JSON, and the end of its messages.

    A process that a signal killed has a negative code, as in Python.
    """

    exit_code: int
    result: JsonObject = field(default_factory=dict)
    messages: str = ""

    @property
    def errors(self) -> tuple[JsonObject, ...]:
        """Every error that the result has, each a mapping with ``slug``, ``what`` and so on."""
        found = self.result.get("error")
        whole = list(_each(found)) if isinstance(found, dict) else []
        parts = [*_listed(self.result, "failed"), *_listed(self.result, "refused")]
        for part in parts:
            error = part.get("error")
            whole += _each(error) if isinstance(error, dict) else []
        return tuple({json.dumps(error, sort_keys=True): error for error in whole}.values())

    @property
    def verdict(self) -> Verdict:
        """What a scheduler does now."""
        if self.exit_code == 0:
            nothing = "steps" in self.result and not self.result["steps"]
            return Verdict.NOTHING_TO_DO if nothing else Verdict.DONE
        if self.exit_code < 0 or self.exit_code > ENDED_EARLY:
            return Verdict.TRY_AGAIN
        if self.errors:
            passing = any(_passes(error, self.exit_code) for error in self.errors)
        else:
            passing = self.exit_code == ExitCode.FAILED and not _is_judgement(self.result)
            passing |= self.exit_code == ExitCode.REFUSED and _is_moved(self.result)
        return Verdict.TRY_AGAIN if passing else Verdict.GIVE_UP

    @property
    def why(self) -> str:
        """Why it failed, for a person: each error in a line, or the end of what it printed."""
        lines = [_line_of(error) for error in self.errors]
        ended = f"infold ended with exit code {self.exit_code}"
        if self.exit_code < 0 or self.exit_code > ENDED_EARLY:
            number = -self.exit_code if self.exit_code < 0 else self.exit_code - ENDED_EARLY
            ended = f"infold was ended by signal {number}"
        if not lines and self.messages.strip():
            lines = [self.messages.strip()]
        return "\n".join([ended, *lines])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a command that succeeded leaves for somebody to look at."""
        receipt = self.result.get("receipt")
        counts = receipt if isinstance(receipt, dict) else {}
        return tuple(
            f"{counts[name]} {words}" for name, words in _WORTH_A_LOOK.items() if counts.get(name)
        )


_WORTH_A_LOOK = {
    "set_aside": "rows were set aside: they cannot be used as they are",
    "sessions_quarantined": "sessions went into quarantine",
    "conflicting": "copies of events differ from the one that is kept",
    "audits_failed": "audits of severity warn failed",
}


def parsed(text: str) -> JsonObject:
    """What a command printed with ``--json``; empty where it printed something else."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def models_with_work(plan: Mapping[str, Any]) -> list[str]:
    """The models that a plan has steps for, in the order in which they are built."""
    return list(dict.fromkeys(step["model"] for step in plan.get("steps", ())))


def _is_judgement(result: JsonObject) -> bool:
    """Whether it is what `audit` or `test` found: they find it again."""
    return result.get("passed") is False


def _is_moved(result: JsonObject) -> bool:
    """Whether it is what `verify` could not compare, as runs changed it meanwhile."""
    return any(model.get("moved") for model in _listed(result, "models"))


def _passes(error: JsonObject, exit_code: int) -> bool:
    """Whether an error may be gone at the next try."""
    slug, code = error.get("slug"), error.get("exit_code", exit_code)
    if code == ExitCode.FAILED:
        return slug not in LASTING_FAILURES
    return code == ExitCode.REFUSED and slug in PASSING_REFUSALS


def _each(error: JsonObject) -> Sequence[JsonObject]:
    """The error, or every one of several."""
    several = error.get("errors")
    return several if isinstance(several, list) else (error,)


def _listed(result: JsonObject, name: str) -> Iterator[JsonObject]:
    """The mappings of a list of the result; nothing where there is none."""
    found = result.get(name)
    if isinstance(found, list):
        yield from (one for one in found if isinstance(one, dict))


def _line_of(error: JsonObject) -> str:
    facts = error.get("facts") or {}
    shown = "".join(f"\n  {name}: {value}" for name, value in facts.items())
    todo = error.get("todo")
    return f"{error.get('slug')}: {error.get('what')}{shown}" + (f"\n  {todo}" if todo else "")
