"""
What Spark's own analyser finds wrong with a definition, by one function each, with its place.

The analysis of a query reads what Spark would read; where the two differ, Spark is right. Each has
a section in docs/errors.md.
"""

from __future__ import annotations

from infold.errors import InfoldError, Spot


def refused_by_spark(at: Spot, model: str, why: str, condition: str) -> InfoldError:
    """A query that Spark does not accept over the columns that there are; in its own words."""
    return InfoldError(
        "refused-by-spark",
        f"Spark does not accept the query of {model}",
        (("why", why), *((("condition", condition),) if condition else ())),
        "Change the query, or the `columns` of its source.",
        at=at,
    )


def reads_unseen(at: Spot, model: str, what: str) -> InfoldError:
    """A query in which Spark sees something to read that the analysis did not see."""
    return InfoldError(
        "reads-unseen",
        f"{model} reads what is neither a model nor a source",
        (("reads", what),),
        "Declare it as a source, and write its name in FROM.",
        at=at,
    )


def type_not_stored(at: Spot, model: str, column: str, type_: str) -> InfoldError:
    """An output of a type that no table has, as Spark's analyser types it."""
    return InfoldError(
        "not-stored",
        f"{column} of {model} is of a type that no table has",
        (("type", type_),),
        "Make it a number or a string, with CAST for example.",
        at=at,
    )
