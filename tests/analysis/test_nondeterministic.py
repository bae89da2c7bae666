"""
Rows that are not determined: readers of such views may allow them, or they are refused.

Verify does not compare the columns of a table that `allow_nondeterministic` leaves open.
"""

from __future__ import annotations

import pytest
from tests.declare.shop import SHOP, read

from infold.core.model import Override
from infold.core.project import ALL_COLUMNS, Project
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


HEAD = """---
materialization: table
incremental: {enabled: false, safety_overrides: {allow_nondeterministic: true}}
---
"""

CASES = {
    "SELECT user_id, rand() AS r, current_date() AS d FROM clicks": ("r", "d"),
    "SELECT user_id, first(url) AS url, count(*) AS n FROM clicks GROUP BY 1": ("url",),
    "SELECT user_id, (SELECT max(rand()) FROM clicks) AS r FROM clicks": ("r",),
    "SELECT event_id, row_number() OVER (PARTITION BY user_id ORDER BY url) AS n FROM clicks": (
        "n",
    ),
    "SELECT *, coalesce(rand(), [1, 2][0]) AS r FROM clicks": ("r",),
    "WITH c AS (SELECT * FROM clicks) SELECT user_id, now() AS seen FROM c": ("seen",),
    # rows, or all columns that follow from one
    "SELECT user_id FROM clicks WHERE event_ts < now()": ALL_COLUMNS,
    "SELECT user_id, now() AS seen FROM clicks WHERE event_ts < now()": ALL_COLUMNS,
    "WITH c AS (SELECT *, rand() AS r FROM clicks) SELECT user_id, r FROM c": ALL_COLUMNS,
    "SELECT user_id, rand() AS r, r + 1 AS more FROM clicks": ALL_COLUMNS,
    "SELECT DISTINCT user_id, first_value(url) OVER (ORDER BY user_id) AS u FROM clicks": (
        ALL_COLUMNS
    ),
    "SELECT user_id, now() AS seen FROM clicks UNION ALL SELECT user_id, now() FROM clicks": (
        ALL_COLUMNS
    ),
    "SELECT current_date() AS d, count(*) AS n FROM clicks GROUP BY 1": ALL_COLUMNS,
    "SELECT user_id, count(*) OVER w AS n FROM clicks WINDOW w AS (ORDER BY now())": ALL_COLUMNS,
    # nothing that can be seen without Spark
    "SELECT user_id FROM clicks": ALL_COLUMNS,
}


@pytest.mark.parametrize(("sql", "columns"), CASES.items())
def test_the_columns_that_any_result_will_do_for(sql: str, columns: tuple[str, ...]) -> None:
    """Those whose own expression has the construct; anywhere else it may decide about rows."""
    found, errors = read({**SHOP, "models/picks.sql": HEAD + sql})

    assert errors == []
    assert found is not None
    assert found["picks"].undetermined == columns


def test_what_is_not_allowed_is_compared() -> None:
    """Without the override nothing is left out."""
    found, _ = read(SHOP)

    assert found is not None
    assert {node.undetermined for node in found} == {()}
