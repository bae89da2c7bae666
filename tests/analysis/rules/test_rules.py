"""
Each rule has a file of queries, accepted and refused, with what is refused and where.

A file starts with `-- front: {…}`, the front matter of its queries; a case may add to it by
`-- with: {…}`. A case is `-- accepted: claim` or one `-- refused: slug `text`` for each finding,
where the text is what stands above the caret. `-- alike: reason` says why a refused query gives
the same rows cell by cell on the few rows of test_counter_examples.py, `-- elsewhere: query` how
the engine there writes it, where that cannot be translated. `-- page: sentence` shows the case on a
page of errors, under that sentence (tests/docs/error_examples.py): a refused case first, then the
accepted one that replaces it. `-- page slug: sentence` names the finding, if it is not the first.
"""

from __future__ import annotations

import pytest
from tests.analysis.rules.cases import Case, around, cases, findings, under_caret
from tests.declare.shop import read

from infold.analysis.rules import RULES


@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_query_is_accepted_or_refused_at_its_place(case: Case) -> None:
    """A query has exactly the expected findings, each with its caret under the expected words."""
    found = [(error.slug, under_caret(error)) for error in findings(case)]

    assert found == list(case.refused), "\n\n".join(str(error) for error in findings(case))


@pytest.mark.parametrize("name", RULES)
def test_each_rule_has_its_file_of_queries(name: str) -> None:
    """Every rule has a file of accepted and refused queries."""
    own = [case for case in cases() if case.file == f"{name}.sql"]

    assert any(case.refused for case in own)
    assert any(not case.refused for case in own)


FIRSTS = "SELECT user_id, min(event_ts) AS first_seen FROM clicks GROUP BY user_id"
NEW_USERS = """---
materialization: table
incremental: {{}}
timeseries: {{event_time_column: event_ts, partition_column: day}}
---
SELECT to_date(c.event_ts) AS day, count_if(f.first_seen = c.event_ts) AS fresh
FROM clicks AS c JOIN {} AS f USING (user_id) GROUP BY 1"""


def test_a_subquery_by_key_becomes_a_model_by_key() -> None:
    """What all time says of each user is refused as a subquery, and the message names the kind of
    model that it may be: then it is a lookup, matched by its key. That is the one
    finding, as the join has none then. One that nothing is joined to has no such way.
    """
    for subquery in (FIRSTS, FIRSTS.replace("BY user_id", "BY 1")):
        whole = NEW_USERS.format(f"({subquery})")
        _, [error] = read({**around(whole), "models/example.sql": whole})
        assert error.slug == "group-over-cells"
        assert dict(error.facts)["or by key"] == (
            "make the subquery a model with `materialization: cumulative_aggregate`;"
            " join it by user_id"
        )

    by_key = {"models/firsts.sql": f"---\nmaterialization: cumulative_aggregate\n---\n{FIRSTS}"}
    apart = NEW_USERS.format("firsts")
    project, errors = read({**around(apart), **by_key, "models/example.sql": apart})
    assert not errors
    assert project is not None
    assert not project["example"].unmatched_lookups

    alone = NEW_USERS.partition("SELECT")[0].format() + f"SELECT first_seen AS day FROM ({FIRSTS})"
    _, errors = read({**around(alone), "models/example.sql": alone})
    assert errors
    assert not any(dict(error.facts).get("or by key") for error in errors)
