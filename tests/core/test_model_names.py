"""The names of models in place of keys, in whatever is shown."""

from __future__ import annotations

from infold.core.environment import with_model_names
from infold.core.interval import Ranges
from infold.core.model import Kind
from infold.core.plan import Action, Plan, Reason, Skipped, Step
from infold.core.trace import Cause
from infold.messages.errors import InfoldError

KEYS = {"daily__1234abcd": "daily", "raw.x__1234abcd": "raw.x", "daily__1234abcdffffffff": "other"}


def test_every_text_of_a_value_is_changed() -> None:
    """Keys are replaced in texts, keys of mappings and errors; all else stays as it was."""
    reason = Reason(Cause.LATE, "because daily__1234abcd changed", Ranges.ever(), 3)
    step = Step("raw.x__1234abcd", Action.BUILD, Ranges(), (reason,), {"daily__1234abcd": (0, 1)})
    error = InfoldError("slug", "what of daily__1234abcd", (("at", "raw.x__1234abcd"),))
    plan = Plan(
        (step,), (Skipped("sessions", "up to date"),), 7, refused={"raw.x__1234abcd": error}
    )

    found = with_model_names(plan, KEYS)

    assert found.steps[0].model == "raw.x"
    assert found.steps[0].reasons[0].detail == "because daily changed"
    assert found.steps[0].inputs == {"daily": (0, 1)}
    assert found.skipped == plan.skipped
    assert found.refused["raw.x"].what == "what of daily"
    assert found.refused["raw.x"].facts == (("at", "raw.x"),)
    assert error.what == "what of daily__1234abcd"
    assert with_model_names(plan, {}) is plan


def test_a_longer_key_is_another() -> None:
    """A key that begins with another one is replaced as a whole, and no longer word is touched."""
    text = "daily__1234abcdffffffff daily__1234abcd daily__1234abcde"

    assert with_model_names(text, KEYS) == "other daily daily__1234abcde"
    assert with_model_names(Kind.TABLE, {"table": "x"}) is Kind.TABLE
