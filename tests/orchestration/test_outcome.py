"""What the end of a command means to a scheduler."""

from __future__ import annotations

from typing import Any

import pytest
from tests.messages.every import MESSAGES, rendered
from tests.orchestration.recorded import error, step

from infold.orchestration.outcome import (
    LASTING_FAILURES,
    PASSING_REFUSALS,
    Outcome,
    Verdict,
    models_with_work,
    parsed,
)

DONE, NOTHING = Verdict.DONE, Verdict.NOTHING_TO_DO
AGAIN, NEVER = Verdict.TRY_AGAIN, Verdict.GIVE_UP


def failed(*errors: dict[str, Any]) -> dict[str, Any]:
    """The result of a run in which models failed."""
    return {"steps": [step("clicks")], "failed": [{"model": "daily", "error": e} for e in errors]}


@pytest.mark.parametrize(
    ("code", "result", "verdict"),
    [
        (0, {"steps": [step("daily")]}, DONE),
        (0, {"steps": []}, NOTHING),
        (0, {"equal": True}, DONE),  # verify has no steps
        (1, failed(error("step-failed", 1)), AGAIN),
        (1, failed(error("audit-failed", 1)), NEVER),
        (1, failed(error("protected", 3)), NEVER),
        (1, failed(error("refused-by-spark", 2)), NEVER),
        (1, failed(error("audit-failed", 1), error("engine-died", 1)), AGAIN),
        (1, {"error": error("ledger-unreachable", 1)}, AGAIN),
        (1, {"error": error("ledger-login-refused", 1)}, NEVER),
        (1, {"passed": False, "audits": []}, NEVER),
        (1, {}, AGAIN),  # it died without a word
        (2, {"error": error("unknown-key", 2)}, NEVER),
        (2, {"error": {"errors": [error("a", 2), error("b", 2)], "exit_code": 2}}, NEVER),
        (2, {}, NEVER),  # a mistake in the command line
        (3, {"error": error("locked", 3)}, AGAIN),
        (3, {"error": error("over-budget", 3)}, NEVER),
        (3, {"equal": False, "models": [{"moved": False}, {"moved": True}]}, AGAIN),  # verify
        (4, {"equal": False, "models": []}, NEVER),
        (4, {"equal": False, "models": [{"moved": True}, {"moved": False}]}, NEVER),
        (5, {"equal": False}, NEVER),
        (143, {}, AGAIN),
        (-9, {}, AGAIN),
    ],
)
def test_verdicts(code: int, result: dict[str, Any], verdict: Verdict) -> None:
    """By exit code, and where that is not enough by the slug of each error."""
    assert Outcome(code, result).verdict is verdict


def test_one_failure_that_may_pass_is_enough_for_another_try() -> None:
    """The others fail again, as they would have; what was not tried because of it is not lost."""
    several = {"error": {"errors": [error("drift", 1), error("disk-full", 1)], "exit_code": 1}}

    assert Outcome(1, several).verdict is AGAIN


def test_the_slugs_are_those_of_messages_with_that_exit_code() -> None:
    """A slug that is renamed, or gets another exit code, does not stay in a list by itself."""
    codes: dict[str, set[int]] = {}
    for name in MESSAGES:
        codes.setdefault(rendered(name).slug, set()).add(int(rendered(name).exit_code))

    assert {slug for slug in PASSING_REFUSALS if 3 not in codes.get(slug, ())} == set()
    assert {slug for slug in LASTING_FAILURES if 1 not in codes.get(slug, ())} == set()


DRIFT = error("drift", 1, facts={"file": "a.json"}, todo="Declare it.")


@pytest.mark.parametrize(
    ("code", "result", "why"),
    [
        (1, failed(DRIFT, DRIFT), "exit code 1\ndrift: this\n  file: a.json\n  Declare it."),
        (2, {}, "exit code 2\nUsage: infold"),
        (-9, {}, "signal 9"),
        (143, {}, "signal 15"),
    ],
)
def test_why(code: int, result: dict[str, Any], why: str) -> None:
    """Each error once with what to do; else what was printed last, and which signal it was."""
    said = Outcome(code, result, "Usage: infold\n").why

    assert said.startswith(
        ("infold ended with " if code in (1, 2) else "infold was ended by ") + why
    )


def test_warnings() -> None:
    """A run that succeeded has left rows out: that is no failure, and is told."""
    receipt = {"set_aside": 2, "audits_failed": 0, "sessions_quarantined": 1}

    assert Outcome(0, {"steps": [], "receipt": receipt}).warnings == (
        "2 rows were set aside: they cannot be used as they are",
        "1 sessions went into quarantine",
    )
    assert Outcome(0, {"equal": True}).warnings == ()


def test_models_with_work_are_in_the_order_of_their_steps() -> None:
    """A model with several steps is there once. Nothing of other output is taken for a result."""
    assert models_with_work({"steps": [step("a"), step("b"), step("a")]}) == ["a", "b"]
    for text in ("", "no json", "[1]", '"text"'):
        assert parsed(text) == {}
