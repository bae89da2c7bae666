"""
What Spark's own analyser finds wrong with a definition, with its place.

The analysis of a query reads what Spark would read; where the two differ, Spark is right.
"""

from __future__ import annotations

from infold.messages.message import Finding

# In Spark's own words.
refused_by_spark = Finding(
    "refused-by-spark",
    "Spark does not accept the query of {model}",
    {"why": "{why}", "condition": "{condition}"},
    "Change the query, or the `columns` of its source.",
)

# Spark sees something to read that the analysis did not see.
reads_unseen = Finding(
    "reads-unseen",
    "{model} reads what is neither a model nor a source",
    {"reads": "{what}"},
    "Declare it as a source, and write its name in FROM.",
)

# As Spark's analyser types it.
type_not_stored = Finding(
    "not-stored",
    "{column} of {model} is of a type that no table has",
    {"type": "{type_}"},
    "Make it a number or a string, with CAST for example.",
)

# Spark reads less than the analysis saw: a name that is no table there.
not_read = Finding(
    "not-read",
    "Spark does not read {what} in the query of {model}",
    todo="Take it out, or write its name in FROM in a plainer way.",
)

# Something in the session has registered a function under the name of Spark's own.
function_replaced = Finding(
    "function-replaced",
    "{function} in the query of {model} is not Spark's own function in this session",
    {"replaced by": "{class_}"},
    "Register it by another name: what it gives back decides what is in the table.",
)

# A query that Spark itself does not take for deterministic, without the override.
not_determined = Finding(
    "not-deterministic",
    "Spark does not give the same rows twice for the query of {model}",
    {"because of": "{what}"},
    "Take it out. A table may also say that any result will do, in `incremental`: "
    "`safety_overrides: {{allow_nondeterministic: true}}`, with `enabled: false` if it is built "
    "whole.",
)

MISDEFINED = {"bad-audit"} | frozenset(
    finding.slug
    for finding in (
        refused_by_spark,
        reads_unseen,
        type_not_stored,
        not_read,
        function_replaced,
        not_determined,
    )
)
"""What can be wrong with a definition."""
