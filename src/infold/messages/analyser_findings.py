"""
What Spark's own analyser finds wrong with a definition, by one function each, with its place.

The analysis of a query reads what Spark would read; where the two differ, Spark is right. Each has
a section in docs/errors.md.
"""

from __future__ import annotations

from infold.messages.errors import InfoldError, Spot

MISDEFINED = frozenset(
    {
        "function-replaced",
        "not-deterministic",
        "not-read",
        "not-stored",
        "reads-unseen",
        "refused-by-spark",
    }
)
"""What can be wrong with a definition."""


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


def not_read(at: Spot, model: str, what: str) -> InfoldError:
    """A query of which Spark reads less than the analysis saw: a name that is no table there."""
    return InfoldError(
        "not-read",
        f"Spark does not read {what} in the query of {model}",
        todo="Take it out, or write its name in FROM in a plainer way.",
        at=at,
    )


def function_replaced(at: Spot, model: str, function: str, class_: str) -> InfoldError:
    """A function that something in the session has put in the place of Spark's own."""
    return InfoldError(
        "function-replaced",
        f"{function} in the query of {model} is not Spark's own function in this session",
        (("stands for it", class_),),
        "Register it by another name: what it gives back decides what is in the table.",
        at=at,
    )


def not_determined(at: Spot, model: str, what: str) -> InfoldError:
    """A query that Spark itself does not hold for deterministic; nobody said that any will do."""
    return InfoldError(
        "not-deterministic",
        f"Spark does not give the same rows twice for the query of {model}",
        (("because of", what),),
        "Take it out, or say that any result will do: "
        "`safety_overrides: {allow_nondeterministic: true}`.",
        at=at,
    )
