"""Views with rows that are not determined: their readers may allow them, or they are refused."""

from __future__ import annotations

import pytest
from tests.declare.shop import SHOP, read

from infold.core.model import Override
from infold.core.project import Project
from infold.messages.errors import InfoldError

DRAWN = "---\nmaterialization: view\n---\nSELECT *, rand() AS r FROM clicks"
SEEN = "---\nmaterialization: view\n---\nSELECT * FROM drawn WHERE r < 1"
WHOLE = "---\nmaterialization: table\n{}---\nSELECT user_id, max(r) AS r FROM seen GROUP BY 1"
DAILY = """---
materialization: table
timeseries: {{event_time_column: event_ts, partition_column: day}}
incremental: {{{}}}
---
SELECT cast(event_ts AS date) AS day, max(r) AS r FROM seen GROUP BY 1"""
ANY = "safety_overrides: {allow_nondeterministic: true}"
VOUCHED = WHOLE.format(
    f"incremental: {{enabled: false, {ANY}}}\ntimeseries: {{event_time_column: r}}\n"
)
SESSIONS = """---
materialization: sessions
sessions: {user: user_id, gap: 1 hour}
---
SELECT count(*) AS n FROM seen"""


def judged(**models: str) -> tuple[Project | None, list[InfoldError]]:
    """A shop with two views by chance, one over the other, and these models."""
    files = {f"models/{name}.sql": text for name, text in models.items()}
    return read({**SHOP, "models/drawn.sql": DRAWN, "models/seen.sql": SEEN, **files})


@pytest.mark.parametrize("model", [VOUCHED, DAILY.format(ANY)])
def test_the_reader_may_allow_it(model: str) -> None:
    """A reader, through other views too, may allow a view
    that is not deterministic and is named in the note.
    """
    found, errors = judged(reader=model)

    assert errors == []
    assert found is not None
    assert found["reader"].overrides_used == (Override.NONDETERMINISTIC,)


@pytest.mark.parametrize("model", [WHOLE.format(""), DAILY.format("")])
def test_a_reader_that_does_not_allow_it_is_named_with_the_cure(model: str) -> None:
    """Unless all readers allow it, there is one finding at the view, with the cure."""
    _, errors = judged(reader=model, other=DAILY.format(""), third=DAILY.format(ANY))

    [error] = errors
    assert (error.slug, str(error.at)) == ("not-deterministic", "models/drawn.sql:4")
    facts = dict(error.facts)
    assert set(facts["read by"].split(", ")) == {"reader", "other"}
    assert "allow_nondeterministic: true" in facts["or vouch"]


def test_a_view_without_readers_is_refused() -> None:
    """A view that is not deterministic and has no reader is refused at its place."""
    _, [error] = judged()

    assert error.slug == "not-deterministic"
    cure = ", in what reads it, with `enabled: false` where it is built whole"
    assert dict(error.facts)["or vouch"].endswith(cure)


@pytest.mark.parametrize(
    "model",
    [
        (
            "---\nmaterialization: table\n{}---\nSELECT user_id, max_by(url, event_ts) AS u "
            "FROM clicks GROUP BY user_id"
        ),
        WHOLE.replace("max(r)", "max(rand())").replace("seen", "clicks"),
    ],
)
def test_what_a_refusal_offers_is_taken(model: str) -> None:
    """The key that is offered for a table that is built whole makes it pass."""
    _, [refused] = read({**SHOP, "models/any.sql": model.format("")})
    offered = dict(refused.facts)["or vouch"]

    _, errors = read({**SHOP, "models/any.sql": model.format(f"{offered}\n")})

    assert errors == []


def test_sessions_cannot_allow_it() -> None:
    """Sessions over such a view are refused without the override, because a rebuild has to give the
    stored ones. Findings that no override answers do not wait for the readers.
    """
    _, [error] = judged(visits=SESSIONS)
    odd = DRAWN.replace("rand() AS r", "rand() AS r, nothing AS n")
    _, errors = judged(drawn=odd, reader=VOUCHED)

    assert dict(error.facts)["read by"] == "visits"
    assert "or vouch" not in dict(error.facts)
    assert "unknown-column" in [error.slug for error in errors]
